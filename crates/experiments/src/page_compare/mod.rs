//! `page-compare`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-compare",
    about: "pages compared where vector registers have to be saved first, as in a kernel",
    seeds: &["004.3", "004.5", "004.6", "004.8"],
    operations: &[Operation::Compare],
    classic: "",
    figures: measure::figures,
    run: measure::run,
};
