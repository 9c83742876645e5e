//! Tables of a race for less memory.

use cachewise_advise::goal::Goal;
use cachewise_measure::record::names::{
    ADVISED_FRESH, ADVISED_RACE, HELD_BYTES, HELD_HIGH, HELD_LOW, HELD_RATIO, PEAK,
};
use cachewise_measure::units::{bytes, time};
use cachewise_measure::{Record, Row};
use cachewise_report::Table;

/// The settings, the least memory first; then the fresh runs.
pub fn tables(record: &Record) -> Vec<Table> {
    let of =
        |state: &str| record.rows.iter().filter(|row| row.cell.state == state).collect::<Vec<_>>();
    let goal = record.header.settings.get("goal").and_then(|goal| goal.as_str());
    let what = if goal == Some(Goal::Peak.name()) { "peak" } else { "after the load" };
    let mut tables = Vec::new();
    for (state, title) in [
        (ADVISED_RACE, "settings beside the plain program"),
        (ADVISED_FRESH, "fresh runs of the best"),
    ] {
        let mut rows = of(state);
        let memory = |row: &Row| row.figure(HELD_RATIO).unwrap_or(f64::INFINITY);
        rows.sort_by(|a, b| memory(a).total_cmp(&memory(b)));
        let Some(first) = rows.first() else { continue };
        let heads =
            format!("setting | >memory {what} | >over plain | >peak | >time | >over plain | >runs");
        let mut table = Table::of(format!("{}: {title}", first.cell.operation), &heads);
        let any_out = rows.iter().any(|row| row.dropped);
        for row in rows {
            let size = |name: &str| {
                let size = row.figure(name).filter(|size| size.is_finite());
                size.map_or_else(String::new, |size| bytes(size as u64 >> 16 << 16))
            };
            let between = match (row.figure(HELD_LOW), row.figure(HELD_HIGH)) {
                (Some(low), Some(high)) if low.is_finite() => {
                    format!("{:.2} ({low:.2} .. {high:.2})", memory(row))
                }
                (Some(_), _) => format!("{:.2}", memory(row)),
                _ => String::new(),
            };
            let times: Vec<f64> =
                row.operation_ns.iter().copied().filter(|time| time.is_finite()).collect();
            let loses = match row.ratio {
                Some(ratio) if ratio.has_interval() => format!("{ratio:.2}"),
                Some(ratio) => format!("{:.2}", ratio.median),
                None => String::new(),
            };
            let mark = if row.dropped { " (out)" } else { "" };
            table.push(vec![
                format!("{}{mark}", row.candidate),
                size(HELD_BYTES),
                between,
                size(PEAK),
                time(cachewise_report::cost::median(&times)),
                loses,
                times.len().to_string(),
            ]);
        }
        if any_out {
            table.remark(
                "out: saves too little, loses too much time, or worse than another; another output",
            );
        }
        tables.push(table);
    }
    tables
}
