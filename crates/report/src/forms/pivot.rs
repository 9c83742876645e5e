//! What the forms share: rows against columns of one quantity.

use crate::Table;
use cachewise_measure::{Row, stats};

/// Rows that agree in a key, in order of appearance.
pub(super) fn groups<'r, K: PartialEq>(
    rows: impl IntoIterator<Item = &'r Row>,
    key: impl Fn(&Row) -> K,
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
        .filter(|proof| proof.verdict != cachewise_measure::ProofVerdict::Proved)
        .map(|proof| format!("residency: {}", proof.text))
        .collect()
}

/// Made-up rows for snapshots.
#[cfg(test)]
pub(super) mod made_up {
    use cachewise_measure::{CellKey, PairedRatio, Row, Verdict};

    /// A row of exact times.
    pub(crate) fn row(
        operation: &str,
        size: u64,
        levels: (Option<&str>, Option<&str>),
        state: &str,
        axes: &[(&str, f64)],
        candidate: &str,
        ns: f64,
    ) -> Row {
        Row {
            experiment: "made-up".to_owned(),
            cell: CellKey {
                operation: operation.to_owned(),
                size,
                source: levels.0.map(str::to_owned),
                destination: levels.1.map(str::to_owned),
                state: state.into(),
                reader: None,
                bystander: None,
                axes: axes.iter().map(|&(name, value)| (name.to_owned(), value)).collect(),
            },
            candidate: candidate.to_owned(),
            reference: "libc".to_owned(),
            calls: 1,
            operation_ns: vec![ns; 15],
            reader_ns: Vec::new(),
            bystander_ns: Vec::new(),
            ratio: None,
            verdict: None,
            total_ratio: None,
            proofs: Vec::new(),
            drift: None,
            dropped: false,
            extra: std::collections::BTreeMap::new(),
            histogram: None,
        }
    }

    /// With a ratio.
    pub(crate) fn with_ratio(mut row: Row, median: f64, verdict: Verdict) -> Row {
        row.ratio =
            Some(PairedRatio { median, low: median - 0.01, high: median + 0.01, rounds: 15 });
        row.verdict = Some(verdict);
        row
    }
}
