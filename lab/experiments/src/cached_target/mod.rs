//! `cached-target`.

mod measure;
mod table;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "cached-target",
    about: "non-temporal stores to a small target that is cached; prefetchnta by residency",
    seeds: &["001.2-5", "002.9"],
    operations: &[Operation::Copy],
    refuses: &[(Flag::Residency, "it goes through its own states")],
    classic: "the documents' instructions only: movntq, movntps, movnti, movntdq",
    tables: Some(table::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
