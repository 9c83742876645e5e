//! `vector-state`.

mod measure;
mod table;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "vector-state",
    about: "what saving vector registers costs; from how many bytes on a vector kernel gains more",
    seeds: &["002.17", "004.3", "004.4"],
    operations: &[Operation::Copy, Operation::Zero, Operation::Compare],
    refuses: &[(Flag::Residency, "one pair of buffers is used over and over")],
    tables: Some(table::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
