//! `cached-target`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "cached-target",
    about: "non-temporal stores to a small target that is cached; prefetchnta by residency",
    seeds: &["001.2-5", "002.9"],
    operations: &[Operation::Copy],
    classic: "the documents' instructions only: movntq, movntps, movnti, movntdq",
    figures: measure::figures,
    run: measure::run,
};
