//! Every row with its rounds: experiments and operations, cells in them, candidates in those.

use crate::cost::{self, median, whole};
use crate::plot::cell_caption;
use crate::plot::scale::Scale;
use crate::svg::number;
use crate::units::{gigabytes_per_second, time};
use cachewise_measure::{DriftVerdict, Row};
use serde::Serialize;

/// Rows of one experiment and operation.
#[derive(Serialize)]
pub(super) struct Group {
    title: String,
    rows: usize,
    cells: Vec<Cell>,
}

#[derive(Serialize)]
struct Cell {
    title: String,
    /// Proofs and drift, as far as there are any.
    remarks: Vec<String>,
    parts: bool,
    rows: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    candidate: String,
    reference: bool,
    time: String,
    speed: String,
    parts: String,
    ratio: String,
    verdict: String,
    rounds: String,
    strip: String,
}

/// Units across a strip.
const STRIP: f64 = 160.0;

/// All rows, in the record's order.
pub(super) fn groups(rows: &[Row]) -> Vec<Group> {
    let mut groups: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let title = format!("{}: {}", row.experiment, row.cell.operation);
        match groups.iter_mut().find(|(known, _)| *known == title) {
            Some((_, members)) => members.push(row),
            None => groups.push((title, vec![row])),
        }
    }
    groups
        .into_iter()
        .map(|(title, members)| Group { title, rows: members.len(), cells: cells(&members) })
        .collect()
}

fn cells(rows: &[&Row]) -> Vec<Cell> {
    let mut cells: Vec<(String, Vec<&Row>)> = Vec::new();
    for row in rows {
        let title = cell_caption(&row.cell);
        match cells.iter_mut().find(|(known, _)| *known == title) {
            Some((_, members)) => members.push(row),
            None => cells.push((title, vec![row])),
        }
    }
    cells.into_iter().map(|(title, members)| cell(title, &members)).collect()
}

fn cell(title: String, rows: &[&Row]) -> Cell {
    let parts = rows.iter().any(|row| !row.reader_ns.is_empty() || !row.bystander_ns.is_empty());
    let mut remarks: Vec<String> =
        rows.iter().flat_map(|row| &row.proofs).map(|proof| proof.text.clone()).collect();
    for row in rows {
        if let Some(DriftVerdict::Drifting { change, .. }) = row.drift {
            remarks.push(format!(
                "times drifted by {:+.0} % from the first round to the last: ratios hold, times do not",
                change * 100.0
            ));
        }
    }
    let all: Vec<f64> = rows
        .iter()
        .flat_map(|row| whole(row))
        .filter(|time| time.is_finite() && *time > 0.0)
        .collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    let scale = Scale::new((least, most), true, (2.0, STRIP - 2.0));
    let mut sorted = rows.to_vec();
    sorted.sort_by(|a, b| median(&whole(a)).total_cmp(&median(&whole(b))));
    Cell { title, remarks, parts, rows: sorted.into_iter().map(|row| line(row, scale)).collect() }
}

fn line(row: &Row, scale: Scale) -> Line {
    let reference = row.candidate == row.reference;
    let times = whole(row);
    let [ratio, interval, verdict] = cost::comparison(row);
    let part = |name: &str, times: &[f64]| {
        (!times.is_empty()).then(|| format!("{name} {}", cost::part(row, times)))
    };
    let parts: Vec<String> = [
        part("operation", &row.operation_ns),
        part("reader", &row.reader_ns),
        part("bystander", &row.bystander_ns),
    ]
    .into_iter()
    .flatten()
    .collect();
    Line {
        candidate: row.candidate.clone(),
        reference,
        time: cost::total(row),
        speed: gigabytes_per_second(row.cell.size, median(&row.operation_ns)),
        parts: parts.join(", "),
        ratio: if interval.is_empty() { ratio } else { format!("{ratio} ({interval})") },
        verdict,
        rounds: said(&times),
        strip: strip(&times, scale),
    }
}

/// The rounds for those who hear them.
fn said(times: &[f64]) -> String {
    let finite: Vec<f64> = times.iter().copied().filter(|time| time.is_finite()).collect();
    let least = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let most = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if finite.is_empty() {
        return "no rounds".to_owned();
    }
    format!(
        "{} rounds from {} to {}, median {}",
        finite.len(),
        time(least),
        time(most),
        time(median(&finite))
    )
}

/// A tick per round, a longer one at the median; the `d` of a path.
fn strip(times: &[f64], scale: Scale) -> String {
    let mut text = String::new();
    for time in times.iter().filter(|time| time.is_finite()) {
        text.push_str(&format!("M{} 4v8", number(scale.at(*time))));
    }
    if !text.is_empty() {
        text.push_str(&format!("M{} 0v16", number(scale.at(median(times)))));
    }
    text
}
