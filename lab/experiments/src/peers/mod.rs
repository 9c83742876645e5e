//! `peers`.

mod measure;
mod say;
mod table;

pub(crate) use measure::of_envelope;

use crate::experiment::{Experiment, Flag, PLAIN, Serves};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "peers",
    about: "the library, libc and other libraries, by size and with the sizes programs use",
    seeds: &["002.16"],
    operations: measure::OPERATIONS,
    takes: &[Flag::Op, Flag::Peer, Flag::Libc, Flag::Distribution],
    refuses: &[
        (Flag::Kernels, "it compares whole libraries"),
        (Flag::Residency, "its buffers are warm"),
    ],
    say: Some(say::verdicts),
    tables: Some(table::tables),
    figures: measure::figures,
    serves: Serves::Library,
    run: measure::run,
    ..PLAIN
};
