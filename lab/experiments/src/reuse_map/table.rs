//! `reuse-map` (000.14): per candidate, operation, size and place a grid of touched fraction by
//! delay. `<` marks cells that the candidate wins, `>` those it loses, `~` those that nobody can
//! tell; between `<` and `>` runs the break-even line.

use crate::prelude::*;

/// One table per candidate other than the reference, operation, size and place; then the hints as a matrix.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let is_hint = |row: &Row| ["read", "beside"].iter().any(|state| row.cell.state == *state);
    let (hints, rows): (Vec<Row>, Vec<Row>) = rows.iter().cloned().partition(is_hint);
    let hints = cachewise_report::matrix::tables(&hints);
    let compared = rows.iter().filter(|row| row.candidate != row.reference);
    groups(compared, |row| (title(&row.cell), row.candidate.as_str()))
        .into_iter()
        .map(|((title, candidate), of_map)| {
            let mut table = table(&title, candidate, &of_map);
            let title = |row: &&Row| self::title(&row.cell) == title;
            table.remarks.extend(residency(rows.iter().filter(title)));
            table
        })
        .chain(hints)
        .collect()
}

fn title(key: &CellKey) -> String {
    let place = key.levels().map_or(String::new(), |levels| format!(", {levels}"));
    format!("{} of {}{place}", key.operation, bytes(key.size))
}

/// A column, traffic first, then times; and its head.
fn delay(row: &Row) -> Option<((bool, f64), String)> {
    Some(match (row.axis(DELAY_NS), row.axis(DELAY_BYTES).unwrap_or(0.0)) {
        (Some(ns), _) => ((true, ns), format!("after {}", time(ns))),
        (None, 0.0) => ((false, 0.0), "at once".to_owned()),
        (None, traffic) => ((false, traffic), format!("after {}", size_text(traffic))),
    })
}

fn table(title: &str, candidate: &str, rows: &[&Row]) -> Table {
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| a.cell.reader.partial_cmp(&b.cell.reader).unwrap_or(Ordering::Equal));
    let reference = rows.first().map_or("", |row| row.reference.as_str());
    let share = |row: &Row| format!("{:.1} %", row.cell.reader.unwrap_or(0.0) * 100.0);
    let cell = |row: &Row| {
        cost::ratio(row).map_or(String::new(), |ratio| {
            let mark = match ratio.verdict(cost::MARGIN) {
                Verdict::Faster => "<",
                Verdict::Slower => ">",
                Verdict::Same | Verdict::Unknown => "~",
            };
            format!("{:.2} {mark}", ratio.median)
        })
    };
    let caption = format!("{candidate} over {reference}, {title}");
    let mut table = grid(caption, ">read", &rows, share, delay, cell);
    let by_verdict = |wanted| rows.iter().filter(|row| cost::verdict(row) == Some(wanted)).count();
    let (wins, losses) = (by_verdict(Verdict::Faster), by_verdict(Verdict::Slower));
    table.remark(format!(
        "operation and reader over {reference}'s in the same rounds: < faster ({wins}), > slower \
         ({losses}), ~ cannot tell ({})",
        rows.len() - wins - losses
    ));
    table
}
