//! `prefault`.

mod measure;

use crate::experiment::{Experiment, Flag, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::LIBC;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "prefault",
    about: "memory made resident ahead: threads, page size, fresh or recycled",
    seeds: &["003.11"],
    operations: &[Operation::Zero],
    takes: &[],
    refuses: &[
        (Flag::Kernels, "it compares numbers of threads"),
        (Flag::Residency, "a fresh page is wherever it was zeroed"),
    ],
    classic: "",
    say: None,
    tables: None,
    figures: measure::figures,
    today: &[LIBC],
    serves: Serves::Tuner,
    run: measure::run,
};
