//! `receive`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::{LIBC, TCP};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "receive",
    about: "copies from a device's ring to a user's buffer and back, by policy; TCP over loopback",
    seeds: &["001.1", "001.6-8", "002.14"],
    operations: &[Operation::Copy],
    takes: &[],
    refuses: &[(Flag::Residency, "the ring and the user's buffer have places of their own")],
    classic: "bcopy (rep movsq) and pagecopy (movnti, prefetchnta), buffers of 4k and 256k",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[LIBC, TCP],
    serves: Serves::Tuner,
    run: measure::run,
};
