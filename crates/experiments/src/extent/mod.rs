//! `extent`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "extent",
    about: "zeroing and copying in one large call, by 2 MiB, by 4 KiB, in order or shuffled",
    seeds: &["002.7", "003.2"],
    operations: &[Operation::Zero, Operation::Copy],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
