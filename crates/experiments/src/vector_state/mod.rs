//! `vector-state`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "vector-state",
    about: "what saving vector registers costs; from how many bytes on a vector kernel gains more",
    seeds: &["002.17", "004.3", "004.4"],
    operations: &[Operation::Copy, Operation::Zero, Operation::Compare],
    takes: &[],
    refuses: &[(Flag::Residency, "one pair of buffers is used over and over")],
    classic: "",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
