//! `roofline`.

mod measure;

pub(crate) use measure::{Ceilings, related, speeds};

use crate::experiment::{Experiment, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "roofline",
    about: "how fast each level can be read, written, written non-temporally and copied",
    seeds: &["002.15"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Equal],
    takes: &[],
    refuses: &[],
    classic: "",
    say: None,
    tables: None,
    figures: measure::speeds,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
