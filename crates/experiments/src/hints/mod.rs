//! `hints`.

mod measure;
mod say;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hints",
    about: "does the hint `soon` make the reader faster, and does `never` spare the bystander?",
    seeds: &["000.14", "001.6"],
    operations: measure::OPERATIONS,
    takes: &[Flag::Op],
    refuses: &[
        (Flag::Kernels, "it compares whole libraries"),
        (Flag::Residency, "its buffers are warm"),
    ],
    classic: "",
    say: Some(say::verdicts),
    tables: None,
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Library,
    run: measure::run,
};
