//! `extent`: kernels against the way an extent is covered, in GB/s and over one call.

use super::*;

/// One table per operation and extent.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    groups(rows, |row: &Row| (row.cell.operation.clone(), row.cell.size))
        .into_iter()
        .map(|((operation, size), of_it)| table(&operation, size, &of_it))
        .collect()
}

fn table(operation: &str, size: u64, rows: &[&Row]) -> Table {
    let way = |row: &Row| (axis(row, CHUNK) as u64, axis(row, SHUFFLED) == 1.0);
    let head = |&(chunk, shuffled): &(u64, bool)| match shuffled {
        _ if chunk == size => "one call".to_owned(),
        true => format!("by {} shuffled", bytes(chunk)),
        false => format!("by {}", bytes(chunk)),
    };
    let mut table = grid(
        format!("{operation}, {}: GB/s (time over one call)", bytes(size)),
        "kernel",
        rows,
        &columns(rows, way, head),
        |row| (row.candidate.clone(), way(row)),
        |row| if way(row).0 == size { significant(row.gbps()) } else { speed(row) },
    );
    table.remark("~: cannot tell it from 1; shuffled: every page once, in random order");
    table
}
