//! What the rows of `peers` amount to: how the library fares beside the best of the others. Pure.

use super::*;

/// What is asked of the library: nowhere slower than this part of the envelope's speed.
const LEAST: f64 = 0.97;

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
        let row = named(&of_cell, library)?;
        let peers =
            of_cell.iter().copied().filter(|row| crate::peers::is_peer(row) && !row.dropped);
        Some(Compared {
            row,
            best_peer: fastest(peers)?.candidate.as_str(),
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
    let enough =
        |cells: &[&Compared<'_>]| cells.iter().filter(|at| at.of_envelope >= LEAST).count();
    let of_all = |all: &[Compared<'_>]| enough(&all.iter().collect::<Vec<_>>());
    let (many, every) = (of_all(&all), all.len());
    let mut sentences = vec![format!(
        "The library has at least {LEAST} of the best peer's speed in {many} of {every} cells."
    )];
    let shared = compared(rows, SHARED);
    let worst = shared.iter().min_by(|a, b| a.of_envelope.total_cmp(&b.of_envelope));
    if let Some(worst) = worst {
        let (many, every, least) = (of_all(&shared), shared.len(), worst.of_envelope);
        let (operation, at) = (&worst.row.cell.operation, crate::peers::label(worst.row));
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
        let worst = cells.iter().min_by(|a, b| a.of_envelope.total_cmp(&b.of_envelope));
        let Some(worst) = worst else { continue };
        let at = crate::peers::label(worst.row);
        let (of_envelope, of_libc) = (mean(|at| at.of_envelope), mean(|at| at.of_libc));
        let (least, best_peer) = (worst.of_envelope, worst.best_peer);
        let (all, below) = (cells.len(), cells.len() - enough(&cells));
        sentences.push(format!(
            "{operation}: {of_envelope:.2} of the envelope's speed and {of_libc:.2} of libc's in the \
             geometric mean; worst {least:.2} of {best_peer} at {at}; below {LEAST} in {below} of {all} cells."
        ));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sentences::made_up::steady;

    fn cell(operation: &str, size: usize, of_envelope: f64, of_libc: f64) -> Vec<Row> {
        let key = steady::cell(operation, size, "warm");
        let mut library = steady::row(&key, LIBRARY, 100.0);
        library.extra.insert(OF_ENVELOPE.to_owned(), of_envelope);
        let (low, median, high) = (of_libc, of_libc, of_libc);
        library.ratio = Some(PairedRatio { median, low, high, rounds: 15 });
        let libc = steady::row(&key, LIBC, 100.0 / of_libc);
        vec![libc, library, steady::row(&key, "memx", 10.0)]
    }

    #[test]
    fn a_shared_library_is_told_beside() {
        let mut rows = cell("copy", 64, 1.0, 1.0);
        let mut shared = Row { candidate: SHARED.to_owned(), ..rows[1].clone() };
        shared.extra.insert(OF_ENVELOPE.to_owned(), 1.25);
        rows.push(shared);
        let told = verdicts(&rows);
        assert_eq!(
            told[0],
            "The library has at least 0.97 of the best peer's speed in 1 of 1 cells."
        );
        assert_eq!(
            told[1],
            "As a shared library, which libc is too, in 0 of 1; worst 0.80 of memx at copy 64 B."
        );
    }

    #[test]
    fn the_worst_cell_and_the_mean_are_told() {
        let rows =
            [cell("copy", 4096, 2.0, 0.5), cell("copy", 64, 0.5, 0.5), cell("zero", 64, 1.0, 1.0)];
        assert_eq!(
            verdicts(&rows.concat()),
            [
                "The library has at least 0.97 of the best peer's speed in 2 of 3 cells.",
                "copy: 1.00 of the envelope's speed and 2.00 of libc's in the geometric mean; worst \
                 0.50 of memx at 4 KiB; below 0.97 in 1 of 2 cells.",
                "zero: 1.00 of the envelope's speed and 1.00 of libc's in the geometric mean; worst \
                 1.00 of memx at 64 B; below 0.97 in 0 of 1 cells.",
            ]
        );
        assert!(verdicts(&[]).is_empty());
    }
}
