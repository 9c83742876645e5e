//! `aliasing`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "aliasing",
    about: "source and destination nearly equal modulo 4 KiB; 4 KiB against 2 MiB pages",
    seeds: &["002.11"],
    operations: &[Operation::Copy, Operation::Zero],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
