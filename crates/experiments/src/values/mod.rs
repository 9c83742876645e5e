//! `values`.

mod measure;
mod say;
mod table;

pub(crate) use table::tables;

use crate::experiment::{Experiment, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "values",
    about: "does the value that is copied or stored matter: zeros, ones, random bytes, denormals?",
    seeds: &["002.12"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    takes: &[],
    refuses: &[],
    classic: "",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
