//! `values`: kernels against what is stored, in GB/s.

use super::pivot::{columns, grid, unproved};
use crate::Table;
use crate::rows::groups;
use crate::units::{bytes, significant};
use cachewise_measure::Row;

/// One table per place, copies and fills apart.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let what = |row: &Row| row.cell.state.split(' ').next().unwrap_or_default().to_owned();
    let key = |row: &Row| {
        (what(row), row.cell.source.clone(), row.cell.destination.clone(), row.cell.size)
    };
    groups(rows, key)
        .into_iter()
        .map(|((what, source, destination, size), of_cell)| {
            let head = |state: &String| state.trim_start_matches(&what).trim_start().to_owned();
            let states = columns(&of_cell, |row| row.cell.state.to_string(), head);
            let place = match (source, destination) {
                (Some(source), Some(destination)) => format!("{source} to {destination}"),
                (_, destination) => destination.unwrap_or_default(),
            };
            let mut table = grid(
                format!("{what}, {}, {place}: GB/s", bytes(size)),
                "kernel",
                &of_cell,
                &states,
                |row| (row.candidate.clone(), row.cell.state.to_string()),
                |row| significant(row.gbps()),
            );
            if states.iter().any(|(state, _)| state.ends_with("in turn")) {
                table.remarks.push("in turn: the value and 0xA5 alternate over the same bytes; the mean of the two".to_owned());
            }
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
    fn values_stand_in_columns() {
        let fill = |state: &str, kernel: &str, ns: f64| {
            row(("fill", 4096, state), (None, Some("L1")), &[("value", 0.0)], kernel, ns)
        };
        let rows = [
            fill("storing zeros over zeros", "libc", 40.96),
            fill("storing zeros over others in turn", "libc", 81.92),
            fill("storing zeros over zeros", "zero.clzero", 409.6),
            row(
                ("copy", 4096, "copying denormals"),
                (Some("L1"), Some("L1")),
                &[("value", 3.0)],
                "copy.sse.nt",
                1024.0,
            ),
        ];
        let text: String = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text);
    }
}
