//! `extent`: kernels against the way an extent is covered, in GB/s and over one call.

use super::*;

/// One table per operation and extent.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    groups(rows, operation_and_size).into_iter().map(table).collect()
}

fn table(((operation, size), rows): ((String, u64), Vec<&Row>)) -> Table {
    let way = |row: &Row| (axis(row, CHUNK) as u64, axis(row, SHUFFLED) == 1.0);
    let head = |&(chunk, shuffled): &(u64, bool)| match shuffled {
        _ if chunk == size => "one call".to_owned(),
        true => format!("by {} shuffled", bytes(chunk)),
        false => format!("by {}", bytes(chunk)),
    };
    let caption = format!("{operation}, {}: GB/s (time over one call)", bytes(size));
    let ways = columns(&rows, way, head);
    let place = |row: &Row| (row.candidate.clone(), way(row));
    let cell = |row: &Row| if way(row).0 == size { gbps(row) } else { speed(row) };
    let mut table = grid(caption, "kernel", &rows, &ways, place, cell);
    table.remark("~: cannot tell it from 1; shuffled: every page once, in random order");
    table
}
