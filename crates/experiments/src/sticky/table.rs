//! `sticky`: routines against the calls in a row.

use crate::tables::*;

/// `sticky`: routines and who wrote before against the calls in a row, in GB/s.
const CALLS: Grid = Grid {
    caption: |row| sized(row, format!("{}, {}: GB/s by call in a row", what(row), row.cell.state)),
    lines: ("routine", candidate),
    column: |row| row.axis(CALL).map(|call| (call, call.to_string())),
    cell: |row| gbps(row) + if is_slower(row) { "*" } else { "" },
    legend: "*: slower than the same call after temporal stores",
    asks: is_slower,
    ..Grid::PLAIN
};

fn is_slower(row: &Row) -> bool {
    row.verdict == Some(Verdict::Slower)
}

pub fn tables(rows: &[Row]) -> Vec<Table> {
    CALLS.tables(rows)
}
