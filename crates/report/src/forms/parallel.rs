//! `parallel`: sizes against ways to share an operation among threads, in GB/s and over one thread.

use super::*;

/// One table per operation.
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
    table.remark(
        "spawned: threads made for the call; pooled: they wait for it; ~: cannot tell it from 1",
    );
    table
}
