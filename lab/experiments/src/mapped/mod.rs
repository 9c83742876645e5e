//! `mapped`: scattered pages mapped into a line and copied by one call, against a loop over the pages (002.33).

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "mapped",
    about: "scattered pages copied page by page, or mapped into a line and copied by one call",
    seeds: &["002.33"],
    operations: &[Operation::Copy],
    refuses: &[
        (Flag::Kernels, "every way copies by libc's memcpy"),
        (Flag::Residency, "pages lie where the last copy left them"),
    ],
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
