//! `prefault`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "prefault",
    about: "memory made resident ahead: threads, page size, fresh or recycled",
    seeds: &["003.11"],
    operations: &[Operation::Zero],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
