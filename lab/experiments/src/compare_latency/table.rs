//! `compare-latency`: time by first difference; time per comparison of pages; seed 004's histograms
//! with their running tally.

use super::measure::{PAGES, SWEEP};
use crate::prelude::*;

/// `compare-latency`: time by the first difference.
const FIRST_DIFFERENCES: Grid = Grid {
    of: |row| row.cell.state == SWEEP,
    caption: |row| sized(row, what(row) + ": ns by the offset of the first difference"),
    column: |row| {
        let at = row.axis(FIRST_DIFFERENCE)?;
        let equal = at as u64 == row.cell.size;
        Some((at, if equal { "none".to_owned() } else { at.to_string() }))
    },
    cell: |row| significant(row.median_ns()),
    ..Grid::PLAIN
};

/// Lines of a histogram in a terminal.
const LINES: usize = 20;
/// Columns of the longest bar.
const BAR: f64 = 20.0;

/// The sweep, the pages, then a histogram per cut, launches beside each other.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let mut tables = FIRST_DIFFERENCES.tables(rows);
    let pages: Vec<&Row> = rows.iter().filter(|row| row.cell.state == PAGES).collect();
    if !pages.is_empty() {
        tables.push(pages_table(pages));
    }
    let calls = rows.iter().filter(|row| row.histogram.is_some());
    for ((state, candidate), launches) in groups(calls, |row| (&row.cell.state, &row.candidate)) {
        tables.push(histogram(state, candidate, &launches));
    }
    let is_pair = |row: &&Row| PAIRS.iter().any(|state| row.cell.state == *state);
    let pairs: Vec<Row> = rows.iter().filter(is_pair).cloned().collect();
    tables.extend(cachewise_report::matrix::tables(&pairs));
    tables
}

fn pages_table(mut rows: Vec<&Row>) -> Table {
    rows.sort_by(|a, b| a.median_ns().total_cmp(&b.median_ns()));
    let heads = "kernel | >ns a comparison | >ratio | >95 % interval | verdict";
    let mut table = Table::of("Pages of 4 KiB compared as ksmd does", heads);
    for row in rows {
        let first = [row.candidate.clone(), significant(row.median_ns())];
        table.push(first.into_iter().chain(comparison(row)).collect());
    }
    table
}

/// Bins joined to at most [`LINES`] lines: calls per launch, a bar on a logarithmic scale of all of
/// them, the running tally.
fn histogram(state: &str, candidate: &str, launches: &[&Row]) -> Table {
    let histograms: Vec<&Histogram> =
        launches.iter().filter_map(|row| row.histogram.as_ref()).collect();
    let mut heads = vec![">ns".to_owned()];
    heads.extend(launches.iter().map(|row| format!(">launch {:.0}", axis(row, LAUNCH))));
    heads.extend(["log of all".to_owned(), ">tally".to_owned()]);
    let mut table = Table::new(format!("{candidate}, single {state}"), &heads);
    let bins = histograms.iter().map(|histogram| histogram.counts.len()).min().unwrap_or(0);
    let join = bins.div_ceil(LINES).max(1);
    let joined = |histogram: &Histogram, line: usize| -> u64 {
        histogram.counts[line * join..((line + 1) * join).min(bins)].iter().sum()
    };
    let lines = bins.div_ceil(join);
    let sum = |line: usize| histograms.iter().map(|histogram| joined(histogram, line)).sum::<u64>();
    let most = (0..lines).map(sum).max().unwrap_or(0).max(2) as f64;
    let above: u64 = histograms.iter().map(|histogram| histogram.above).sum();
    let total = ((0..lines).map(sum).sum::<u64>() + above).max(1) as f64;
    let mut tally = 0;
    for line in 0..lines {
        tally += sum(line);
        let edge = |bin: usize| histograms[0].edges_ns.get(bin.min(bins)).copied().unwrap_or(0.0);
        let mut cells = vec![format!("{:.0} .. {:.0}", edge(line * join), edge((line + 1) * join))];
        cells.extend(histograms.iter().map(|histogram| joined(histogram, line).to_string()));
        // One call is visible beside none.
        let length = match sum(line) {
            0 => 0,
            count => 1 + ((count as f64).ln() / most.ln() * (BAR - 1.0)).round() as usize,
        };
        cells.push("#".repeat(length));
        cells.push(format!("{:.2} %", tally as f64 / total * 100.0));
        table.push(cells);
    }
    let mut last = vec!["above".to_owned()];
    last.extend(histograms.iter().map(|histogram| histogram.above.to_string()));
    last.extend([String::new(), "100.00 %".to_owned()]);
    table.push(last);
    table
}
