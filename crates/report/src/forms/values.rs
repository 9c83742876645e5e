//! `values`: kernels against what is stored, in GB/s.

use super::*;

/// One table per place, copies and fills apart.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let what = |row: &Row| row.cell.state.split(' ').next().unwrap_or_default().to_owned();
    let key = |row: &Row| (what(row), row.cell.levels().unwrap_or_default(), row.cell.size);
    groups(rows, key)
        .into_iter()
        .map(|((what, place, size), of_cell)| {
            let head = |state: &String| state.trim_start_matches(&what).trim_start().to_owned();
            let states = columns(&of_cell, |row| row.cell.state.to_string(), head);
            let caption = format!("{what}, {}, {place}: GB/s", bytes(size));
            let place = |row: &Row| (row.candidate.clone(), row.cell.state.to_string());
            let mut table = grid(caption, "kernel", &of_cell, &states, place, gbps);
            if states.iter().any(|(state, _)| state.ends_with("in turn")) {
                table.remark(
                    "in turn: the value and 0xA5 alternate over the same bytes; the mean of the \
                     two",
                );
            }
            table.remarks.extend(unproved(&of_cell));
            table
        })
        .collect()
}
