//! `page-compare`.

mod measure;
mod say;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-compare",
    about: "pages compared where vector registers have to be saved first, as in a kernel",
    seeds: &["004.3", "004.5", "004.6", "004.8"],
    operations: &[Operation::Compare],
    takes: &[Flag::Distribution],
    refuses: &[
        (Flag::Kernels, "its candidates are its own"),
        (Flag::Size, "it compares pages of 4096 bytes"),
        (Flag::Residency, "pages are too many for any cache"),
    ],
    classic: "",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: None,
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
