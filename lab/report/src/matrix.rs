//! Matrix experiments in seed 002's columns (002.3): name, B/s, the time for the seed's volume, and
//! what the kernel is; beside them the ratio to the reference, its verdict, and how near the limit.

use crate::cells;
use crate::cost::{self, comparison, median};
use crate::table::{Column, Table};
use crate::units::{bytes, significant};
use cachewise_kernels::find;
use cachewise_measure::record::by_cell;
use cachewise_measure::{CellKey, Level, Machine, ProofVerdict, Residency, Row};

/// Bytes moved per cached row of seed 002's tables.
const CACHED_VOLUME: f64 = 4.096e9;
/// Bytes moved per uncached row.
const UNCACHED_VOLUME: f64 = 4.096e8;

/// One table per cell, in the order the cells appear; rows by speed, the reference among them.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    by_cell(rows).into_iter().map(|(key, rows)| table(key, rows)).collect()
}

/// `copy, 4 KiB, L1 to L1`, with reader and bystander where there are any.
pub fn caption(cell: &CellKey) -> String {
    let mut text = format!("{}, {}", cell.operation, bytes(cell.size));
    text.push_str(&format!(", {}", cell.levels().unwrap_or_else(|| cell.state.to_string())));
    if let Some(fraction) = cell.reader {
        text.push_str(&format!(", then {:.0} % of it read", fraction * 100.0));
    }
    if let Some(bystander) = cell.bystander {
        text.push_str(&format!(", beside a working set of {}", bytes(bystander)));
    }
    text
}

fn table(key: &CellKey, mut rows: Vec<&Row>) -> Table {
    rows.sort_by(|a, b| median(&a.total_ns()).total_cmp(&median(&b.total_ns())));
    let parts = key.reader.is_some() || key.bystander.is_some();
    let in_memory = key.destination == Some(Level::Dram.into());
    let mut columns = vec!["name", "alias", ">GB/s", ">us"];
    if parts {
        columns.extend([">operation", ">reader", ">bystander", ">sum"]);
    }
    columns.extend([">ratio", ">95 % interval", "verdict"]);
    columns.push(if in_memory { ">of ceiling" } else { ">B/cycle" });
    columns.push("meaning");
    let mut table = Table::new(caption(key), &columns);
    for row in &rows {
        table.push(line(row, parts, in_memory));
    }
    let reference = rows.first().map_or("", |row| row.reference.as_str());
    let volume = if in_memory { "4.096e8" } else { "4.096e9" };
    table.remarks.push(format!(
        "ratio: time over {reference}'s in the same rounds{}; us: time for {volume} bytes (002.3)",
        if parts { ", of the sum" } else { "" }
    ));
    table.remarks.extend(rows.iter().find_map(|row| residency(row)));
    table
}

fn line(row: &Row, parts: bool, in_memory: bool) -> Vec<String> {
    let operation = median(&row.operation_ns);
    let rate = row.cell.size as f64 / operation;
    let volume = if in_memory { UNCACHED_VOLUME } else { CACHED_VOLUME };
    let kernel = find(&row.candidate);
    let mut cells = vec![
        row.candidate.clone(),
        kernel.map_or(String::new(), |kernel| kernel.aliases.join(" ")),
        significant(rate),
        format!("{:.0}", volume / rate / 1e3),
    ];
    if parts {
        cells.extend(cost::parts(row));
    }
    cells.extend(comparison(row));
    let rated = match in_memory {
        true => row.figure("ceiling_share").map(|share| format!("{:.0} %", share * 100.0)),
        false => row.figure("bytes_per_cycle").map(significant),
    };
    cells.push(rated.unwrap_or("-".to_owned()));
    let other = match row.candidate.as_str() {
        "libc" => "this machine's C library",
        library if library.starts_with("cachewise") => "this library, decisions included",
        _ => "-",
    };
    cells.push(kernel.map_or(other, |kernel| kernel.about).to_owned());
    cells
}

/// Summary of the proofs of residency, in a line; nothing where nothing was placed.
fn residency(row: &Row) -> Option<String> {
    // Each launch has its own proofs.
    if row.proofs.len() > 2 {
        return cells::residency(std::iter::once(row));
    }
    let worst = row.proofs.iter().map(|proof| proof.verdict).max()?;
    let texts: Vec<&str> = row.proofs.iter().map(|proof| proof.text.as_str()).collect();
    let begin = match worst {
        ProofVerdict::Proved => "residency proved",
        ProofVerdict::Doubtful => "residency doubtful",
        ProofVerdict::Failed => "RESIDENCY FAILED",
    };
    Some(format!("{begin}: {}", texts.join("; ")))
}

/// Every row as one flat table, for CSV: one line per candidate and cell. Names and meanings
/// are those of a record's JSON (`docs/schema/record.md`).
pub fn flat<'r>(records: impl IntoIterator<Item = (&'r Machine, &'r [Row])>) -> Table {
    let heads: Vec<&str> = FLAT.iter().map(|(head, _)| *head).chain(CPU).collect();
    let mut table = Table::new("", &heads);
    for (Machine { cpu, .. }, rows) in records {
        let of_cpu = [cpu.vendor.clone(), cpu.family.to_string(), cpu.model.to_string()];
        for row in rows {
            let of_row = FLAT.iter().map(|(_, cell)| cell(row));
            table.push(of_row.chain(of_cpu.iter().cloned()).collect());
        }
    }
    table
}

const CPU: [&str; 3] = ["cpu_vendor", "cpu_family", "cpu_model"];

fn exact(value: impl Into<Option<f64>>) -> String {
    let told = value.into().filter(|value| value.is_finite());
    told.map_or(String::new(), |value| format!("{value:.4}"))
}

/// The median of the rounds that there are: of a tuning, an arm has no part in some.
fn part(times: &[f64]) -> Option<f64> {
    let there: Vec<f64> = times.iter().copied().filter(|time| time.is_finite()).collect();
    (!there.is_empty()).then(|| median(&there))
}

fn rounds(row: &Row) -> usize {
    row.operation_ns.iter().filter(|time| time.is_finite()).count()
}

const FLAT: [Column<Row>; 27] = [
    ("experiment", |row| row.experiment.clone()),
    ("operation", |row| row.cell.operation.clone()),
    ("size", |row| row.cell.size.to_string()),
    ("source", |row| row.cell.source.map_or("", Residency::name).to_owned()),
    ("destination", |row| row.cell.destination.map_or("", Residency::name).to_owned()),
    ("state", |row| row.cell.state.to_string()),
    ("reader", |row| exact(row.cell.reader)),
    ("bystander", |row| row.cell.bystander.map_or(String::new(), |n| n.to_string())),
    ("axes", |row| {
        let axes = row.cell.axes.iter().map(|(name, value)| format!("{name}={value}"));
        axes.collect::<Vec<_>>().join(" ")
    }),
    ("candidate", |row| row.candidate.clone()),
    ("reference", |row| row.reference.clone()),
    ("calls", |row| row.calls.to_string()),
    ("rounds", |row| rounds(row).to_string()),
    ("operation_ns", |row| exact(part(&row.operation_ns))),
    ("reader_ns", |row| exact(part(&row.reader_ns))),
    ("bystander_ns", |row| exact(part(&row.bystander_ns))),
    ("gb_per_s", |row| exact(part(&row.operation_ns).map(|time| row.cell.size as f64 / time))),
    ("ratio", |row| exact(row.ratio.map(|ratio| ratio.median))),
    ("ratio_low", |row| exact(row.ratio.map(|ratio| ratio.low))),
    ("ratio_high", |row| exact(row.ratio.map(|ratio| ratio.high))),
    ("total_ratio", |row| exact(row.total_ratio.map(|ratio| ratio.median))),
    ("total_ratio_low", |row| exact(row.total_ratio.map(|ratio| ratio.low))),
    ("total_ratio_high", |row| exact(row.total_ratio.map(|ratio| ratio.high))),
    ("verdict", |row| {
        cost::verdict(row).map_or(String::new(), |said| said.name().replace(' ', "-"))
    }),
    ("bytes_per_cycle", |row| exact(row.figure("bytes_per_cycle"))),
    ("ceiling_share", |row| exact(row.figure("ceiling_share"))),
    ("dropped", |row| row.dropped.to_string()),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::fixtures::{machine, row};

    /// Rows that differ in a further coordinate alone, and rounds in which a candidate had no part.
    #[test]
    fn a_flat_row_has_its_axes_and_the_median_of_the_rounds_that_there_are() {
        let mut of_it = row("compare", 4096, "aligned", "compare.sse2");
        of_it.cell = of_it.cell.with(&[("unequal", 1.0)]);
        of_it.operation_ns = vec![f64::NAN, 3.0, 5.0, f64::NAN, 4.0];
        let csv = flat([(&machine(), &[of_it][..])]).csv();
        assert!(csv.contains(",unequal=1,compare.sse2,"), "{csv}");
        assert!(csv.contains(",3,4.0000,") && csv.contains(",1024.0000,"), "{csv}");
        assert!(!csv.contains("NaN"), "{csv}");
    }
}
