//! `peers` as a table per operation: the library beside the best peer, by size and by script.

use crate::prelude::*;

/// One table per operation; a row per cell.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    groups(rows, |row| row.cell.operation.as_str())
        .into_iter()
        .map(|(operation, rows)| table(operation, &rows))
        .collect()
}

fn table(operation: &str, rows: &[&Row]) -> Table {
    let others = rows.iter().filter(|row| is_peer(row) && row.candidate != row.reference);
    let peers = distinct(others.map(|row| row.candidate.as_str()));
    let shared = rows.iter().any(|row| row.candidate == SHARED);
    let mut columns = vec!["cell".to_owned(), ">libc ns".to_owned()];
    columns.extend(peers.iter().map(|peer| format!(">{peer}")));
    columns.extend(shared.then(|| ">shared".to_owned()));
    columns.extend([">library", ">95 % interval", ">of envelope", "best peer"].map(str::to_owned));
    let mut table = Table::new(format!("{operation}: speed as a multiple of libc's"), &columns);
    let number = |value: f64| {
        or_dash(Some(value).filter(|value| value.is_finite()), |value| format!("{value:.2}"))
    };
    for own in rows.iter().filter(|row| row.candidate == LIBRARY) {
        let here = || rows.iter().copied().filter(|row| row.cell == own.cell);
        let of = |name: &str| here().find(|row| row.candidate == name);
        let speed = |row: Option<&Row>| {
            number(row.and_then(|row| row.ratio).map_or(f64::NAN, |ratio| 1.0 / ratio.median))
        };
        let best = here()
            .filter(|row| is_peer(row) && !row.dropped)
            .min_by(|a, b| a.median_ns().total_cmp(&b.median_ns()));
        let libc_ns = of(&own.reference).map_or(f64::NAN, Row::median_ns);
        let mut cells = vec![label(own), significant(libc_ns)];
        cells.extend(peers.iter().map(|peer| speed(of(peer))));
        cells.extend(shared.then(|| speed(of(SHARED))));
        cells.push(speed(Some(own)));
        cells.push(or_dash(own.ratio.filter(PairedRatio::has_interval), |ratio| {
            format!("{:.2} .. {:.2}", 1.0 / ratio.high, 1.0 / ratio.low)
        }));
        cells.push(or_dash(own.figure(OF_ENVELOPE), |of| number(1.0 / of)));
        cells.push(best.map_or_else(String::new, |row| row.candidate.clone()));
        table.push(cells);
    }
    table
}

/// Tells whether a row is another library's.
pub(super) fn is_peer(row: &Row) -> bool {
    ![LIBRARY, SHARED].contains(&row.candidate.as_str())
}

/// A cell by its size and state.
pub(super) fn label(row: &Row) -> String {
    match (row.axis("span"), row.cell.state.as_str()) {
        (Some(span), state) => format!("{state}, over {}", bytes(span as u64)),
        (None, "warm") => bytes(row.cell.size),
        (None, state) => format!("{} {state}", bytes(row.cell.size)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewise_measure::{CellKey, PairedRatio};

    fn row(candidate: &str, ns: f64) -> Row {
        let (median, low, high) = (ns / 40.0, ns / 41.0, ns / 39.0);
        let cell = CellKey::new("copy", 4096, "misaligned");
        Row::new("peers", cell, candidate, "libc", vec![ns; 15])
            .with_ratio(PairedRatio { median, low, high, rounds: 15 })
            .with(&[(OF_ENVELOPE, ns / 32.0)])
    }

    #[test]
    fn a_cell_names_the_best_peer_and_how_the_library_stands_to_it() {
        let mut rows = vec![row("libc", 40.0), row("cachewise", 20.0), row("memx", 32.0)];
        assert_eq!(
            tables(&rows)[0].csv(),
            "cell,libc ns,memx,library,95 % interval,of envelope,best peer\n\
             4 KiB misaligned,40.0,1.25,2.00,1.95 .. 2.05,1.60,memx\n"
        );
        rows.push(row("cachewise.shared", 25.0));
        assert_eq!(
            tables(&rows)[0].csv(),
            "cell,libc ns,memx,shared,library,95 % interval,of envelope,best peer\n\
             4 KiB misaligned,40.0,1.25,1.60,2.00,1.95 .. 2.05,1.60,memx\n"
        );
    }
}
