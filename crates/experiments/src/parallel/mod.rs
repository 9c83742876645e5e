//! `parallel`.

mod measure;
mod say;
mod table;

pub use measure::Pool;
pub(crate) use measure::counts;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "parallel",
    about: "large copies and zeroing by several threads, started for the call or kept waiting",
    seeds: &[],
    operations: &[Operation::Copy, Operation::Zero],
    takes: &[],
    refuses: &[
        (Flag::Kernels, "it compares numbers of threads"),
        (Flag::Residency, "one pair of buffers is used over and over"),
    ],
    classic: "",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    today: &["1 thread"],
    serves: Serves::Tuner,
    run: measure::run,
};
