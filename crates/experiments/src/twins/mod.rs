//! `twins`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "twins",
    about: "one copy loop with and without alignment, prefetch, and a store to another place",
    seeds: &["000.6", "002.7"],
    operations: &[Operation::Copy],
    takes: &[],
    refuses: &[(Flag::Kernels, "its candidates are its own")],
    classic: "",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
