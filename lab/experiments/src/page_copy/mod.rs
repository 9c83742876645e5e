//! `page-copy`.

mod measure;

pub(crate) use measure::kernels_of;

use crate::experiment::{Experiment, Flag, PLAIN};
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-copy",
    about: "copying the pages that a fork copies, then using them; a real fork; 2 MiB pages",
    seeds: &["000.4", "000.8-13", "000.15"],
    operations: &[Operation::Copy, Operation::Zero],
    refuses: &[(Flag::Residency, "the loop leaves its pages where it leaves them")],
    classic: "buffers of 256k to 4k, five runs of 5000 to 40000 loops, 4 KiB pages only",
    tables: Some(crate::page_loops::tables),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};
