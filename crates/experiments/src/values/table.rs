//! `values`: kernels against what is stored.

use crate::tables::*;

/// `values` and `page-colour`: kernels against what is stored, in GB/s, copies and fills apart.
const VALUES_STORED: Grid = Grid {
    caption: |row| {
        let (part, place) = (part_of(row), row.cell.levels().unwrap_or_default());
        sized(row, format!("{part}, {}, {place}: GB/s", bytes(row.cell.size)))
    },
    column: |row| {
        let head = row.cell.state.trim_start_matches(part_of(row)).trim_start();
        Some((0.0, head.to_owned()))
    },
    legend: "in turn: the value and 0xA5 alternate over the same bytes; the mean of the two",
    asks: |row| row.cell.state.ends_with(super::measure::IN_TURN),
    proofs: true,
    ..Grid::PLAIN
};

/// Copying or storing.
fn part_of(row: &Row) -> &str {
    row.cell.state.split(' ').next().unwrap_or_default()
}

pub fn tables(rows: &[Row]) -> Vec<Table> {
    VALUES_STORED.tables(rows)
}
