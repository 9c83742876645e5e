//! `page-copy`.

mod measure;

use crate::experiment::Experiment;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "page-copy",
    about: "copying the pages that a fork copies, then using them; a real fork; 2 MiB pages",
    seeds: &["000.4", "000.8-13", "000.15"],
    operations: &[Operation::Copy, Operation::Zero],
    classic: "buffers of 256k to 4k, five runs of 5000 to 40000 loops, 4 KiB pages only",
    figures: measure::figures,
    run: measure::run,
};
