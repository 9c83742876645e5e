//! `page-clear`.

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};
use crate::page_loops::{self, Words};
use crate::tables::aliases;
use cachewise_kernels::Operation;

const WORDS: Words = Words { work: "zeroing", last: "alias", of: aliases };

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-clear",
    about: "pages zeroed, touched and read: buffers of 2004 and of the sizes of this machine's caches",
    seeds: &["000.1-7", "000.9", "000.11-13", "000.15"],
    operations: &[Operation::Zero],
    refuses: &[(Flag::Residency, "the loop leaves its buffer where it leaves it")],
    classic: "buffers of 32k and 320k, five runs of 200000 and 20000 loops",
    tables: Some(|rows| page_loops::tables(rows, &WORDS)),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
