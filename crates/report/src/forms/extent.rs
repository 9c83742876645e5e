//! `extent`: kernels against the way an extent is covered, in GB/s and over one call.

use super::pivot::{axis, columns, grid, speed};
use crate::Table;
use crate::rows::groups;
use crate::units::{bytes, significant};
use cachewise_measure::Row;
use cachewise_measure::record::names::{CHUNK, SHUFFLED};

/// One table per operation and extent.
#[must_use]
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
    table
        .remarks
        .push("~: cannot tell it from 1; shuffled: every page once, in random order".to_owned());
    table
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{exact as row, with_ratio};
    use super::*;
    use cachewise_measure::Verdict;

    #[test]
    fn ways_stand_in_columns() {
        let at = |chunk: f64, shuffled: f64, ns: f64, verdict| {
            let axes = [(CHUNK, chunk), (SHUFFLED, shuffled)];
            let row = row(("zero", 1 << 30, "extent"), (None, None), &axes, "zero.avx.nt", ns);
            with_ratio(row, ns / 1e8, verdict)
        };
        let rows = [
            at((1 << 30) as f64, 0.0, 1e8, Verdict::CannotTell),
            at(2097152.0, 0.0, 1.001e8, Verdict::CannotTell),
            at(4096.0, 0.0, 1.2e8, Verdict::Slower),
            at(4096.0, 1.0, 2e8, Verdict::Slower),
        ];
        let text: String = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text);
    }
}
