//! A summary of the rows of `peers`: how the library fares beside the best of the others. Pure.

use super::table::{is_peer, label};
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
