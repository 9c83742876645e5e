//! `twins`: loops against their changes, one table a place.

use crate::prelude::*;

/// One table per cell: a line a loop, its speed, and its time with each change over that without.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    by_cell(rows).into_iter().map(table).collect()
}

fn table((key, of_cell): (&CellKey, Vec<&Row>)) -> Table {
    let place = key.levels().unwrap_or_else(|| key.state.to_string());
    let caption = format!("copy, {}, {place}: a loop, and it over itself changed", bytes(key.size));
    let changes = TWINS[1..].iter().map(|change| format!(">{}", change.trim_start_matches(", ")));
    let heads = ["loop", ">GB/s"].map(str::to_owned).into_iter().chain(changes);
    let mut table = Table::new(caption, &heads.collect::<Vec<_>>());
    for plain in of_cell.iter().filter(|row| row.candidate == row.reference) {
        let mut line = vec![plain.candidate.clone(), gbps(plain)];
        line.extend(TWINS[1..].iter().map(|change| {
            let name = format!("{}{change}", plain.candidate);
            let found = of_cell.iter().find(|row| row.candidate == name);
            or_dash(found.and_then(|row| Some((row.ratio?, row))), |(ratio, row)| {
                format!("{:.3}{}", ratio.median, doubt(row))
            })
        }));
        table.push(line);
    }
    table.remark("numbers are times over the loop without the change; ~: cannot tell it from 1");
    table.remarks.extend(unproved(&of_cell));
    table
}
