//! `page-fault`.

mod measure;

pub use measure::verify;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-fault",
    about: "zeroed pages: by page fault, populated, by calloc, from the page pool",
    seeds: &["003.1-15"],
    operations: &[Operation::Zero],
    classic: "256 MiB once and ten times over, one thread and two",
    figures: measure::figures,
    run: measure::run,
};
