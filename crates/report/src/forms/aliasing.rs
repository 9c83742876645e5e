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
        if let Some(page) = page.map(size_text) {
            caption.push_str(&format!(", {page} pages"));
        }
        if let Some(distance) = distance.map(size_text) {
            caption.push_str(&format!(", destination {distance} above the source and"));
        }
        let shown: Vec<&Row> =
            of_cell.iter().copied().filter(|row| !TWINS.contains(&axis(row, OFFSET))).collect();
        caption.push_str(": time over the same alignment half a page away, by offset");
        let offset = |row: &Row| axis(row, OFFSET);
        let ratio = |row: &Row| ratio(row).unwrap_or("-".to_owned());
        let mut table =
            pivot(caption, "kernel", &shown, offset, |value| format!("+{value}"), ratio);
        table.remark("offset: destination minus source modulo 4 KiB; ~: cannot tell it from 1");
        table.remarks.extend(unproved(&of_cell));
        tables.push(table);
    }
    let zeroed = rows.iter().filter(|row| row.cell.state == "pages");
    let key = |row: &Row| (row.cell.operation.clone(), row.cell.destination.clone(), row.cell.size);
    for ((operation, destination, size), of_cell) in groups(zeroed, key) {
        let place = destination.unwrap_or_default();
        let caption = format!("{operation}, {}, {place}: GB/s by page", bytes(size));
        let page = |row: &Row| axis(row, PAGE_BYTES);
        let mut table = pivot(caption, "kernel", &of_cell, page, size_text, gbps);
        table.remark("pages of one size after the other, not in turns");
        tables.push(table);
    }
    tables
}
