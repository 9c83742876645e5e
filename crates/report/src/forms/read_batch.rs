//! `read-batch`: families against the bytes they read before writing, in GB/s; then seed 002's columns.

use super::*;

/// One table per cell.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let cell = |row: &Row| CellKey { axes: BTreeMap::new(), ..row.cell.clone() };
    groups(rows, cell)
        .into_iter()
        .map(|(key, of_cell)| {
            let in_family = |row: &&Row| row.cell.axes.contains_key(READ_BYTES);
            let (families, others): (Vec<&Row>, Vec<&Row>) =
                of_cell.iter().copied().partition(in_family);
            let text =
                format!("{}: GB/s by the bytes read before writing", crate::matrix::caption(&key));
            let read = |row: &Row| axis(row, READ_BYTES);
            let mut table = pivot(text, "family", &families, read, size_text, gbps);
            for row in others {
                table.remark(format!("{}: {} GB/s", row.candidate, gbps(row)));
            }
            table.remark(
                "g*: registers loaded before the first store; block*: bytes touched before they \
                 are copied",
            );
            table.remarks.extend(unproved(&of_cell));
            table
        })
        .collect()
}
