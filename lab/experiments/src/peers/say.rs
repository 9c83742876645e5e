use crate::prelude::*;
use cachewise_judge::margin::HEADLINE;

/// The aim of the library: nowhere slower than this part of the envelope's speed.
const LEAST: f64 = 1.0 - HEADLINE;

/// The library in one cell.
struct Compared<'r> {
    row: &'r Row,
    best_peer: &'r str,
    /// Its speed over that of the best peer, and over libc's.
    of_envelope: f64,
    of_libc: f64,
}

fn compared<'r>(rows: &'r [Row], library: &str) -> Vec<Compared<'r>> {
    let compare = |(_, of_cell): (&CellKey, Vec<&'r Row>)| -> Option<Compared<'r>> {
        let row = of_cell.iter().copied().find(|row| row.candidate == library)?;
        let peers = of_cell.iter().copied().filter(|row| is_peer(row) && !row.dropped);
        Some(Compared {
            row,
            best_peer: peers
                .min_by(|a, b| a.median_ns().total_cmp(&b.median_ns()))?
                .candidate
                .as_str(),
            of_envelope: 1.0 / row.extra.get(OF_ENVELOPE)?,
            of_libc: row.ratio.map_or(f64::NAN, |ratio| 1.0 / ratio.median),
        })
    };
    by_cell(rows).into_iter().filter_map(compare).collect()
}

/// One sentence over all, linked into the program and in a shared library, then one per operation with its worst
/// cell where it is linked into the program.
pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let all = compared(rows, LIBRARY);
    if all.is_empty() {
        return Vec::new();
    }
    let (many, every) = (enough(&all), all.len());
    let mut sentences = vec![format!(
        "The library has at least {LEAST} of the best peer's speed in {many} of {every} cells."
    )];
    let shared = compared(rows, SHARED);
    if let Some(worst) = worst(&shared) {
        let (many, every, least) = (enough(&shared), shared.len(), worst.of_envelope);
        let (operation, at) = (&worst.row.cell.operation, label(worst.row));
        sentences.push(format!(
            "As a shared library, which libc is too, in {many} of {every}; worst {least:.2} of {} at {operation} \
             {at}.",
            worst.best_peer
        ));
    }
    for (operation, cells) in groups(&all, |at: &Compared<'_>| at.row.cell.operation.clone()) {
        let mean = |of: fn(&Compared<'_>) -> f64| {
            let known = cells.iter().map(|at| of(at)).filter(|ratio| ratio.is_finite());
            stats::geometric_mean(&known.collect::<Vec<_>>())
        };
        let Some(worst) = worst(cells.iter().copied()) else { continue };
        let at = label(worst.row);
        let (of_envelope, of_libc) = (mean(|at| at.of_envelope), mean(|at| at.of_libc));
        let (least, best_peer) = (worst.of_envelope, worst.best_peer);
        let (all, below) = (cells.len(), cells.len() - enough(cells.iter().copied()));
        sentences.push(format!(
            "{operation}: {of_envelope:.2} of the envelope's speed and {of_libc:.2} of libc's in the \
             geometric mean; worst {least:.2} of {best_peer} at {at}; below {LEAST} in {below} of {all} cells."
        ));
    }
    sentences
}

/// In how many cells the library is fast enough.
fn enough<'c>(cells: impl IntoIterator<Item = &'c Compared<'c>>) -> usize {
    cells.into_iter().filter(|at| at.of_envelope >= LEAST).count()
}

fn worst<'c>(cells: impl IntoIterator<Item = &'c Compared<'c>>) -> Option<&'c Compared<'c>> {
    cells.into_iter().min_by(|a, b| a.of_envelope.total_cmp(&b.of_envelope))
}

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
