//! `tcp-copies`.

mod measure;
mod say;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::TCP;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "tcp-copies",
    about: "TCP over loopback: read, MSG_ZEROCOPY, TCP_ZEROCOPY_RECEIVE and io_uring",
    seeds: &["001.7"],
    operations: &[Operation::Copy],
    takes: &[],
    refuses: &[
        (Flag::Kernels, "its candidates are its own"),
        (Flag::Residency, "the kernel's buffers are where it puts them"),
    ],
    classic: "messages of 4k and 256k",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: None,
    figures: measure::figures,
    today: &[TCP],
    serves: Serves::Tuner,
    run: measure::run,
};
