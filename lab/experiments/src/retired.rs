//! Experiments that left: their questions are answered, their records are read, judged and drawn still.

use crate::prelude::*;

pub(crate) const PAGE_COLOUR: Experiment = Experiment {
    name: "page-colour",
    about: "zeroing pages that compete for the same cache sets",
    tables: |rows| crate::study::values::VALUES_STORED.tables(rows),
    ..PLAIN
};

pub(crate) const PARALLEL: Experiment = Experiment {
    name: "parallel",
    about: "large copies and zeroing by several threads",
    tables: |rows| THREADS_TOGETHER.tables(rows),
    ..PLAIN
};

/// Sizes against ways to share an operation among threads, in GB/s and over one thread.
const THREADS_TOGETHER: Grid = Grid {
    caption: |row| {
        let operation = &row.cell.operation;
        (format!("{operation} by several threads: GB/s (time over one thread's)"), None)
    },
    lines: (">bytes", |row| bytes(row.cell.size)),
    column: |row| Some((0.0, row.candidate.clone())),
    cell: |row| if row.candidate == row.reference { gbps(row) } else { speed(row) },
    legend: "spawned: threads made for the call; pooled: they wait for it; ~: cannot tell it from 1",
    ..Grid::PLAIN
};
