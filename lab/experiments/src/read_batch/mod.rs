//! `read-batch`.

mod measure;

use crate::experiment::{Experiment, PLAIN};
use crate::tables::*;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "read-batch",
    about: "how many bytes to read before writing them: loads before stores, block prefetch",
    seeds: &["002.4", "002.7", "002.8", "002.10"],
    operations: &[Operation::Copy],
    classic: "the kernels of 2007 (movdqa one by one and 8 by 8, Dillon's, movntq and movnti with block prefetch), in L1, in L2 and uncached",
    tables: Some(|rows| READ_BATCHES.tables(rows)),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};

/// Families against the bytes they read before writing, in GB/s.
const READ_BATCHES: Grid = Grid {
    caption: |row| {
        let place = cachewise_report::matrix::caption(&row.cell);
        sized(row, format!("{place}: GB/s by the bytes read before writing"))
    },
    lines: ("family", candidate),
    column: |row| row.axis(READ_BYTES).map(|read| (read, size_text(read))),
    legend: "g*: registers loaded before the first store; block*: bytes touched before they are copied",
    others: true,
    proofs: true,
    ..Grid::PLAIN
};
