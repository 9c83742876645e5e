//! `page-colour`.

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-colour",
    about: "zeroing pages that compete for the same cache sets, by physical address (as root)",
    seeds: &["002.11"],
    operations: &[Operation::Zero],
    refuses: &[
        (Flag::Size, "its sizes follow from the cache"),
        (Flag::Residency, "a page's colour decides where it can be"),
    ],
    tables: Some(|rows| crate::values::VALUES_STORED.tables(rows)),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
