//! `page-copy`.

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};
use crate::page_loops::{self, Words};
use cachewise_kernels::Operation;

const WORDS: Words =
    Words { work: "copying", last: "zeroes and copies by", of: measure::kernels_of };

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-copy",
    about: "copying the pages that a fork copies, then using them; a real fork; 2 MiB pages",
    seeds: &["000.4", "000.8-13", "000.15"],
    operations: &[Operation::Copy, Operation::Zero],
    refuses: &[(Flag::Residency, "the loop leaves its pages where it leaves them")],
    classic: "buffers of 256k to 4k, five runs of 5000 to 40000 loops, 4 KiB pages only",
    tables: Some(|rows| page_loops::tables(rows, &WORDS)),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
