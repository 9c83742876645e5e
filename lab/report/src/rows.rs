//! Queries on rows and records for tables and sentences.

use cachewise_measure::{Record, Row};
use std::collections::BTreeSet;

/// An axis of a row as a number that equals none where there is none.
pub fn axis(row: &Row, name: &str) -> f64 {
    row.axis(name).unwrap_or(f64::NAN)
}

/// Something as text; `-` where there is none.
pub fn or_dash<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or("-".to_owned(), text)
}

/// Each of some values once, in ascending order.
pub fn sorted<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    values.into_iter().collect::<BTreeSet<T>>().into_iter().collect()
}

/// The experiment whose rows a record holds, or begins with.
pub fn experiment_of(record: &Record) -> &str {
    let first = || record.rows.first().map(|row| row.experiment.as_str());
    record.experiment().or_else(first).unwrap_or_default()
}
