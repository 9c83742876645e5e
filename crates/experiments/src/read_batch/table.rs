//! `read-batch`: families against the bytes they read before writing.

use crate::tables::*;

/// `read-batch`: families against the bytes they read before writing, in GB/s.
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

pub fn tables(rows: &[Row]) -> Vec<Table> {
    READ_BATCHES.tables(rows)
}
