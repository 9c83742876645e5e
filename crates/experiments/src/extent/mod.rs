//! `extent`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "extent",
    about: "zeroing and copying in one large call, by 2 MiB, by 4 KiB, in order or shuffled",
    seeds: &["002.7", "003.2"],
    operations: &[Operation::Zero, Operation::Copy],
    refuses: &[(Flag::Residency, "an extent lies where its own last pass left it")],
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
