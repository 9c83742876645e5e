//! `parallel`: sizes against ways to share an operation among threads, in GB/s and over one thread.

use super::pivot::gbps;
use crate::Table;
use crate::rows::groups;
use crate::units::{bytes, significant};
use cachewise_measure::{Row, Verdict};

/// One table per operation.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    groups(rows, |row: &Row| row.cell.operation.clone())
        .into_iter()
        .map(|(operation, of_it)| table(&operation, &of_it))
        .collect()
}

fn table(operation: &str, rows: &[&Row]) -> Table {
    let ways: Vec<String> = groups(rows.iter().copied(), |row: &Row| row.candidate.clone())
        .into_iter()
        .map(|(way, _)| way)
        .collect();
    let mut heads = vec![">bytes".to_owned()];
    heads.extend(ways.iter().map(|way| format!(">{way}")));
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let mut table = Table::new(
        format!("{operation} by several threads: GB/s (time over one thread's)"),
        &heads,
    );
    for (size, of_one) in groups(rows.iter().copied(), |row: &Row| row.cell.size) {
        let mut line = vec![bytes(size)];
        line.extend(ways.iter().map(|way| {
            let Some(row) = of_one.iter().find(|row| row.candidate == *way) else {
                return "-".to_owned();
            };
            if row.candidate == row.reference {
                return significant(gbps(row));
            }
            let doubt = if row.verdict == Some(Verdict::CannotTell) { "~" } else { "" };
            let ratio = row.ratio.map_or(String::new(), |r| format!(" ({:.2}{doubt})", r.median));
            format!("{}{ratio}", significant(gbps(row)))
        }));
        table.push(line);
    }
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
