//! `sticky`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sticky",
    about: "how many calls until a routine is fast again after non-temporal stores to its destination",
    seeds: &["001.2"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
