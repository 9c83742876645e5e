//! `prefault`: how many threads pay.

mod measure;
pub mod parallel;

use crate::experiment::{Experiment, Flag, PLAIN, Part};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::{ALONE, CEILING};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "prefault",
    about: "how many threads pay: for memory made resident ahead, for one copy, for one zeroing",
    seeds: &["003.11"],
    operations: &[Operation::Copy, Operation::Zero],
    refuses: &[
        (Flag::Kernels, "it compares numbers of threads"),
        (Flag::Residency, "a fresh page is wherever it was zeroed"),
    ],
    figures: measure::figures,
    second: Some(Part {
        experiment: &parallel::PART,
        states: &[ALONE, "spawned", "pooled", CEILING],
    }),
    run: measure::run,
    ..PLAIN
};
