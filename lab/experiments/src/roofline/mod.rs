//! `roofline`.

mod measure;

pub(crate) use measure::{Ceilings, related, speeds};

use crate::experiment::{Experiment, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "roofline",
    about: "how fast each level can be read, written, written non-temporally and copied",
    seeds: &["002.15"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Equal],
    figures: measure::speeds,
    run: measure::run,
    ..PLAIN
};
