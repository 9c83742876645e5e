//! `extent`: kernels against the way an extent is covered.

use crate::tables::*;

/// `extent`: kernels against the way an extent is covered, in GB/s and over one call.
const EXTENTS: Grid = Grid {
    caption: |row| sized(row, what(row) + ": GB/s (time over one call)"),
    column: |row| {
        let chunk = axis(row, CHUNK) as u64;
        let head = match axis(row, SHUFFLED) == 1.0 {
            _ if chunk == row.cell.size => "one call".to_owned(),
            true => format!("by {} shuffled", bytes(chunk)),
            false => format!("by {}", bytes(chunk)),
        };
        Some((0.0, head))
    },
    cell: |row| if axis(row, CHUNK) as u64 == row.cell.size { gbps(row) } else { speed(row) },
    legend: "~: cannot tell it from 1; shuffled: every page once, in random order",
    ..Grid::PLAIN
};

pub fn tables(rows: &[Row]) -> Vec<Table> {
    EXTENTS.tables(rows)
}
