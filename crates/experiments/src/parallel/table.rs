//! `parallel`: sizes against numbers of threads.

use crate::tables::*;

/// `parallel`: sizes against ways to share an operation among threads, in GB/s and over one thread.
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

pub fn tables(rows: &[Row]) -> Vec<Table> {
    THREADS_TOGETHER.tables(rows)
}
