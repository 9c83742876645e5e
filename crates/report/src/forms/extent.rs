//! `extent`: kernels against the way an extent is covered, in GB/s and over one call.

use super::pivot::{axis, gbps};
use crate::Table;
use crate::rows::groups;
use crate::units::{bytes, significant};
use cachewise_measure::{Row, Verdict};

const CHUNK: &str = "chunk";
const SHUFFLED: &str = "shuffled";

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
    let ways: Vec<(u64, bool)> =
        groups(rows.iter().copied(), way).into_iter().map(|(way, _)| way).collect();
    let mut heads = vec!["kernel".to_owned()];
    heads.extend(ways.iter().map(|(chunk, shuffled)| {
        let order = if *shuffled { " shuffled" } else { "" };
        if *chunk == size {
            ">one call".to_owned()
        } else {
            format!(">by {}{order}", bytes(*chunk))
        }
    }));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table =
        Table::new(format!("{operation}, {}: GB/s (time over one call)", bytes(size)), &heads);
    for (candidate, of_one) in groups(rows.iter().copied(), |row: &Row| row.candidate.clone()) {
        let mut line = vec![candidate];
        line.extend(ways.iter().map(
            |wanted| match of_one.iter().find(|row| way(row) == *wanted) {
                None => "-".to_owned(),
                Some(row) if wanted.0 == size => significant(gbps(row)),
                Some(row) => {
                    let ratio = row.ratio.map_or(String::new(), |ratio| {
                        let doubt = if row.verdict == Some(Verdict::CannotTell) { "~" } else { "" };
                        format!(" ({:.2}{doubt})", ratio.median)
                    });
                    format!("{}{ratio}", significant(gbps(row)))
                }
            },
        ));
        table.push(line);
    }
    table
        .remarks
        .push("~: cannot tell it from 1; shuffled: every page once, in random order".to_owned());
    table
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{exact as row, with_ratio};
    use super::*;

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
