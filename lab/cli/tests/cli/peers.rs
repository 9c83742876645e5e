//! `run peers`: bad libraries and distributions once, one line each; and libc under other tunables, in
//! turns from another process. `run reuse-map --op`: the library under each hint.

use crate::support::{Folder, asked, has, ok, piped, refused, signal};
use std::io::{BufRead as _, BufReader};

#[test]
fn a_library_or_symbol_that_is_missing_is_told_before_anything_is_measured() {
    let folder = Folder::new();
    let text = format!("{}:memcpy", folder.write("library.so", "no library"));
    for (peer, parts) in [
        // The last operation's too.
        ("/nonexistent/lib.so:memcmp", ["--peer x: /nonexistent/lib.so: cannot open", "x"]),
        ("libc.so.6:my_memcmp", ["--peer x: ", "undefined symbol: my_memcmp"]),
        (&text, ["--peer x: ", "library.so: "]),
    ] {
        refused(&format!("run peers --peer x={peer}"), 1, &parts);
    }
}

#[test]
fn a_distribution_that_is_missing_or_malformed_names_file_line_and_what_was_found() {
    let folder = Folder::new();
    let run = format!("run peers --distribution {}", folder.path("d.csv"));
    let missing = refused(&run, 1, &["d.csv: expected a readable file, "]);
    assert!(missing.line().contains(", found No such file or directory"), "{missing:?}");
    for (text, at, found) in [
        ("", 1, "the end of the file"),
        ("8:0.5,16:half\n0:1\n1:1\n", 1, "\"16:half\""),
        ("8:0.5,16:1.5\n0:1\n1:1\n", 1, "\"16:1.5\""),
        ("8:1\n2:1\n1:1\n", 2, "\"2:1\""),
        ("8:1\n0:1\n", 3, "the end of the file"),
        ("8:1\n0:1\n3:1\n", 3, "3"),
        ("8:0\n0:1\n1:1\n", 1, "no probability above zero"),
    ] {
        let file = folder.write("d.csv", text);
        let told = format!("--distribution {file}:{at}: expected ");
        let refusal = refused(&run, 1, &[&told, &format!(", found {found}")]);
        assert_eq!(refusal.line().matches("found").count(), 1, "said twice: {refusal:?}");
    }
}

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
