//! `zeroing-engines`.

mod engines;
mod measure;
mod table;

pub use measure::least_cost;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zeroing-engines",
    about: "what zeroes memory in the background: CPU, system, GPU; its CPU time, the reader, a bystander",
    seeds: &["003.4", "003.19"],
    operations: &[Operation::Zero],
    takes: &["--size"],
    tables: table::tables,
    figures: measure::figures,
    today: &[ENGINE_AROUND],
    serves: Serves::Pool,
    run: Some(measure::run),
    ..PLAIN
};
