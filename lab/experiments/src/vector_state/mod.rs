//! `vector-state`.

mod measure;
mod table;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "vector-state",
    about: "what saving vector registers costs; from how many bytes on a vector kernel gains more",
    seeds: &["002.17", "004.3", "004.4"],
    operations: &[Operation::Copy, Operation::Zero, Operation::Compare],
    takes: &["--kernels", "--size"],
    tables: table::tables,
    figures: measure::figures,
    run: Some(measure::run),
    ..PLAIN
};
