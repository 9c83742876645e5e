//! `zeroing-engines`.

mod engines;
mod measure;
mod service;
mod table;

pub use measure::least_cost;

use crate::experiment::{Experiment, Flag, PLAIN, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::ENGINE_AROUND;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zeroing-engines",
    about: "what zeroes memory in the background: CPU, system, GPU; its CPU time, the reader, a bystander",
    seeds: &["003.4", "003.19"],
    operations: &[Operation::Zero],
    refuses: &[
        (Flag::Kernels, "its candidates are engines, not kernels"),
        (Flag::Residency, "an engine zeroes what was written long ago"),
    ],
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[ENGINE_AROUND],
    serves: Serves::Pool,
    run: measure::run,
    ..PLAIN
};
