//! `zeroing-engines`: engines by batch, and the service of older records.

use crate::prelude::*;

fn of(row: &Row, name: &str, digits: usize) -> String {
    or_dash(row.figure(name), |value| format!("{value:.digits$}"))
}

/// A bystander's loss for a GB, ms; none where noise made it negative.
fn lost_by(row: &Row) -> Option<f64> {
    row.figure(BYSTANDER_PER_GB).filter(|lost| *lost >= 0.0)
}

const ENGINES: [Column<Row>; 7] = [
    ("engine", |row| row.candidate.clone()),
    (">batch", |row| bytes(row.cell.size)),
    (">GB/s", |row| of(row, ENGINE_GBPS, 1)),
    (">CPU s a GB", |row| of(row, CPU_PER_GB, 3)),
    (">reader ns a line", |row| significant(median(&row.reader_ns) * 64.0 / row.cell.size as f64)),
    (">bystander ms a GB", |row| or_dash(lost_by(row), |lost| format!("{lost:.1}"))),
    (">cost", |row| {
        let ratio = row.total_ratio.filter(|_| row.is_measurable());
        or_dash(ratio, |ratio| format!("{ratio:.2}"))
    }),
];

const SERVICES: [Column<Row>; 6] = [
    ("zeroed by", |row| row.candidate.clone()),
    (">own work", |row| time(axis(row, "work_us") * 1000.0)),
    (">requests a second", |row| of(row, "requests_per_s", 0)),
    (">p50", |row| time(row.figure("p50_ns").unwrap_or(f64::NAN))),
    (">p99", |row| time(row.figure("p99_ns").unwrap_or(f64::NAN))),
    (">found zeroed", |row| {
        or_dash(row.figure(HIT_SHARE), |share| format!("{:.0} %", 100.0 * share))
    }),
];

pub fn tables(rows: &[Row]) -> Vec<Table> {
    let of_state =
        |state: &str| rows.iter().filter(|row| row.cell.state == state).collect::<Vec<_>>();
    let mut tables = Vec::new();
    let (engines, services) = (of_state(ENGINE), of_state("busy service"));
    if !engines.is_empty() {
        let mut table = Table::listing("Zeroing by engine and batch", &ENGINES, engines);
        table.remark(
            "cost: CPU, reader of the last batch and bystander (where measured), over the first engine's",
        );
        tables.push(table);
    }
    if !services.is_empty() {
        tables.push(Table::listing("A service with all CPUs busy", &SERVICES, services));
    }
    tables
}
