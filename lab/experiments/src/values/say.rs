//! What the rows of `values` amount to. Pure.

use super::measure::{COPYING, STORING};
use crate::words::*;

pub fn verdicts(rows: &[Row]) -> Vec<String> {
    let mut sentences = vec![denormals(rows)];
    let by_state = |state: &str| {
        rows.iter().filter(move |row| row.cell.state.starts_with(state)).collect::<Vec<_>>()
    };
    let key = |row: &Row| (row.cell.operation.clone(), where_is(&row.cell), row.cell.size);
    for ((_, where_, _), of_cell) in groups(by_state(COPYING), key) {
        sentences.push(copy_sentence(&where_, &of_cell));
    }
    for (where_, of_level) in groups(by_state(STORING), |row: &Row| where_is(&row.cell)) {
        for (candidate, of_one) in by_candidate(&of_level) {
            sentences.extend(store_sentence(&where_, &candidate, &of_one));
        }
    }
    sentences
}

/// The open question of 002.12, for movntps.
fn denormals(rows: &[Row]) -> String {
    let of = |row: &&Row| row.candidate == "copy.sse.nt" && row.cell.operation == "copy";
    let cells = groups(rows.iter().filter(of), |row: &Row| (where_is(&row.cell), row.cell.size));
    let of_cells = cells.iter().filter_map(|((where_, _), of_cell)| {
        let by = |value: f64| of_cell.iter().find(|row| axis(row, VALUE) == value);
        let said = ["{} faster", "{} slower", "no measurable difference"];
        Some(format!("{where_}: {}", told(versus(by(3.0)?, by(2.0)?), said)))
    });
    let of_cells: Vec<String> = of_cells.collect();
    if of_cells.is_empty() {
        return "Denormals through movntps: cannot tell, it was not measured".to_owned();
    }
    let slow = of_cells.iter().any(|text| text.ends_with("slower"));
    format!(
        "Denormals through movntps {} against random bytes: {}",
        if slow { "are slow" } else { "are not shown to be slow" },
        of_cells.join("; ")
    )
}

fn copy_sentence(where_: &str, of_cell: &[&Row]) -> String {
    let (mut differing, mut compared) = (Vec::new(), 0);
    for (candidate, values) in by_candidate(of_cell) {
        let Some(random) = values.iter().find(|row| axis(row, VALUE) == 2.0) else { continue };
        for row in values.iter().filter(|row| axis(row, VALUE) != 2.0) {
            compared += 1;
            let name = VALUES.get(axis(row, VALUE) as usize).unwrap_or(&"?");
            let said = told(versus(row, random), ["{} faster", "{} slower", ""]);
            differing.extend((!said.is_empty()).then(|| format!("{candidate} {name} {said}")));
        }
    }
    if compared == 0 {
        format!("copy, {where_}: cannot tell, only one value was measured")
    } else if differing.is_empty() {
        format!("copy, {where_}: the value copied makes no measurable difference")
    } else {
        format!("copy, {where_}, against random bytes: {}", differing.join("; "))
    }
}

fn store_sentence(where_: &str, candidate: &str, of_one: &[&Row]) -> Option<String> {
    let of = |value: f64, others: f64| {
        of_one.iter().find(|row| axis(row, VALUE) == value && axis(row, OVER_OTHERS) == others)
    };
    let compare = |(label, than, ours, theirs): (&str, &str, Option<&&Row>, Option<&&Row>)| {
        let (ours, theirs) = (ours?, theirs?);
        let ratio = versus(ours, theirs);
        Some(match says(ratio) {
            Verdict::Faster => format!(
                "{label}: {} faster than {than} ({:.3} against {:.3} GB/s)",
                percent(1.0 / ratio.median),
                ours.gbps(),
                theirs.gbps()
            ),
            Verdict::Slower => format!("{label}: {} slower than {than}", percent(ratio.median)),
            Verdict::Same | Verdict::Unknown => {
                format!("{label}: no measurable difference from {than}")
            }
        })
    };
    let pairs = [
        ("zeros over others", "ones over others", of(0.0, 1.0), of(1.0, 1.0)),
        ("zeros over zeros", "zeros over others", of(0.0, 0.0), of(0.0, 1.0)),
        ("ones over ones", "ones over others", of(1.0, 0.0), of(1.0, 1.0)),
    ];
    let parts: Vec<String> = pairs.into_iter().filter_map(compare).collect();
    (!parts.is_empty()).then(|| format!("{candidate}, {where_}: {}", parts.join("; ")))
}
