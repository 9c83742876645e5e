//! Tables of one quantity: candidates down, one coordinate across.

use crate::Table;
use crate::cells::{gbps, grid, unproved};
use crate::units::bytes;
use cachewise_measure::Row;
use cachewise_measure::record::groups;

pub struct Grid {
    /// The rows that take part.
    pub of: fn(&Row) -> bool,
    /// The caption: rows of the same caption, and of the same size where it is given, share a table.
    pub caption: fn(&Row) -> (String, Option<u64>),
    /// Title of the lines, and a row's line.
    pub lines: (&'static str, fn(&Row) -> String),
    /// A row's place among the columns, and its column's head.
    pub column: fn(&Row) -> Option<(f64, String)>,
    pub cell: fn(&Row) -> String,
    /// Remark that is added if some row asks for it.
    pub legend: &'static str,
    /// Returns whether a row asks for the remark.
    pub asks: fn(&Row) -> bool,
    /// True if rows without a column are remarked.
    pub others: bool,
    /// True if proofs of residency are remarked.
    pub proofs: bool,
}

impl Grid {
    /// The usual grid: all rows, a table for each operation and size, GB/s.
    pub const PLAIN: Grid = Grid {
        of: |_| true,
        caption: |row| (what(row), None),
        lines: ("kernel", candidate),
        column: |_| None,
        cell: gbps,
        legend: "",
        asks: |_| true,
        others: false,
        proofs: false,
    };

    /// A table per caption, in the order of their first appearance.
    pub fn tables(&self, rows: &[Row]) -> Vec<Table> {
        let table = |((caption, _), rows): (_, Vec<&Row>)| {
            let (first, line) = self.lines;
            let mut table = grid(caption, first, &rows, line, self.column, self.cell);
            for row in rows.iter().filter(|row| self.others && (self.column)(row).is_none()) {
                table.remark(format!("{}: {} GB/s", row.candidate, gbps(row)));
            }
            if !self.legend.is_empty() && rows.iter().any(|row| (self.asks)(row)) {
                table.remark(self.legend);
            }
            table.remarks.extend(unproved(&rows).into_iter().filter(|_| self.proofs));
            table
        };
        let of_it = rows.iter().filter(|row| (self.of)(row));
        groups(of_it, self.caption).into_iter().map(table).collect()
    }
}

pub fn candidate(row: &Row) -> String {
    row.candidate.clone()
}

/// Operation and size of a row.
pub fn what(row: &Row) -> String {
    format!("{}, {}", row.cell.operation, bytes(row.cell.size))
}

/// A caption whose rows share a table where their size is the same.
pub fn sized(row: &Row, caption: String) -> (String, Option<u64>) {
    (caption, Some(row.cell.size))
}
