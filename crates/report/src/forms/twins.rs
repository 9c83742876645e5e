//! `twins`: loops against their changes, one table a place.

use super::*;

/// One table per cell: a line a loop, its speed, and its time with each change over that without.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let mut tables = Vec::new();
    for (key, of_cell) in by_cell(rows) {
        let place = key.levels().unwrap_or_else(|| key.state.to_string());
        let caption =
            format!("copy, {}, {place}: a loop, and it over itself changed", bytes(key.size));
        let mut heads = vec!["loop".to_owned(), ">GB/s".to_owned()];
        heads.extend(
            TWINS[1..].iter().map(|change| format!(">{}", change.trim_start_matches(", "))),
        );
        let mut table = Table::new(caption, &heads);
        for plain in of_cell.iter().filter(|row| row.candidate == row.reference) {
            let mut line = vec![plain.candidate.clone(), significant(plain.gbps())];
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
        table
            .remark("numbers are times over the loop without the change; ~: cannot tell it from 1");
        table.remarks.extend(unproved(&of_cell));
        tables.push(table);
    }
    tables
}
