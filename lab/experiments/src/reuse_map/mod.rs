//! `reuse-map`.

mod hints;
mod measure;
mod table;

use crate::experiment::{Experiment, PLAIN, Part};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "reuse-map",
    about: "non-temporal against temporal stores, by size and by how much is read how late; what hints do",
    seeds: &["000.14", "001.6"],
    operations: &[Operation::Copy, Operation::Zero],
    classic: "mmx_APn and mmx_APN, 1 and 100 pages, read at once or deferred",
    tables: Some(table::tables),
    figures: measure::figures,
    second: Some(Part { experiment: &hints::PART, states: &["read", "beside"] }),
    run: measure::run,
    ..PLAIN
};
