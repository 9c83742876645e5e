//! `receive`.

mod measure;
mod table;
mod tcp;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "receive",
    formerly: &["tcp-copies"],
    about: "copies from a device's ring to a user's buffer and back, by policy; a real TCP receive beside it",
    seeds: &["001.1", "001.6-8", "002.14"],
    operations: &[Operation::Copy],
    takes: &["--kernels", "--size"],
    classic: "bcopy (rep movsq) and pagecopy (movnti, prefetchnta), buffers of 4k and 256k",
    tables: table::tables,
    figures: measure::figures,
    today: &[LIBC, TCP],
    run: Some(measure::run),
    ..PLAIN
};
