//! `buffer-reuse`.

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "buffer-reuse",
    about: "copies of 2 to 16 KiB into a buffer that was just used, as a ring's or a pool's, and into one in memory",
    seeds: &["001.10"],
    operations: &[Operation::Copy],
    refuses: &[(Flag::Residency, "it goes through its own destinations")],
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
