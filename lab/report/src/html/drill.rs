//! Every row: experiments and operations, cells in them, candidates in those. Rounds stay in the record.

use crate::cost::{self, median};
use crate::plot::cell_caption;
use crate::units::gigabytes_per_second;
use cachewise_measure::record::groups as by;
use cachewise_measure::{DriftVerdict, Row};
use minijinja::{Value, context};

/// All rows, in the record's order.
pub(super) fn groups(rows: &[Row]) -> Vec<Value> {
    let group = |(title, members): (String, Vec<&Row>)| {
        let (rows, cells) = (members.len(), by(members, |row| cell_caption(&row.cell)));
        context! { title, rows, cells => cells.into_iter().map(cell).collect::<Vec<_>>() }
    };
    let groups = by(rows, |row| format!("{}: {}", row.experiment, row.cell.operation));
    groups.into_iter().map(group).collect()
}

/// A cell: its proofs and drift, as far as there are any, and its rows.
fn cell((title, mut rows): (String, Vec<&Row>)) -> Value {
    let mut remarks: Vec<String> =
        rows.iter().flat_map(|row| &row.proofs).map(|proof| proof.text.clone()).collect();
    for row in &rows {
        if let Some(DriftVerdict::Drifting { change, .. }) = row.drift {
            remarks.push(format!(
                "times drifted by {:+.0} % from the first round to the last: ratios hold, times do not",
                change * 100.0
            ));
        }
    }
    rows.sort_by(|a, b| median(&a.total_ns()).total_cmp(&median(&b.total_ns())));
    context! { title, remarks, rows => rows.into_iter().map(line).collect::<Vec<_>>() }
}

fn line(row: &Row) -> Value {
    let [ratio, interval, verdict] = cost::comparison(row);
    let part = |name: &str, times: &[f64]| {
        (!times.is_empty()).then(|| format!("{name} {}", cost::part(row, times)))
    };
    let parts = [part("reader", &row.reader_ns), part("bystander", &row.bystander_ns)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let mut time = cost::total(row);
    if !parts.is_empty() {
        time += &format!(" = {} + {}", cost::part(row, &row.operation_ns), parts.join(" + "));
    }
    let gbps = gigabytes_per_second(row.cell.size, median(&row.operation_ns));
    let ratio = if interval.is_empty() { ratio } else { format!("{ratio} ({interval})") };
    let texts = [row.candidate.clone(), time, gbps, ratio, verdict];
    context! { reference => row.candidate == row.reference, texts }
}
