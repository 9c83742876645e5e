//! `receive`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "receive",
    about: "copies from a device's ring to a user's buffer and back, by policy; TCP over loopback",
    seeds: &["001.1", "001.6-8", "002.14"],
    operations: &[Operation::Copy],
    classic: "bcopy (rep movsq) and pagecopy (movnti, prefetchnta), buffers of 4k and 256k",
    figures: measure::figures,
    run: measure::run,
};
