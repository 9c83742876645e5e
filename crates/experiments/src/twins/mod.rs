//! `twins`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "twins",
    about: "one copy loop with and without alignment, prefetch, and a store to another place",
    seeds: &["000.6", "002.7"],
    operations: &[Operation::Copy],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
