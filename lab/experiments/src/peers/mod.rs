//! `peers`.

mod measure;
mod say;

pub(crate) use measure::of_envelope;

use crate::prelude::*;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "peers",
    about: "the library, libc and other libraries, by size and with the sizes programs use",
    seeds: &["002.16"],
    operations: measure::OPERATIONS,
    takes: &["--size", "--op", "--peer", "--libc", "--distribution"],
    say: say::verdicts,
    tables: say::tables,
    figures: measure::figures,
    serves: Serves::Library,
    run: Some(measure::run),
    ..PLAIN
};
