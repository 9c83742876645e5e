//! `page-colour`.

mod measure;
mod say;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-colour",
    about: "zeroing pages that compete for the same cache sets, by physical address (as root)",
    seeds: &["002.11"],
    operations: &[Operation::Zero],
    takes: &[],
    refuses: &[
        (Flag::Size, "its sizes follow from the cache"),
        (Flag::Residency, "a page's colour decides where it can be"),
    ],
    classic: "",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(crate::values::tables),
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
