//! `run peers`: every bad input once, one line each; and libc under other tunables, in turns from
//! another process. `run hints`: the library under each hint.

use crate::support::{cachewise, has, ok, piped, program, stderr};
use cachewise::profile::MAX_SIZE;
use cachewise_measure::{ProofVerdict, record};
use std::io::{BufRead as _, BufReader};

/// The one line in which it refuses, which has all of these words.
#[track_caller]
fn refused(arguments: &str, status: i32, words: &[&str]) -> String {
    let output = cachewise(&format!("run peers {arguments}"));
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments}: {text}");
    assert!(output.stdout.is_empty(), "something was measured first");
    let ours = |line: &&str| line.starts_with("cachewise: ") || line.starts_with("error: ");
    let lines: Vec<&str> = text.lines().filter(ours).collect();
    assert_eq!(lines.len(), 1, "{arguments}: {text}");
    has(lines[0], words);
    lines[0].to_owned()
}

#[test]
fn a_peer_that_cannot_be_is_one_line() {
    refused("--peer nonsense", 2, &["found \"nonsense\", accepted NAME=PATH:SYMBOL"]);
    refused("--peer x=libc.so.6:frob", 2, &["\"frob\", which does not say what it does"]);
    refused("--peer x=libc.so.6:memcpy@fly", 2, &["memcpy@fly"]);
}

#[test]
fn a_library_or_symbol_that_is_missing_is_told_before_anything_is_measured() {
    // The last operation's too.
    let none = "--peer x: /nonexistent/lib.so: cannot open";
    refused("--peer x=/nonexistent/lib.so:memcmp", 1, &[none]);
    refused("--peer x=libc.so.6:my_memcmp", 1, &["--peer x: ", "undefined symbol: my_memcmp"]);
    let directory = tempfile::tempdir().expect("a directory");
    let text = directory.path().join("library.so");
    std::fs::write(&text, "no library").expect("written");
    let peer = format!("--peer x={}:memcpy", text.display());
    refused(&peer, 1, &["library.so: ", "--peer x: "]);
}

#[test]
fn a_distribution_that_is_missing_or_malformed_names_file_line_and_what_was_found() {
    let said = "--distribution /nonexistent/d.csv: found No such file or directory";
    let line = refused("--distribution /nonexistent/d.csv", 1, &[said]);
    assert!(line.ends_with("accepted a readable file"), "{line}");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("d.csv");
    for (text, at, found) in [
        ("", 1, "the end of the file"),
        ("8:0.5,16:half\n0:1\n1:1\n", 1, "\"16:half\""),
        ("8:0.5,16:1.5\n0:1\n1:1\n", 1, "\"16:1.5\""),
        ("8:1\n2:1\n1:1\n", 2, "\"2:1\""),
        ("8:1\n0:1\n", 3, "the end of the file"),
        ("8:1\n0:1\n3:1\n", 3, "3"),
        ("8:0\n0:1\n1:1\n", 1, "no probability above zero"),
    ] {
        std::fs::write(&file, text).expect("written");
        let said = format!("--distribution {}:{at}: found {found}, accepted", file.display());
        let line = refused(&format!("--distribution {}", file.display()), 1, &[&said]);
        assert_eq!(line.matches("found").count(), 1, "said twice: {line}");
    }
}

#[test]
fn an_operation_that_does_not_exist_brings_the_list() {
    refused("--op shred", 2, &["found \"shred\", accepted copy, move, fill, zero"]);
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
fn libc_under_the_profiles_tunables_is_a_peer() {
    let directory = tempfile::tempdir().expect("a directory");
    let (profile, written) = (directory.path().join("p.profile"), directory.path().join("r.jsonl"));
    let copies = [(256, 65_535, "copy.gpr64"), (65_536, MAX_SIZE, "copy.rep.movsb")];
    let text = crate::support::profile(&copies).to_text();
    std::fs::write(&profile, text).expect("written");
    let mut command = program();
    command.args("run peers --op copy,zero,compare --size 100,8K --rounds 15 --json".split(' '));
    command.arg(&written).env("CACHEWISE_PROFILE", &profile);
    let output = command.output().expect("the program starts");
    let told = stderr(&output);
    assert!(output.status.success(), "{told}");
    assert!(!told.contains("libc+tunables left out"), "{told}");
    let record = record::read(&written).expect("a whole record");
    // The library as a shared one, in each cell where this build carries it: two a store, four a comparison.
    let shared = record.rows.iter().filter(|row| row.candidate == "cachewise.shared").count();
    let expected = if told.contains("cachewise.shared left out") { 0 } else { 8 };
    assert_eq!(shared, expected, "{told}");
    let tunables = &record.header.settings["libc+tunables"];
    has(tunables.as_str().expect("text"), &["x86_rep_movsb_threshold=0x10000"]);
    let rows: Vec<_> = record.rows.iter().filter(|row| row.candidate == "libc+tunables").collect();
    // Copy and zero in as many rounds as everybody; no tunable is about less than a kilobyte, or
    // about comparing.
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.cell.size == 8192));
    for row in rows {
        assert!(row.dropped || row.operation_ns.len() == 15, "{row:?}");
        assert!(row.operation_ns.iter().all(|time| *time > 0.1), "{row:?}");
    }

    let told = stderr(&cachewise("run peers --op copy,zero,compare --size 100"));
    assert!(told.contains("libc+tunables left out: it takes glibc and a profile"), "{told}");
}

#[test]
fn hints_are_measured_with_their_reader_and_their_bystander() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = directory.path().join("r.jsonl");
    let arguments = "run hints --size 128K --op copy --rounds 15 --json";
    let said = ok(&format!("{arguments} {}", written.display()));
    // Which of them is the machine's business, and so is whether operands stay where they were put.
    let found = ["leave", "nothing to compare"].iter().any(|part| said.contains(part));
    let verdict = said.starts_with("copy of 128 KiB: ") && found;
    let record = record::read(&written).expect("a whole record");
    let mut proofs = record.rows.iter().flat_map(|row| &row.proofs);
    let withheld = proofs.any(|proof| proof.verdict == ProofVerdict::Failed);
    assert_eq!(withheld, said.contains("Withheld: "), "{said}");
    assert!(verdict || withheld, "{said}");
    assert_eq!(record.rows.len(), 8, "libc and three hints, read and beside");
    for row in record.rows.iter().filter(|row| !row.dropped) {
        let (read, beside) = (row.cell.state == "read", row.cell.state == "beside");
        assert_eq!(row.reader_ns.len(), if read { row.operation_ns.len() } else { 0 });
        assert_eq!(row.bystander_ns.len(), if beside { row.operation_ns.len() } else { 0 });
    }
}

#[test]
fn launches_are_rounds_and_a_ctrl_c_keeps_those_that_ended() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = directory.path().join("r.jsonl");
    refused("--launches 5", 2, &["5 is not in 6..=1000"]);

    let arguments = "run peers --op fill --size 64 --rounds 15";
    let said = ok(&format!("{arguments} --launches 6 --json {}", written.display()));
    assert!(said.contains("gain here:"), "{said}");
    let record = record::read(&written).expect("a whole record");
    assert_eq!(record.header.settings["launches"], 6);
    assert!(record.header.command.join(" ").contains("--launches 6"));
    assert!(!record.header.command.join(" ").contains("--launch-record"));
    assert!(!record.rows.is_empty() && !record.end.expect("an end").verdicts.is_empty());
    for row in &record.rows {
        assert!(row.dropped || row.operation_ns.len() == 6, "{row:?}");
    }

    let mut command = program();
    command.args(format!("{arguments} --launches 1000 --json").split(' ')).arg(&written);
    let mut child = piped(command);
    let mut told = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let third = told.find(|line| line.as_ref().is_ok_and(|line| line.contains("launch 3 of 1000")));
    assert!(third.is_some(), "the third begins");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is running");
    let rest: Vec<String> = told.map(|line| line.expect("text")).collect();
    assert_eq!(child.wait().expect("it ends").code(), Some(130), "{rest:?}");
    let record = record::read(&written).expect("a whole record");
    assert!(record.end.expect("an end").interrupted);
    assert!(record.rows.iter().all(|row| row.dropped || row.operation_ns.len() >= 2));
    assert!(rest.iter().any(|line| line.contains("finished rows kept")), "{rest:?}");
}
