//! Contents of table cells: ratios with their doubts, speeds, proofs of residency; and rows
//! against columns.

use crate::Table;
use crate::rows::or_dash;
use crate::units::{bytes, significant};
use cachewise_kernels::find;
use cachewise_measure::record::{distinct, groups};
use cachewise_measure::{ProofVerdict, Row};
use std::cmp::Ordering;

/// `~` where it cannot be told from the reference.
pub fn doubt(row: &Row) -> &'static str {
    if row.verdict.is_some_and(|verdict| !verdict.is_different()) { "~" } else { "" }
}

/// A ratio to the reference.
pub fn ratio(row: &Row) -> Option<String> {
    row.ratio.map(|ratio| format!("{:.2}{}", ratio.median, doubt(row)))
}

/// Ratio as a cell of a table; `-` where there is none.
pub fn ratio_or_none(row: &Row) -> String {
    or_dash(ratio(row), |ratio| ratio)
}

/// GB/s, with the ratio in brackets.
pub fn speed(row: &Row) -> String {
    let ratio = ratio(row).map_or(String::new(), |ratio| format!(" ({ratio})"));
    format!("{}{ratio}", significant(row.gbps()))
}

pub fn gbps(row: &Row) -> String {
    significant(row.gbps())
}

pub fn aliases(name: &str) -> String {
    find(name).map_or(String::new(), |kernel| kernel.aliases.join(" "))
}

/// A column's head where it is a size.
pub fn size_text(value: f64) -> String {
    bytes(value as u64)
}

/// One line per name, in the order of their first appearance, one column for each place and head, by
/// place. Rows without a column are left out; absent combinations are `-`.
pub fn grid<'r, K: PartialOrd>(
    caption: String,
    first: &str,
    rows: &[&'r Row],
    line: impl Fn(&Row) -> String,
    column: impl Fn(&Row) -> Option<(K, String)>,
    cell: impl Fn(&Row) -> String,
) -> Table {
    let place = |row: &&'r Row| Some((line(row), column(row)?, *row));
    let placed: Vec<_> = rows.iter().filter_map(place).collect();
    let mut columns = distinct(placed.iter().map(|(_, column, _)| column));
    columns.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
    let heads = columns.iter().map(|(_, head)| format!(">{head}"));
    let heads: Vec<String> = std::iter::once(first.to_owned()).chain(heads).collect();
    let mut table = Table::new(caption, &heads);
    for (name, of_one) in groups(&placed, |(name, ..)| name) {
        let found = |wanted: &(K, String)| of_one.iter().find(|(_, column, _)| column == wanted);
        let text = |column| found(column).map_or("-".to_owned(), |(.., row)| cell(row));
        table
            .push(std::iter::once(name.clone()).chain(columns.iter().copied().map(text)).collect());
    }
    table
}

/// Remarks on proofs of residency that failed, one each.
pub fn unproved(rows: &[&Row]) -> Vec<String> {
    rows.iter()
        .flat_map(|row| &row.proofs)
        .filter(|proof| proof.verdict != ProofVerdict::Proved)
        .map(|proof| format!("residency: {}", proof.text))
        .collect()
}

/// Summary of the proofs of residency of some rows, in a line; none where nothing was placed.
pub fn residency<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<String> {
    let proofs: Vec<_> = rows.flat_map(|row| &row.proofs).collect();
    let worst = proofs.iter().max_by_key(|proof| proof.verdict)?;
    let held = proofs.iter().filter(|proof| proof.verdict == ProofVerdict::Proved).count();
    Some(if held == proofs.len() {
        format!("residency proved: all {held} operands were where they are said to be")
    } else {
        format!("residency proved for {held} of {} operands; worst: {}", proofs.len(), worst.text)
    })
}
