//! `values`.

mod measure;
mod say;
mod table;

pub(crate) use table::tables;

use crate::experiment::{Experiment, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "values",
    about: "does the value that is copied or stored matter: zeros, ones, random bytes, denormals?",
    seeds: &["002.12"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
