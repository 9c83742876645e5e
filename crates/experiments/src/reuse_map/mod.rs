//! `reuse-map`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "reuse-map",
    about: "non-temporal against temporal stores, by size, and by how much is read how late",
    seeds: &["000.14", "001.6"],
    operations: &[Operation::Copy, Operation::Zero],
    classic: "mmx_APn and mmx_APN, 1 and 100 pages, read at once or deferred",
    figures: measure::figures,
    run: measure::run,
};
