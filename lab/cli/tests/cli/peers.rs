//! `run peers`: bad libraries and distributions once, one line each; and libc under other tunables, in
//! turns from another process. `run reuse-map --op`: the library under each hint.

use crate::support::{Folder, asked, cachewise, has, ok, piped, refused, said, signal};
use cachewise_measure::ProofVerdict;
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
    let missing = refused(&run, 1, &["d.csv: found No such file or directory"]);
    assert!(missing.line().ends_with("accepted a readable file"), "{missing:?}");
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
        let told = format!("--distribution {file}:{at}: found {found}, accepted");
        let refusal = refused(&run, 1, &[&told]);
        assert_eq!(refusal.line().matches("found").count(), 1, "said twice: {refusal:?}");
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn libc_under_the_profiles_tunables_is_a_peer() {
    let folder = Folder::new();
    let copies = "decide copy unknown 256 65535 copy.gpr64\n\
                  decide copy unknown 65536 max copy.rep.movsb";
    let profile = folder.write("p.profile", crate::support::profile(copies));
    let run = "run peers --op copy,zero,compare --size 100,8K --rounds 15 --json";
    let mut run = asked(&format!("{run} {}", folder.path("r.jsonl")));
    let told = said(run.env("CACHEWISE_PROFILE", profile)).with(0).err;
    assert!(!told.contains("libc+tunables left out"), "{told}");
    let record = folder.record("r.jsonl");
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
    for row in rows {
        assert_eq!(row.cell.size, 8192);
        assert!(row.dropped || row.operation_ns.len() == 15, "{row:?}");
        assert!(row.operation_ns.iter().all(|time| *time > 0.1), "{row:?}");
    }

    let told = cachewise("run peers --op copy,zero,compare --size 100").err;
    has(&told, &["libc+tunables left out: it takes glibc and a profile"]);
}

#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn hints_are_measured_with_their_reader_and_their_bystander() {
    let folder = Folder::new();
    let arguments = "run reuse-map --size 128K --op copy --rounds 15 --json";
    let said = ok(&format!("{arguments} {}", folder.path("r.jsonl")));
    // One of them; the machine decides which, and whether operands stay where they were put.
    let verdict = said.contains("with the library's hint `soon` over `never`");
    let record = folder.record("r.jsonl");
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
