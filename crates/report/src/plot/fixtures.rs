//! Small records that were never measured, for tests of what draws them.

use cachewise_measure::{
    CacheLevel, Caches, CellKey, ClockFacts, Cpu, Decisions, End, Figure, FigureKind, Header,
    Histogram, Libc, Machine, PairedRatio, Record, Row, Warning,
};
use std::collections::BTreeMap;

/// A machine with 32 KiB, 512 KiB and 32 MiB of cache.
pub fn machine() -> Machine {
    let level = |bytes| CacheLevel { bytes, shared_by: 1, source: "cpuid".into() };
    Machine {
        cpu: Cpu {
            vendor: "AuthenticAMD".into(),
            model_name: "AMD <EPYC> & \"co\"".into(),
            family: 25,
            model: 1,
            stepping: 1,
            features: "sse2 avx2".into(),
            ..Cpu::default()
        },
        caches: Caches {
            l1d: level(32 << 10),
            l2: level(512 << 10),
            llc: level(32 << 20),
            llc_usable: None,
            notes: Vec::new(),
        },
        logical_cpus: 2,
        memory_bytes: 24 << 30,
        page_size: 4096,
        thp: Some("madvise".into()),
        governor: None,
        hypervisor: Some("KVM".into()),
        kernel: "Linux 6.1 x86_64".into(),
        libc: Libc { name: "glibc".into(), version: "2.36".into(), ..Libc::default() },
        compiler: "rustc 1.95.0".into(),
        emulated: None,
    }
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
    let end = End {
        rows: rows.len() as u64,
        interrupted: false,
        seconds: 12.5,
        peak_bytes: None,
        verdicts: vec!["It <pays> from 4 KiB on.".into(), "Below, it does not.".into()],
    };
    let clock = ClockFacts {
        source: "tsc".into(),
        frequency_ghz: Some(2.4),
        cost_ns: 20.0,
        resolution_ns: 0.4,
        core_ghz: 3.2,
    };
    let warning = Warning {
        id: "virtual".into(),
        cause: "a guest <script>alert(1)</script>".into(),
        remedy: "bare metal".into(),
        figure: "KVM".into(),
    };
    let header = Header {
        command: ["cachewise", "run", "grid", "it's; <b>"].map(str::to_owned).to_vec(),
        started: "2026-01-02T03:04:05Z".into(),
        settings: BTreeMap::from([("experiment".to_owned(), "grid".into())]),
        warnings: vec![warning],
        ..Header::now("cachewise 0.1.0", machine(), clock, 7)
    };
    Record { header, rows, notes: Vec::new(), decisions: Decisions::default(), end: Some(end) }
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
    let mut single = row("compare", 4096, "single", "compare.sse2");
    single.histogram = Some(Histogram {
        edges_ns: vec![0.0, 50.0, 100.0, 200.0, 1000.0],
        counts: vec![3, 120, 7, 0],
        above: 2,
    });
    rows.push(single);
    let map = figure(FigureKind::HeatMap, "delay_ns", "total_ratio").of("map");
    let mut record = record(rows);
    record.header.figures = vec![
        figure(FigureKind::Curve, "size", "gbps").of("warm"),
        figure(FigureKind::Bars, "candidate", "cost").by(&["size"]).of("warm"),
        Figure { y: Some("touched".to_owned()), ..map },
        figure(FigureKind::Histogram, "ns", "ns").of("single"),
    ];
    record
}
