//! What the forms share: rows by cell, whole costs, and the columns that compare with the reference.

use cachewise_measure::{CellKey, PairedRatio, ProofVerdict, Row, stats};

/// Rows by cell, in the order the cells appear.
pub(super) fn by_cell(rows: &[Row]) -> Vec<(&CellKey, Vec<&Row>)> {
    let mut cells: Vec<(&CellKey, Vec<&Row>)> = Vec::new();
    for row in rows {
        match cells.iter_mut().find(|(key, _)| **key == row.cell) {
            Some((_, of_cell)) => of_cell.push(row),
            None => cells.push((&row.cell, vec![row])),
        }
    }
    cells
}

/// Operation, reader and bystander together, by round.
pub(super) fn whole(row: &Row) -> Vec<f64> {
    let part = |times: &[f64], round: usize| times.get(round).copied().unwrap_or(0.0);
    let sum = |(round, time): (usize, &f64)| {
        time + part(&row.reader_ns, round) + part(&row.bystander_ns, round)
    };
    row.operation_ns.iter().enumerate().map(sum).collect()
}

/// The median of some part; none where there is no such part.
pub(super) fn median(times: &[f64]) -> Option<f64> {
    (!times.is_empty()).then(|| stats::median(times))
}

/// The ratio that counts: of the sum where there are parts.
pub(super) fn ratio(row: &Row) -> Option<PairedRatio> {
    row.total_ratio.or(row.ratio)
}

/// Ratio, interval and verdict, as texts.
pub(super) fn comparison(row: &Row) -> [String; 3] {
    if row.contestant == row.reference {
        return ["1".to_owned(), String::new(), "reference".to_owned()];
    }
    match ratio(row) {
        None => ["-".to_owned(), String::new(), String::new()],
        Some(ratio) => [
            format!("{:.3}", ratio.median),
            format!("{:.3} .. {:.3}", ratio.low, ratio.high),
            ratio.verdict(0.01).to_string(),
        ],
    }
}

/// An axis of a cell, 0 where it has none.
pub(super) fn axis(key: &CellKey, name: &str) -> f64 {
    key.axes.get(name).copied().unwrap_or(0.0)
}

/// What the proofs of residency said over some rows, in a line; none where nothing was placed.
pub(super) fn residency<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<String> {
    let proofs: Vec<_> = rows.flat_map(|row| &row.proofs).collect();
    let worst = proofs.iter().max_by_key(|proof| proof.verdict)?;
    let held = proofs.iter().filter(|proof| proof.verdict == ProofVerdict::Proved).count();
    Some(if held == proofs.len() {
        format!("residency proved: all {held} operands were where they are said to be")
    } else {
        format!("residency proved for {held} of {} operands; worst: {}", proofs.len(), worst.text)
    })
}
