//! `parallel`: sizes against ways to share an operation among threads, in GB/s and over one thread.

use super::*;

/// One table per operation.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    groups(rows, |row| &row.cell.operation).into_iter().map(table).collect()
}

fn table((operation, rows): (&String, Vec<&Row>)) -> Table {
    let caption = format!("{operation} by several threads: GB/s (time over one thread's)");
    let ways = columns(&rows, |row| row.candidate.clone(), String::clone);
    let place = |row: &Row| (bytes(row.cell.size), row.candidate.clone());
    let cell = |row: &Row| if row.candidate == row.reference { gbps(row) } else { speed(row) };
    let mut table = grid(caption, ">bytes", &rows, &ways, place, cell);
    table.remark(
        "spawned: threads made for the call; pooled: they wait for it; ~: cannot tell it from 1",
    );
    table
}
