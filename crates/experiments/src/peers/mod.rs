//! `peers`.

mod measure;

pub(crate) use measure::of_envelope;

use crate::experiment::Experiment;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "peers",
    about: "the library, libc and other libraries, by size and with the sizes programs use",
    seeds: &["002.16"],
    operations: measure::OPERATIONS,
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
