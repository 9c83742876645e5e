//! `aliasing`: kernels against offsets, as time over the twin half a page further on; pages beside
//! each other.

use super::pivot::{axis, pivot, ratio, unproved};
use crate::Table;
use crate::rows::groups;
use crate::units::{bytes, significant};
use cachewise_measure::Row;
use cachewise_measure::record::names::{DISTANCE, OFFSET, PAGE_BYTES};

/// Offsets from here to a line further are the twins the others are compared with.
const TWINS: std::ops::Range<f64> = 2048.0..2112.0;

/// A table per place and page size, one per power of two, and one of zeroing by pages.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let mut tables = Vec::new();
    let aliased = rows.iter().filter(|row| row.cell.axes.contains_key(OFFSET));
    let key = |row: &Row| {
        let further = [PAGE_BYTES, DISTANCE].map(|name| row.cell.axes.get(name).copied());
        (row.cell.source.clone(), row.cell.destination.clone(), row.cell.size, further)
    };
    for ((source, destination, size, [page, distance]), of_cell) in groups(aliased, key) {
        let mut caption = format!("copy, {}", bytes(size));
        if let (Some(source), Some(destination)) = (source, destination) {
            caption.push_str(&format!(", {source} to {destination}"));
        }
        if let Some(page) = page {
            caption.push_str(&format!(", {} pages", bytes(page as u64)));
        }
        if let Some(distance) = distance {
            caption.push_str(&format!(
                ", destination {} above the source and",
                bytes(distance as u64)
            ));
        }
        let shown: Vec<&Row> =
            of_cell.iter().copied().filter(|row| !TWINS.contains(&axis(row, OFFSET))).collect();
        let mut table = pivot(
            format!("{caption}: time over the same alignment half a page away, by offset"),
            "kernel",
            &shown,
            |row| axis(row, OFFSET),
            |value| format!("+{value}"),
            |row| ratio(row).unwrap_or("-".to_owned()),
        );
        table.remarks.push(
            "offset: destination minus source modulo 4 KiB; ~: cannot tell it from 1".to_owned(),
        );
        table.remarks.extend(unproved(&of_cell));
        tables.push(table);
    }
    let zeroed: Vec<&Row> = rows.iter().filter(|row| row.cell.state == "pages").collect();
    let key = |row: &Row| (row.cell.operation.clone(), row.cell.destination.clone(), row.cell.size);
    for ((operation, destination, size), of_cell) in groups(zeroed.iter().copied(), key) {
        let caption = format!(
            "{operation}, {}, {}: GB/s by page",
            bytes(size),
            destination.unwrap_or_default()
        );
        let mut table = pivot(
            caption,
            "kernel",
            &of_cell,
            |row| axis(row, PAGE_BYTES),
            |value| bytes(value as u64),
            |row| significant(row.gbps()),
        );
        table.remarks.push("pages of one size after the other, not in turns".to_owned());
        tables.push(table);
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{exact as row, with_ratio};
    use super::*;
    use cachewise_measure::Verdict;

    #[test]
    fn offsets_stand_in_columns_and_twins_are_left_out() {
        let at = |kernel: &str, offset: f64, ratio: f64, verdict| {
            let axes = [(OFFSET, offset), (PAGE_BYTES, 4096.0)];
            with_ratio(
                row(("copy", 4096, "aliased"), (Some("L1"), Some("L1")), &axes, kernel, 50.0),
                ratio,
                verdict,
            )
        };
        let zero = |page: f64, ns: f64| {
            row(("zero", 4096, "pages"), (None, Some("DRAM")), &[(PAGE_BYTES, page)], "libc", ns)
        };
        let rows = [
            at("libc", 0.0, 1.0, Verdict::CannotTell),
            at("libc", 16.0, 1.4, Verdict::Slower),
            at("libc", 2048.0, 1.0, Verdict::CannotTell),
            at("copy.rep.movsb", 16.0, 3.0, Verdict::Slower),
            zero(4096.0, 409.6),
            zero(2097152.0, 204.8),
        ];
        let text: String = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text);
    }
}
