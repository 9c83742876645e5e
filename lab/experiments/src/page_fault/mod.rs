//! `page-fault`.

mod measure;
mod table;

pub use measure::verify;

use crate::experiment::{Experiment, Flag, PLAIN, Serves};
use cachewise_kernels::Operation;
use cachewise_measure::record::names::KERNEL_FAULT;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-fault",
    about: "zeroed pages: by page fault, populated, by calloc, from the page pool",
    seeds: &["003.1-15"],
    operations: &[Operation::Zero],
    refuses: &[
        (Flag::Kernels, "its candidates are ways to get a page, not kernels"),
        (Flag::Residency, "a fresh page is wherever it was zeroed"),
    ],
    classic: "256 MiB once and ten times over, one thread and two",
    tables: Some(table::tables),
    figures: measure::figures,
    today: &[KERNEL_FAULT],
    serves: Serves::Pool,
    run: measure::run,
    ..PLAIN
};
