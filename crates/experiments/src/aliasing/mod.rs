//! `aliasing`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "aliasing",
    about: "source and destination nearly equal modulo 4 KiB; 4 KiB against 2 MiB pages",
    seeds: &["002.11"],
    operations: &[Operation::Copy, Operation::Zero],
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
