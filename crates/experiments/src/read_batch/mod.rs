//! `read-batch`.

mod measure;
mod say;
mod table;

use crate::experiment::{Experiment, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "read-batch",
    about: "how many bytes to read before writing them: loads before stores, block prefetch",
    seeds: &["002.4", "002.7", "002.8", "002.10"],
    operations: &[Operation::Copy],
    classic: "the kernels of 2007 (movdqa one by one and 8 by 8, Dillon's, movntq and movnti with block prefetch), in L1, in L2 and uncached",
    say: Some(|rows, _| say::verdicts(rows)),
    tables: Some(table::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
