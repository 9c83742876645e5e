//! `read-batch`: families against the bytes they read before writing, in GB/s; then seed 002's columns.

use super::*;

/// One table per cell.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let cell = |row: &Row| CellKey { axes: BTreeMap::new(), ..row.cell.clone() };
    groups(rows, cell)
        .into_iter()
        .map(|(key, of_cell)| {
            let families: Vec<&Row> = of_cell
                .iter()
                .copied()
                .filter(|row| row.cell.axes.contains_key(READ_BYTES))
                .collect();
            let text =
                format!("{}: GB/s by the bytes read before writing", crate::matrix::caption(&key));
            let mut table = pivot(
                text,
                "family",
                &families,
                |row| axis(row, READ_BYTES),
                |value| bytes(value as u64),
                |row| significant(row.gbps()),
            );
            for row in of_cell.iter().filter(|row| !row.cell.axes.contains_key(READ_BYTES)) {
                table.remarks.push(format!("{}: {} GB/s", row.candidate, significant(row.gbps())));
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
