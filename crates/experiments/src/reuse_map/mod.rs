//! `reuse-map`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "reuse-map",
    about: "non-temporal against temporal stores, by size, and by how much is read how late",
    seeds: &["000.14", "001.6"],
    operations: &[Operation::Copy, Operation::Zero],
    takes: &[],
    refuses: &[],
    classic: "mmx_APn and mmx_APN, 1 and 100 pages, read at once or deferred",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
