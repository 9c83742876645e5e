//! `sticky`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sticky",
    about: "how many calls until a routine is fast again after non-temporal stores to its destination",
    seeds: &["001.2"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    refuses: &[(Flag::Residency, "where the destination is left is what is measured")],
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
