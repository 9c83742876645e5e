//! What the forms share: rows against columns of one quantity, axes, proofs of residency.

use crate::Table;
use crate::rows::groups;
use cachewise_measure::{ProofVerdict, Row, stats};

/// An axis of a row, NaN where it has none.
pub(super) fn axis(row: &Row, name: &str) -> f64 {
    row.cell.axes.get(name).copied().unwrap_or(f64::NAN)
}

/// Nanoseconds per call.
pub(super) fn ns(row: &Row) -> f64 {
    stats::median(&row.operation_ns)
}

/// GB/s.
pub(super) fn gbps(row: &Row) -> f64 {
    row.cell.size as f64 / ns(row)
}

/// One line per candidate, one column per value of `column` (ascending), `cell` in between. Absent
/// combinations are `-`.
pub(super) fn pivot(
    caption: String,
    first: &str,
    rows: &[&Row],
    column: impl Fn(&Row) -> f64,
    head: impl Fn(f64) -> String,
    cell: impl Fn(&Row) -> String,
) -> Table {
    let mut columns: Vec<f64> =
        rows.iter().map(|row| column(row)).filter(|x| !x.is_nan()).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    let mut heads = vec![first.to_owned()];
    heads.extend(columns.iter().map(|value| format!(">{}", head(*value))));
    let mut table = Table::new(caption, &heads.iter().map(String::as_str).collect::<Vec<_>>());
    for (candidate, of_one) in groups(rows.iter().copied(), |row: &Row| row.candidate.clone()) {
        let mut line = vec![candidate];
        line.extend(columns.iter().map(|value| {
            let found = of_one.iter().find(|row| column(row) == *value);
            found.map_or("-".to_owned(), |row| cell(row))
        }));
        table.push(line);
    }
    table
}

/// What proofs of residency said that did not hold, one remark each.
pub(super) fn unproved(rows: &[&Row]) -> Vec<String> {
    rows.iter()
        .flat_map(|row| &row.proofs)
        .filter(|proof| proof.verdict != ProofVerdict::Proved)
        .map(|proof| format!("residency: {}", proof.text))
        .collect()
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
