//! Records survive writing and reading; damaged ones are refused by file, line and field.

use super::*;
use crate::{DriftVerdict, Level, Proof, ProofVerdict, Verdict};
use std::path::Path;
use std::time::{Duration, Instant};

fn header() -> Header {
    let machine = Machine::from_sources(Path::new("/nonexistent"), None);
    let clock = ClockFacts {
        source: "tsc".into(),
        frequency_ghz: Some(2.45),
        cost_ns: 20.0,
        resolution_ns: 0.4,
        core_ghz: 3.5,
    };
    let figure = Figure::new("cost by delay", FigureKind::HeatMap, "delay_ns", "total_ratio");
    Header {
        settings: [("rounds".into(), 15.into())].into(),
        flags: [("RUSTFLAGS".into(), String::new())].into(),
        figures: vec![Figure { y: Some("size".into()), ..figure.by(&["state"]) }],
        latencies: Some(Latencies {
            l1: 1.5,
            l2: 4.0,
            llc: 15.0,
            dram: 100.0,
            llc_bytes: 16 << 20,
        }),
        ..Header::now("cachewise 0.1.0", machine, clock, 7)
    }
}

fn row() -> Row {
    let cell = CellKey {
        source: Some(crate::Level::L2.into()),
        destination: Some(crate::Level::Dram.into()),
        reader: Some(0.5),
        ..CellKey::new("copy", 4096, "cold").with(&[("delay_ns", 250.0)])
    };
    let proof = Proof {
        level: Level::Dram,
        verdict: ProofVerdict::Proved,
        nanoseconds_per_line: 98.0,
        expected: (40.0, 1000.0),
        text: "DRAM proved".into(),
    };
    let row = Row {
        calls: 100,
        reader_ns: vec![f64::NAN],
        bystander_ns: vec![-0.125],
        ratio: Some(PairedRatio { median: 1.1, low: 1.0, high: 1.2, rounds: 15 }),
        verdict: Some(Verdict::Unknown),
        proofs: vec![proof],
        drift: Some(DriftVerdict::Steady { p: 0.5, change: 0.001 }),
        histogram: Some(Histogram { edges_ns: vec![0.0, 10.0], counts: vec![3], above: 2 }),
        ..Row::new("grid", cell, "copy.bytes", "libc", vec![100.25, 101.5])
    };
    row.with(&[("stolen", 0.25)])
}

fn decisions() -> Decisions {
    let decision = Decision {
        operation: "copy".into(),
        reuse: "unknown".into(),
        from: 256,
        to: None,
        kernel: "libc".into(),
        ratio: None,
        why: Some("nothing was shown to be faster".into()),
    };
    Decisions { kernels: vec![decision] }
}

/// A record with a row.
fn begun(path: &Path) -> Writer {
    let mut writer = Writer::create(path).expect("a writer");
    writer.header(&header()).expect("header");
    writer.row(&row()).expect("row");
    writer
}

fn written() -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("record.jsonl");
    let mut writer = begun(&path);
    writer.note("a remark").expect("note");
    writer.decisions(&decisions()).expect("decisions");
    writer.verdict("it pays");
    assert!(!path.exists(), "no name before it is whole");
    writer.finish(false).expect("end");
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1);
    std::fs::read_to_string(&path).expect("text")
}

#[test]
fn a_record_comes_back_as_it_was() {
    let record = read_text("r", &written()).expect("a record");
    let begun = record.header.started.clone();
    assert!(begun.ends_with('Z') && begun.len() == 20, "{begun}");
    assert_eq!(record.header.settings["rounds"], 15);
    assert_eq!(record.header.latencies, header().latencies);
    assert_eq!(record.header.machine, header().machine);
    assert_eq!(record.rows.len(), 1);
    assert!(record.rows[0].reader_ns[0].is_nan());
    let without_nan = |row: &Row| Row { reader_ns: Vec::new(), ..row.clone() };
    assert_eq!(without_nan(&record.rows[0]), without_nan(&row()));
    assert_eq!(record.notes, [Note { text: "a remark".into() }]);
    assert_eq!(record.decisions, decisions());
    let end = record.end.expect("an end");
    assert_eq!((end.rows, end.interrupted), (1, false));
    assert!(end.peak_bytes.is_some_and(|bytes| bytes > 100_000));
}

#[test]
fn times_are_written_short() {
    let mut long = row();
    long.operation_ns = vec![1_234.567_890_123; 1000];
    let text = serde_json::to_string(&long).expect("JSON");
    assert!(text.contains("[1234.6,"), "{}", &text[..300]);
    assert!(text.len() < 12_000, "{}", text.len());
}

#[test]
fn an_abandoned_writer_keeps_its_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("record.jsonl");
    drop(begun(&path));
    let record = read(&path).expect("a record");
    assert!(record.end.is_some_and(|end| end.interrupted) && record.rows.len() == 1);
}

#[test]
fn a_writer_without_a_header_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(&directory.path().join("r")).expect("a writer");
    assert!(writer.row(&row()).is_err() && writer.note("x").is_err());
    assert!(writer.finish(false).is_err());
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 0);
    let missing = Writer::create(&directory.path().join("no/such/r")).err().expect("an error");
    assert!(missing.to_string().contains("no/such/r: "), "{missing}");
    let absent = read(&directory.path().join("absent")).expect_err("absent").to_string();
    assert!(absent.contains("absent: "), "{absent}");
}

#[test]
fn a_stream_gets_the_same_lines() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut record = Writer::to(Box::new(writer));
    record.header(&header()).expect("header");
    assert!(record.header(&header()).is_err(), "once only");
    record.row(&row()).expect("row");
    record.finish(true).expect("end");
    let text = std::io::read_to_string(reader).expect("text");
    assert_eq!(read_text("pipe", &text).expect("a record").rows.len(), 1);
}

#[track_caller]
fn refused(text: &str) -> String {
    read_text("r.jsonl", text).expect_err("a refusal").to_string()
}

#[test]
fn a_file_may_hold_several_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("two.jsonl");
    let named = |name: &str| {
        let settings = format!("\"settings\":{{\"experiment\":\"{name}\",");
        written().replacen("\"settings\":{", &settings, 1)
    };
    std::fs::write(&path, named("one") + &named("other")).expect("room");
    let all = read_all(&path).expect("two records");
    let names: Vec<_> = all.iter().map(Record::experiment).collect();
    assert_eq!(names, [Some("one"), Some("other")]);
    let of = |name: &str| read(format!("{}#{name}", path.display()).as_ref());
    for name in ["one", "other"] {
        let found = of(name).expect("one of them");
        assert_eq!((found.experiment(), found.rows.len()), (Some(name), 1));
    }
    let program = named("one").replacen("\"settings\":{", "\"settings\":{\"name\":\"sort\",", 1);
    std::fs::write(&path, named("one") + &program).expect("room");
    assert_eq!(of("sort").expect("a program's").name(), Some("sort"));
    std::fs::write(&path, named("one") + &named("other")).expect("room");
    for refused in [of("third"), read(&path)] {
        let told = refused.expect_err("a refusal").to_string();
        assert!(told.contains("2 records (one, other); accepted: one of them, as "), "{told}");
    }
    // The record before another one is whole, too.
    let uncounted = named("one").replace("\"rows\":1", "\"rows\":2");
    std::fs::write(&path, uncounted + &named("other")).expect("room");
    let told = read_all(&path).expect_err("a refusal").to_string();
    assert!(told.contains(":5: truncated: 1 rows where the end counts 2"), "{told}");
}

#[test]
fn damage_is_named() {
    let whole = written();
    let lines: Vec<&str> = whole.lines().collect();
    let changed = |from: &str, to: &str| whole.replacen(from, to, 1);
    let before_end = [lines[0], lines[2], lines[4]].join("\n");
    let two = |second: &str| [lines[0], second].join("\n");
    let object = "accepted: one JSON object per line";
    let truncated = "accepted: a record that closes with its end line";
    let (kinds, behind_header) = ("header, row, note, decisions, end", "row, note, decisions, end");
    for (text, told) in [
        ("\n \n".into(), ": empty; accepted: a record, beginning with a header line".into()),
        ("what?".into(), format!(":1: not a JSON object (column 1: expected value); {object}")),
        ("[1]".into(), format!(":1: not a JSON object (an array); {object}")),
        (lines[1].into(), ":1: a line of type \"row\"; accepted here: header".into()),
        (lines[..3].join("\n"), format!(":3: truncated: no end line; {truncated}")),
        (before_end, format!(":3: truncated: 0 rows where the end counts 1; {truncated}")),
        (
            changed("\"schema\":2", "\"schema\":9"),
            ":1: field \"schema\": 9; accepted: 2; a newer cachewise wrote this".into(),
        ),
        (
            changed("\"schema\":2", "\"schema\":1"),
            ":1: field \"schema\": 1; accepted: 2; an older cachewise wrote this".into(),
        ),
        (
            changed("\"schema\":2", "\"schema\":\"x\""),
            ":1: field \"schema\": \"x\"; accepted: 2".into(),
        ),
        (changed("\"calls\":100,", ""), ":2: field \"calls\": missing; accepted: a value".into()),
        (
            changed("\"size\":4096,", ""),
            ":2: field \"cell.size\": missing; accepted: a value".into(),
        ),
        (
            changed("\"size\":4096", "\"size\":\"4K\""),
            ":2: field \"cell.size\": invalid type: string \"4K\"; accepted: u64".into(),
        ),
        (two(lines[0]), format!(":2: a line of type \"header\"; accepted here: {behind_header}")),
        (two(r#"{"type":"tail"}"#), format!(":2: a line of type \"tail\"; accepted here: {kinds}")),
        (two("{}"), format!(":2: field \"type\": missing; accepted: {kinds}")),
        (
            two(r#"{"type":"a\nb"}"#),
            format!(":2: a line of type \"a\u{fffd}b\"; accepted here: {kinds}"),
        ),
    ] {
        assert_eq!(refused(&text), format!("r.jsonl{told}"));
    }
    let verdict = refused(&changed("cannot-tell", "maybe"));
    let told = "r.jsonl:2: field \"verdict\": unknown variant `maybe`; accepted: one of";
    assert!(verdict.starts_with(told), "{verdict}");
    assert!(refused(&changed("cannot-tell", "may\\nbe")).contains("`may\u{fffd}be`"));
    assert!(refused(&format!("{whole}{}", lines[2])).contains("accepted here: header"));
}

#[test]
fn a_run_that_began_before_its_record_has_all_its_seconds() {
    let begun = Instant::now().checked_sub(Duration::from_secs(1)).expect("a second of uptime");
    let mut writer = Writer::to(Box::new(std::io::sink())).since(begun);
    writer.header(&header()).expect("written");
    let end = writer.finish(false).expect("finished");
    assert!(end.seconds >= 1.0, "{}", end.seconds);
}
