//! Rows in groups, in the order in which the groups appear.

use cachewise_measure::{CellKey, Row};

/// Rows that agree in a key.
pub(crate) fn groups<'r, K: PartialEq>(
    rows: impl IntoIterator<Item = &'r Row>,
    key: impl Fn(&'r Row) -> K,
) -> Vec<(K, Vec<&'r Row>)> {
    let mut found: Vec<(K, Vec<&'r Row>)> = Vec::new();
    for row in rows {
        let of = key(row);
        match found.iter_mut().find(|(known, _)| *known == of) {
            Some((_, members)) => members.push(row),
            None => found.push((of, vec![row])),
        }
    }
    found
}

/// Rows by cell.
pub(crate) fn by_cell(rows: &[Row]) -> Vec<(&CellKey, Vec<&Row>)> {
    groups(rows, |row| &row.cell)
}
