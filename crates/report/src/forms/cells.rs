//! What the forms share: rows by cell, axes, and what the proofs of residency said.

use cachewise_measure::{CellKey, ProofVerdict, Row};

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
