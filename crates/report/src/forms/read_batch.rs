//! `read-batch`: families against the bytes they read before writing, in GB/s; then seed 002's columns.

use super::pivot::{axis, pivot, unproved};
use crate::Table;
use crate::matrix::caption;
use crate::rows::groups;
use crate::units::{bytes, significant};
use cachewise_measure::record::names::READ_BYTES;
use cachewise_measure::{CellKey, Row};
use std::collections::BTreeMap;

/// One table per cell.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let cell = |row: &Row| CellKey { axes: BTreeMap::new(), ..row.cell.clone() };
    groups(rows, cell)
        .into_iter()
        .map(|(key, of_cell)| {
            let families: Vec<&Row> =
                of_cell.iter().copied().filter(|row| row.cell.axes.contains_key(READ_BYTES)).collect();
            let text = format!("{}: GB/s by the bytes read before writing", caption(&key));
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
            table.remarks.push(
                "g*: registers loaded before the first store; block*: bytes touched before they are copied"
                    .to_owned(),
            );
            table.remarks.extend(unproved(&of_cell));
            table
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::made_up::exact as row;
    use super::*;

    #[test]
    fn families_stand_against_bytes() {
        let at = |family: &str, read: f64, ns: f64| {
            row(
                ("copy", 4096, "placed"),
                (Some("L1"), Some("L1")),
                &[(READ_BYTES, read)],
                family,
                ns,
            )
        };
        let rows = [
            row(("copy", 4096, "placed"), (Some("L1"), Some("L1")), &[], "libc", 64.0),
            at("copy.avx.g*", 32.0, 81.92),
            at("copy.avx.g*", 256.0, 65.536),
            at("copy.avx.nt.block*", 512.0, 409.6),
        ];
        let text: String = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text);
    }
}
