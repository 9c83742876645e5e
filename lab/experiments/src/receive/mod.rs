//! `receive`.

mod measure;
mod table;
mod tcp_copies;

use crate::experiment::{Experiment, Flag, PLAIN, Part};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::{LIBC, STREAM, TCP, TCP_MESSAGE, TCP_PINNED_MESSAGE};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "receive",
    about: "copies from a device's ring to a user's buffer and back, by policy; TCP with fewer copies",
    seeds: &["001.1", "001.6-8", "002.14"],
    operations: &[Operation::Copy],
    refuses: &[(Flag::Residency, "the ring and the user's buffer have places of their own")],
    classic: "bcopy (rep movsq) and pagecopy (movnti, prefetchnta), buffers of 4k and 256k",
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[LIBC, TCP],
    second: Some(Part {
        experiment: &tcp_copies::PART,
        states: &[TCP_MESSAGE, TCP_PINNED_MESSAGE, STREAM],
    }),
    run: measure::run,
    ..PLAIN
};
