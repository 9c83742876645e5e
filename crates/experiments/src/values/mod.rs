//! `values`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "values",
    about: "does the value that is copied or stored matter: zeros, ones, random bytes, denormals?",
    seeds: &["002.12"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
