//! `aliasing`: kernels against offsets, as time over the twin half a page further on; pages beside
//! each other.

use super::*;

/// Offsets from here to a line further are the twins the others are compared with.
const TWINS: std::ops::Range<f64> = 2048.0..2112.0;

/// A table per place and page size, one per power of two, and one of zeroing by pages.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let mut tables = Vec::new();
    let aliased = rows.iter().filter(|row| row.cell.axes.contains_key(OFFSET));
    let key = |row: &Row| {
        let further = [PAGE_BYTES, DISTANCE].map(|name| row.cell.axis(name));
        (row.cell.levels(), row.cell.size, further)
    };
    for ((levels, size, [page, distance]), of_cell) in groups(aliased, key) {
        let mut caption = format!("copy, {}", bytes(size));
        if let Some(levels) = levels {
            caption.push_str(&format!(", {levels}"));
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
        table.remark("offset: destination minus source modulo 4 KiB; ~: cannot tell it from 1");
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
        table.remark("pages of one size after the other, not in turns");
        tables.push(table);
    }
    tables
}
