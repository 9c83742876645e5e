//! `sticky`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sticky",
    about: "how many calls until a routine is fast again after non-temporal stores to its destination",
    seeds: &["001.2"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    takes: &[],
    refuses: &[(Flag::Residency, "where the destination is left is what is measured")],
    classic: "",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
