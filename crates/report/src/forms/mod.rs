//! Tables in the form of the source documents, one file per experiment or pair of experiments, and what
//! they share: rows against columns of one quantity, axes, proofs of residency.

pub mod aliasing;
pub mod cached_target;
pub mod compare_latency;
pub mod extent;
pub mod page_fault;
pub mod page_loops;
pub mod parallel;
pub mod read_batch;
pub mod receive;
pub mod reuse_map;
pub mod sticky;
pub mod twins;
pub mod values;
pub mod vector_state;

use crate::cost::{self, comparison, median};
use crate::{Table, axis, operation_and_size};
use cachewise_kernels::find;
use cachewise_measure::record::names::*;
use cachewise_measure::record::{by_cell, distinct, groups};
use cachewise_measure::units::{bytes, gigabytes_per_second, significant, time};
use cachewise_measure::{CellKey, Histogram, PairedRatio, ProofVerdict, Row, Verdict, stats};
use std::collections::BTreeMap;

/// A ratio to the reference, with `~` where it cannot be told from 1.
fn ratio(row: &Row) -> Option<String> {
    let doubt = if row.verdict == Some(Verdict::CannotTell) { "~" } else { "" };
    row.ratio.map(|ratio| format!("{:.2}{doubt}", ratio.median))
}

/// GB/s, with the ratio in brackets.
fn speed(row: &Row) -> String {
    let ratio = ratio(row).map_or(String::new(), |ratio| format!(" ({ratio})"));
    format!("{}{ratio}", significant(row.gbps()))
}

/// Decimal gigabytes per second.
fn gbps(row: &Row) -> String {
    significant(row.gbps())
}

/// A column's head where it is a size.
fn size_text(value: f64) -> String {
    bytes(value as u64)
}

/// One line per candidate, one column per value of `column` (ascending), `cell` in between. Absent
/// combinations are `-`.
fn pivot(
    caption: String,
    first: &str,
    rows: &[&Row],
    column: impl Fn(&Row) -> f64,
    head: impl Fn(f64) -> String,
    cell: impl Fn(&Row) -> String,
) -> Table {
    let mut values: Vec<f64> = rows.iter().map(|row| column(row)).filter(|x| !x.is_nan()).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let columns: Vec<_> = values.into_iter().map(|value| (value, head(value))).collect();
    grid(caption, first, rows, &columns, |row| (row.candidate.clone(), column(row)), cell)
}

/// The columns that rows have, in the order of their first appearance, with their heads.
fn columns<K: PartialEq>(
    rows: &[&Row],
    column: impl Fn(&Row) -> K,
    head: impl Fn(&K) -> String,
) -> Vec<(K, String)> {
    let found = distinct(rows.iter().map(|row| column(row))).into_iter();
    found.map(|column| (head(&column), column)).map(|(head, column)| (column, head)).collect()
}

/// One line per name, in the order of their first appearance, one column for each of those given;
/// `place` tells a row's line and column. Absent combinations are `-`.
fn grid<K: PartialEq>(
    caption: String,
    first: &str,
    rows: &[&Row],
    columns: &[(K, String)],
    place: impl Fn(&Row) -> (String, K),
    cell: impl Fn(&Row) -> String,
) -> Table {
    let heads = columns.iter().map(|(_, head)| format!(">{head}"));
    let heads: Vec<String> = std::iter::once(first.to_owned()).chain(heads).collect();
    let mut table = Table::new(caption, &heads);
    for (name, of_one) in groups(rows.iter().copied(), |row: &Row| place(row).0) {
        let mut line = vec![name];
        line.extend(columns.iter().map(|(column, _)| {
            let found = of_one.iter().find(|row| place(row).1 == *column);
            found.map_or("-".to_owned(), |row| cell(row))
        }));
        table.push(line);
    }
    table
}

/// What proofs of residency said that did not hold, one remark each.
fn unproved(rows: &[&Row]) -> Vec<String> {
    rows.iter()
        .flat_map(|row| &row.proofs)
        .filter(|proof| proof.verdict != ProofVerdict::Proved)
        .map(|proof| format!("residency: {}", proof.text))
        .collect()
}

/// What the proofs of residency said over some rows, in a line; none where nothing was placed.
fn residency<'r>(rows: impl Iterator<Item = &'r Row>) -> Option<String> {
    let proofs: Vec<_> = rows.flat_map(|row| &row.proofs).collect();
    let worst = proofs.iter().max_by_key(|proof| proof.verdict)?;
    let held = proofs.iter().filter(|proof| proof.verdict == ProofVerdict::Proved).count();
    Some(if held == proofs.len() {
        format!("residency proved: all {held} operands were where they are said to be")
    } else {
        format!("residency proved for {held} of {} operands; worst: {}", proofs.len(), worst.text)
    })
}
