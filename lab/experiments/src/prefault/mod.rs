//! `prefault`: how many threads pay.

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "prefault",
    about: "how many threads pay for memory that is made resident ahead",
    seeds: &["003.11"],
    refuses: &[
        (Flag::Kernels, "it compares numbers of threads"),
        (Flag::Residency, "a fresh page is wherever it was zeroed"),
    ],
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
