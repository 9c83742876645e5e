//! `zeroing-engines`.

mod engines;
mod measure;
mod say;
mod service;
mod table;

pub use measure::least_cost;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::ENGINE_AROUND;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zeroing-engines",
    about: "what zeroes memory in the background: CPU, system, GPU; its CPU time, the reader, a bystander",
    seeds: &["003.4", "003.19"],
    operations: &[Operation::Zero],
    takes: &[],
    refuses: &[
        (Flag::Kernels, "its candidates are engines, not kernels"),
        (Flag::Residency, "an engine zeroes what was written long ago"),
    ],
    classic: "",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[ENGINE_AROUND],
    serves: Serves::Pool,
    second: None,
    run: measure::run,
};
