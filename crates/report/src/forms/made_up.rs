//! Rows that were never measured, to draw.

use cachewise_measure::{CellKey, PairedRatio, Row};
use std::collections::BTreeMap;

/// A cell without levels, reader or bystander.
pub(super) fn cell(operation: &str, size: u64, state: &str) -> CellKey {
    CellKey {
        operation: operation.to_owned(),
        size,
        source: None,
        destination: None,
        state: state.into(),
        reader: None,
        bystander: None,
        axes: BTreeMap::new(),
    }
}

/// Five rounds around a time, and a ratio to 1000 ns.
pub(super) fn row(cell: &CellKey, candidate: &str, reference: &str, nanoseconds: f64) -> Row {
    let ratio = nanoseconds / 1000.0;
    let ratio = PairedRatio { median: ratio, low: ratio * 0.98, high: ratio * 1.02, rounds: 15 };
    Row {
        experiment: "made-up".to_owned(),
        cell: cell.clone(),
        candidate: candidate.to_owned(),
        reference: reference.to_owned(),
        calls: 100,
        operation_ns: [1.0, 0.99, 1.02, 1.0, 1.1].map(|part| part * nanoseconds).to_vec(),
        reader_ns: Vec::new(),
        bystander_ns: Vec::new(),
        ratio: Some(ratio),
        verdict: Some(ratio.verdict(cachewise_measure::MARGIN)),
        total_ratio: None,
        proofs: Vec::new(),
        drift: None,
        dropped: false,
        extra: BTreeMap::new(),
        histogram: None,
    }
}
