//! `page-colour`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-colour",
    about: "zeroing pages that compete for the same cache sets, by physical address (as root)",
    seeds: &["002.11"],
    operations: &[Operation::Zero],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
