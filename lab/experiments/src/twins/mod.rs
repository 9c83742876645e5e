//! `twins`: one copying loop, and the same loop changed in one thing (000.6, 002.7).
//!
//! The changes: its first instruction is not aligned; it prefetches the source; it stores one word a
//! line somewhere else. Each loop takes turns with its own twin. Loops are of `movq` (seed 000) and
//! `movdqa` (seed 002), with temporal and with non-temporal stores, a line of 64 bytes a round.

#[cfg(target_arch = "x86_64")]
mod x86;

use crate::prelude::*;
#[cfg(target_arch = "x86_64")]
use x86::run;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "twins",
    about: "one copy loop with and without alignment, prefetch, and a store to another place",
    seeds: &["000.6", "002.7"],
    operations: &[Operation::Copy],
    takes: &["--size", "--residency"],
    tables,
    figures,
    run: Some(run),
    ..PLAIN
};

fn figures() -> Vec<Figure> {
    let title = "Time over the same loop without the change";
    vec![Figure::bars(title, "ratio").by(&["destination"])]
}

#[cfg(not(target_arch = "x86_64"))]
fn run(_: &mut Setting) -> Result {
    nothing("twins: its loops are the documents' own, which exist on x86 only")
}

/// One table per cell: a line a loop, its speed, and its time with each change over that without.
fn tables(rows: &[Row]) -> Vec<Table> {
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
