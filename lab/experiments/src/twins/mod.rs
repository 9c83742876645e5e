//! `twins`.

mod measure;
mod table;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "twins",
    about: "one copy loop with and without alignment, prefetch, and a store to another place",
    seeds: &["000.6", "002.7"],
    operations: &[Operation::Copy],
    refuses: &[(Flag::Kernels, "its candidates are its own")],
    tables: Some(table::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
