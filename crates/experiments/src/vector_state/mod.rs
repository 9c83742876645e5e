//! `vector-state`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "vector-state",
    about: "what saving vector registers costs; from how many bytes on a vector kernel gains more",
    seeds: &["002.17", "004.3", "004.4"],
    operations: &[Operation::Copy, Operation::Zero, Operation::Compare],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
