//! Small records that were never measured, for tests of what draws them.

use crate::Said;
use cachewise_measure::record::read_text;
use cachewise_measure::{CellKey, Figure, FigureKind, Machine, PairedRatio, Record, Row};

/// A machine with 32 KiB, 512 KiB and 32 MiB of cache.
pub fn machine() -> Machine {
    record(Vec::new()).header.machine
}

/// Fifteen rounds between 100 and 114 ns per KiB; kernels other than libc take half as long.
pub fn row(operation: &str, size: u64, state: &str, candidate: &str) -> Row {
    let median = if candidate == "libc" { 1.0 } else { 0.5 };
    let scale = size as f64 / 512.0 * median;
    let operation_ns = (0..15).map(|round| (100.0 + f64::from(round * 7 % 15)) * scale).collect();
    let ratio = PairedRatio { median, low: median * 0.98, high: median * 1.02, rounds: 15 };
    let cell = CellKey::new(operation, size as usize, state);
    let row = Row::new("grid", cell, candidate, "libc", operation_ns);
    Row { calls: 100, ..row.with_ratio(ratio) }
}

/// A finished record of those rows.
pub fn record(rows: Vec<Row>) -> Record {
    let read = read_text("fixture.jsonl", include_str!("fixture.jsonl"));
    let mut record = read.unwrap_or_else(|error| panic!("{error}"));
    record.end.iter_mut().for_each(|end| end.rows = rows.len() as u64);
    Record { rows, ..record }
}

/// A figure with no panels of its own.
pub fn figure(kind: FigureKind, x: &str, value: &str) -> Figure {
    Figure::new(&format!("{value} by {x}"), kind, x, value)
}

/// A record with a row for every kind of figure, and those figures.
pub fn everything() -> Record {
    let mut rows = Vec::new();
    for size in [1024_u64, 4096, 16384, 65536, 1 << 20] {
        for candidate in ["libc", "copy.avx", "copy.avx.nt"] {
            let mut row = row("copy", size, "warm", candidate);
            row.reader_ns = row.operation_ns.iter().map(|time| time / 2.0).collect();
            row.bystander_ns = row.operation_ns.iter().map(|time| time / 4.0 - 28.0).collect();
            row.total_ratio = row.ratio;
            rows.push(row.with(&[("bytes_per_cycle", size as f64 / 500.0)]));
        }
    }
    for delay in [0.0, 1000.0, 100_000.0] {
        for touched in [0.1, 0.5, 1.0] {
            for candidate in ["libc", "copy.avx.nt"] {
                let mut row = row("copy", 4096, "map", candidate);
                row.cell = row.cell.with(&[("delay_ns", delay), ("touched", touched)]);
                let median = if candidate == "libc" { 1.0 } else { 0.6 + touched - delay / 3e5 };
                let (low, high) = (median * 0.95, median * 1.05);
                row.total_ratio = Some(PairedRatio { median, low, high, rounds: 15 });
                rows.push(row);
            }
        }
    }
    let map = figure(FigureKind::HeatMap, "delay_ns", "total_ratio").of("map");
    let mut record = record(rows);
    record.header.figures = vec![
        figure(FigureKind::Curve, "size", "gbps").of("warm"),
        figure(FigureKind::Bars, "candidate", "cost").by(&["size"]).of("warm"),
        Figure { y: Some("touched".to_owned()), ..map },
    ];
    record
}

/// A record's sentences and the matrix of its rows.
pub fn said(record: &Record) -> Said {
    let verdicts = record.end.as_ref().map_or_else(Vec::new, |end| end.verdicts.clone());
    let tables = crate::matrix::tables(&record.rows);
    Said { verdicts, tables, ..Said::default() }
}
