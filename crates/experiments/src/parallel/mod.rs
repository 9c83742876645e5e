//! `parallel`.

mod measure;

pub use measure::Pool;
pub(crate) use measure::counts;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "parallel",
    about: "large copies and zeroing by several threads, started for the call or kept waiting",
    seeds: &[],
    operations: &[Operation::Copy, Operation::Zero],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
