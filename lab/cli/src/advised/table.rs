//! `advise`: what each setting of a program gains and costs, and the fresh runs of the best.

use cachewise_advise::verdict::percent;
use cachewise_measure::record::names::{
    ADVISED_CPU, ADVISED_FRESH, ADVISED_RACE, PAGE_FAULTS, PEAK, PEAK_RATIO, PLAIN, RECOMMENDED,
};
use cachewise_measure::stats::LEAST_ROUNDS;
use cachewise_measure::units::{bytes, time};
use cachewise_measure::{Record, Row};
use cachewise_report::Table;
use cachewise_report::cost::median;

/// Setting of the record: the reason why each setting is not the answer.
pub const FATES: &str = "fates";
/// Setting of the record: the figure that was judged.
pub const JUDGED_BY: &str = "judged_by";
/// Its value where the machine was busy.
pub const CPU_TIME: &str = "CPU time";

/// Markdown: of each program what can be gained at most, what was answered, and what that costs.
pub fn programs(records: &[Record]) -> String {
    let mut lines = "|program|at most|answer|CPU|memory|\n|---|---:|---|---:|---:|\n".to_owned();
    for record in records {
        let settings = &record.header.settings;
        let set = settings.get(RECOMMENDED).is_some();
        let fresh = record.rows.iter().rfind(|row| set && row.cell.state == ADVISED_FRESH);
        let cpu = record.rows.iter().find(|row| {
            row.cell.state == ADVISED_CPU && fresh.is_some_and(|set| set.candidate == row.candidate)
        });
        let part = |figure: Option<f64>| figure.map_or("-".to_owned(), |part| format!("{part:.2}"));
        lines.push_str(&format!(
            "|{}|{}|{}|{}|{}|\n",
            record.name().unwrap_or_default(),
            settings
                .get("bound")
                .and_then(serde_json::Value::as_f64)
                .map_or("-".to_owned(), percent),
            record.end.as_ref().and_then(|end| end.verdicts.first()).map_or("-", String::as_str),
            part(cpu.and_then(|row| row.ratio).map(|ratio| ratio.median)),
            part(fresh.and_then(|row| row.figure(PEAK_RATIO))),
        ));
    }
    lines
}

/// The race, then the fresh runs where there were any.
pub fn tables(record: &Record) -> Vec<Table> {
    let rows = &record.rows[..];
    let judged = record.header.settings.get(JUDGED_BY).and_then(|by| by.as_str()).unwrap_or("time");
    let fates = record.header.settings.get(FATES);
    let fate = |name: &str| fates.and_then(|all| all.get(name)?.as_str()).unwrap_or_default();
    let of = |state: &str| rows.iter().filter(|row| row.cell.state == state).collect::<Vec<_>>();
    let cpu = of(ADVISED_CPU);
    let mut tables = Vec::new();
    let program = rows.first().map_or("", |row| row.cell.operation.as_str());
    for (state, what) in [
        (ADVISED_RACE, "settings beside the plain program"),
        (ADVISED_FRESH, "fresh runs of the best"),
    ] {
        let mut members = of(state);
        if members.is_empty() {
            continue;
        }
        let part = |row: &Row| row.ratio.map_or(1.0, |ratio| ratio.median);
        members.sort_by(|a, b| part(a).total_cmp(&part(b)));
        let heads = format!(
            "setting | >{judged} | >speed over plain | >runs | >CPU over plain | >memory | >page faults"
        );
        let mut table = Table::of(format!("{program}: {what}"), &heads);
        for row in members {
            let times: Vec<f64> =
                row.operation_ns.iter().copied().filter(|time| time.is_finite()).collect();
            let of_cpu = cpu.iter().find(|other| other.candidate == row.candidate);
            let of_cpu = of_cpu.filter(|_| state == ADVISED_RACE).and_then(|row| row.ratio);
            let speed = row.ratio.map(|ratio| ratio.inverse());
            let mark = match fate(&row.candidate) {
                "" if row.dropped => " (out)".to_owned(),
                why if row.dropped => format!(" (out: {why})"),
                _ => String::new(),
            };
            let figure = |name: &str| row.figure(name).filter(|value| value.is_finite());
            table.push(vec![
                format!("{}{mark}", row.candidate),
                time(median(&times)),
                match speed {
                    Some(speed) if !speed.has_interval() => format!("{:.2}", speed.median),
                    Some(speed) => format!("{speed:.2}"),
                    None => String::new(),
                },
                times.len().to_string(),
                of_cpu.map_or_else(String::new, |cpu| format!("{:.2}", cpu.median)),
                figure(PEAK).map_or_else(String::new, |peak| bytes(peak as u64 >> 20 << 20)),
                figure(PAGE_FAULTS).map_or_else(String::new, |faults| format!("{faults:.0}")),
            ]);
        }
        if state == ADVISED_RACE {
            table.remark(format!(
                "speed: time of {PLAIN} over the setting's, of the same rounds; of {LEAST_ROUNDS} or more with its \
                 95 % interval"
            ));
        }
        tables.push(table);
    }
    tables
}
