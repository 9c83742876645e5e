//! `run peers`: launches of it, and the end of one by Ctrl-C.

use crate::support::{Folder, asked, has, ok, piped, signal};
use std::io::{BufRead as _, BufReader};

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn launches_are_rounds_and_a_ctrl_c_keeps_those_that_ended() {
    let folder = Folder::new();
    let run = "run peers --op fill --size 64 --rounds 15";
    let run = format!("{run} --json {} --launches", folder.path("r.jsonl"));
    has(&ok(&format!("{run} 6")), &["gain here:"]);
    let record = folder.record("r.jsonl");
    assert_eq!(record.header.settings["launches"], 6);
    let command = record.header.command.join(" ");
    assert!(command.contains("--launches 6") && !command.contains("--launch-record"), "{command}");
    assert!(!record.rows.is_empty() && !record.end.expect("an end").verdicts.is_empty());
    for row in &record.rows {
        assert!(row.dropped || row.operation_ns.len() == 6, "{row:?}");
    }

    // The cells of each launch are those of the first one.
    let whole = "run whole-cost --quick --op zero --residency LLC --kernels zero\\.sse2";
    let rest = format!("--rounds 15 --launches 6 --llc 512K --json {}", folder.path("l.jsonl"));
    ok(&format!("{whole} {rest}"));
    let record = folder.record("l.jsonl");
    assert_eq!((record.header.settings["llc"].as_u64(), record.rows.len()), (Some(512 << 10), 2));
    assert!(record.rows.iter().all(|row| row.cell.size == 64 << 10), "{:?}", record.rows);

    let mut child = piped(asked(&format!("{run} 1000")));
    let mut told = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let third = told.find(|line| line.as_ref().is_ok_and(|line| line.contains("launch 3 of 1000")));
    assert!(third.is_some(), "the third begins");
    signal(&child, rustix::process::Signal::INT);
    let rest: Vec<String> = told.map(|line| line.expect("text")).collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest:?}");
    let record = folder.record("r.jsonl");
    assert!(record.end.expect("an end").interrupted);
    assert!(record.rows.iter().all(|row| row.dropped || row.operation_ns.len() >= 2));
    assert!(rest.iter().any(|line| line.contains("finished rows kept")), "{rest:?}");
}
