//! `parallel`: sizes against ways to share an operation among threads, in GB/s and over one thread.

use super::pivot::{columns, grid, speed};
use crate::Table;
use crate::rows::groups;
use crate::units::{bytes, significant};
use cachewise_measure::Row;

/// One table per operation.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    groups(rows, |row: &Row| row.cell.operation.clone())
        .into_iter()
        .map(|(operation, of_it)| table(&operation, &of_it))
        .collect()
}

fn table(operation: &str, rows: &[&Row]) -> Table {
    let mut table = grid(
        format!("{operation} by several threads: GB/s (time over one thread's)"),
        ">bytes",
        rows,
        &columns(rows, |row| row.candidate.clone(), String::clone),
        |row| (bytes(row.cell.size), row.candidate.clone()),
        |row| if row.candidate == row.reference { significant(row.gbps()) } else { speed(row) },
    );
    table.remarks.push(
        "spawned: threads made for the call; pooled: they wait for it; ~: cannot tell it from 1"
            .to_owned(),
    );
    table
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{exact as row, with_ratio};
    use super::*;
    use cachewise_measure::Verdict;

    #[test]
    fn ways_stand_in_columns() {
        let at = |state: &str, threads: f64, name: &str, ns: f64, verdict| {
            let axes = [("threads", threads)];
            let mut row = row(("copy", 8 << 20, state), (None, None), &axes, name, ns);
            row.reference = "1 thread".to_owned();
            with_ratio(row, ns / 1e6, verdict)
        };
        let rows = [
            at("alone", 1.0, "1 thread", 1e6, Verdict::CannotTell),
            at("spawned", 2.0, "2 spawned", 0.99e6, Verdict::CannotTell),
            at("pooled", 2.0, "2 pooled", 0.55e6, Verdict::Faster),
        ];
        let text: String = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text);
    }
}
