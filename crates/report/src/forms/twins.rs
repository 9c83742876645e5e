//! `twins`: loops against their changes, one table a place.

use super::pivot::{gbps, unproved};
use crate::Table;
use crate::rows::by_cell;
use crate::units::{bytes, significant};
use cachewise_measure::record::names::TWINS;
use cachewise_measure::{Row, Verdict};

/// One table per cell: a line a loop, its speed, and its time with each change over that without.
#[must_use]
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let mut tables = Vec::new();
    for (key, of_cell) in by_cell(rows) {
        let place = match (&key.source, &key.destination) {
            (Some(source), Some(destination)) => format!("{source} to {destination}"),
            _ => key.state.to_string(),
        };
        let caption =
            format!("copy, {}, {place}: a loop, and it over itself changed", bytes(key.size));
        let mut heads = vec!["loop".to_owned(), ">GB/s".to_owned()];
        heads.extend(
            TWINS[1..].iter().map(|change| format!(">{}", change.trim_start_matches(", "))),
        );
        let mut table = Table::new(caption, &heads.iter().map(String::as_str).collect::<Vec<_>>());
        for plain in of_cell.iter().filter(|row| row.candidate == row.reference) {
            let mut line = vec![plain.candidate.clone(), significant(gbps(plain))];
            line.extend(TWINS[1..].iter().map(|change| {
                let name = format!("{}{change}", plain.candidate);
                let found = of_cell.iter().find(|row| row.candidate == name);
                found.and_then(|row| Some((row.ratio?, row.verdict))).map_or(
                    "-".to_owned(),
                    |(ratio, verdict)| {
                        let doubt = if verdict == Some(Verdict::CannotTell) { "~" } else { "" };
                        format!("{:.3}{doubt}", ratio.median)
                    },
                )
            }));
            table.push(line);
        }
        table.remarks.push(
            "numbers are times over the loop without the change; ~: cannot tell it from 1"
                .to_owned(),
        );
        table.remarks.extend(unproved(&of_cell));
        tables.push(table);
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{exact as row, with_ratio};
    use super::*;

    #[test]
    fn changes_stand_in_columns() {
        let at = |change: &str, ns: f64, verdict| {
            let name = format!("movq{change}");
            let made = row(("copy", 4096, "placed"), (Some("L1"), Some("L1")), &[], &name, ns);
            Row { reference: "movq".to_owned(), ..with_ratio(made, ns / 100.0, verdict) }
        };
        let rows = [
            at(TWINS[0], 100.0, Verdict::CannotTell),
            at(TWINS[1], 101.0, Verdict::CannotTell),
            at(TWINS[2], 95.0, Verdict::Faster),
            at(TWINS[4], 130.0, Verdict::Slower),
        ];
        let text: String = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text);
    }
}
