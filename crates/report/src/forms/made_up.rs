//! Rows that were never measured, to draw.

use cachewise_measure::{CellKey, PairedRatio, Row, Verdict};

/// A cell without levels, reader or bystander.
pub(super) fn cell(operation: &str, size: u64, state: &str) -> CellKey {
    CellKey::new(operation, size as usize, state)
}

/// Five rounds around a time, and a ratio to 1000 ns.
pub(super) fn row(cell: &CellKey, candidate: &str, reference: &str, nanoseconds: f64) -> Row {
    let median = nanoseconds / 1000.0;
    let ratio = PairedRatio { median, low: median * 0.98, high: median * 1.02, rounds: 15 };
    let times = [1.0, 0.99, 1.02, 1.0, 1.1].map(|part| part * nanoseconds).to_vec();
    let mut row = Row::new("made-up", cell.clone(), candidate, reference, times).with_ratio(ratio);
    row.calls = 100;
    row
}

/// A row of exact times, beside libc.
pub(super) fn exact(
    (operation, size, state): (&str, u64, &str),
    (source, destination): (Option<&str>, Option<&str>),
    axes: &[(&str, f64)],
    candidate: &str,
    ns: f64,
) -> Row {
    let mut cell = cell(operation, size, state).with(axes);
    (cell.source, cell.destination) = (source.map(str::to_owned), destination.map(str::to_owned));
    Row::new("made-up", cell, candidate, "libc", vec![ns; 15])
}

/// With a ratio.
pub(super) fn with_ratio(row: Row, median: f64, verdict: Verdict) -> Row {
    let ratio = PairedRatio { median, low: median - 0.01, high: median + 0.01, rounds: 15 };
    Row { ratio: Some(ratio), verdict: Some(verdict), ..row }
}
