//! Every verb once for real, as a user would type it.

use cachewise_kernels::{Operation, resolve};
use cachewise_measure::record;
use std::path::Path;
use std::process::{Command, Output};

fn cachewise(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cachewise"))
        .args(arguments)
        .env_remove("CACHEWISE_PROFILE")
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn ok(arguments: &[&str]) -> String {
    let output = cachewise(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

#[test]
fn help_of_every_verb() {
    insta::assert_snapshot!("help", ok(&["--help"]));
    for verb in [
        "tune",
        "doctor",
        "list",
        "run",
        "explain",
        "export",
        "report",
        "compare",
        "completions",
        "man",
        "learn",
        "forget",
    ] {
        insta::assert_snapshot!(format!("help-{verb}"), ok(&[verb, "--help"]));
    }
}

#[test]
fn every_alias_of_the_source_documents_is_listed_and_resolves() {
    let listed = ok(&["list", "kernels", "--format", "csv"]);
    let letters = std::iter::once('0').chain(std::iter::once('D')).chain('H'..='Y');
    let mut aliases: Vec<String> = letters.map(|letter| format!("copy{letter}")).collect();
    for name in ["slow", "mmx_APn", "mmx_APN", "sse_APn", "sse_APN"] {
        aliases.push(name.to_owned());
        let operations: Vec<_> = resolve(name).map(|kernel| kernel.operation()).collect();
        assert!(operations.contains(&Operation::Copy), "{name} copies");
        assert!(operations.contains(&Operation::Zero), "{name} zeroes");
    }
    for alias in &aliases {
        let word = |line: &str| line.split([',', ' ']).any(|part| part.trim_matches('"') == alias);
        assert!(listed.lines().any(word), "{alias} is not listed");
    }
    let (zero, copy) = cachewise_kernels::resolve_pair("mmx_APn/APN").expect("a pair");
    assert_eq!((zero.name, copy.name), ("zero.mmx", "copy.mmx.nt.pf320.vlasenko"));
}

#[test]
fn listings_have_every_form() {
    let table = ok(&["list", "kernels", "--op", "zero"]);
    assert!(table.contains("zero.rep.stosb") && !table.contains("copy.avx"));
    assert!(ok(&["list", "experiments"]).contains("copy-matrix"));
    let markdown = ok(&["list", "kernels", "--kernels", "copy[TUV]", "--format", "markdown"]);
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| copy.")).count(), 3);
    for line in ok(&["list", "kernels", "--format", "json"]).lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        assert!(value["name"].is_string());
    }
}

#[test]
fn doctor_speaks_text_and_json() {
    assert!(ok(&["doctor"]).contains("LLC of a core complex"));
    let value: serde_json::Value = serde_json::from_str(&ok(&["doctor", "--json"])).expect("JSON");
    assert!(value["machine"]["cpu"]["vendor"].is_string());
    assert!(value["warnings"].is_array());
}

#[test]
fn an_experiment_prints_seed_columns_and_writes_its_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let printed = ok(&[
        "run",
        "copy-matrix",
        "--kernels",
        "copy[T0]|copy\\.sse2",
        "--size",
        "1K",
        "--residency",
        "L1,DRAM:L1",
        "--seed",
        "7",
        "--json",
        &path("a.jsonl"),
        "--csv",
        &path("a.csv"),
        "--markdown",
        &path("a.md"),
    ]);
    for text in
        ["copy0", "copyT", "B/s", "us", "copy, 1 KiB, L1 to L1", "DRAM to L1", "4.096e9 bytes"]
    {
        assert!(printed.contains(text), "{text} is missing in:\n{printed}");
    }
    let read = record::read(&directory.path().join("a.jsonl")).expect("a whole record");
    assert_eq!(read.header.seed, 7);
    assert!(!read.end.expect("an end").interrupted);
    // Four candidates with libc, two cells.
    assert_eq!(read.rows.len(), 8);
    assert!(read.rows.iter().all(|row| row.operation_ns.len() >= 15));
    let csv = std::fs::read_to_string(path("a.csv")).expect("CSV");
    assert_eq!(csv.lines().count(), 9);
    assert!(std::fs::read_to_string(path("a.md")).expect("Markdown").contains("| copy.sse2 |"));
}

#[test]
fn json_to_stdout_replaces_the_tables() {
    let printed = ok(&[
        "run",
        "zero-matrix",
        "--kernels",
        "zero\\.sse2",
        "--size",
        "512",
        "--residency",
        "L1",
        "--json",
        "-",
    ]);
    let lines: Vec<serde_json::Value> =
        printed.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.first().expect("a header")["type"], "header");
    assert_eq!(lines.last().expect("an end")["type"], "end");
}

#[test]
fn every_experiment_runs() {
    for (experiment, kernels) in [
        ("compare-matrix", "(compare|equal)\\.sse2"),
        ("whole-cost", "copy\\.sse2(\\.nt)?"),
        ("zero-matrix", "zero(-pages)?\\.sse2"),
    ] {
        let printed = ok(&[
            "run",
            experiment,
            "--quick",
            "--kernels",
            kernels,
            "--size",
            "8K",
            "--residency",
            "L2",
        ]);
        assert!(printed.contains("sse2"), "{experiment}:\n{printed}");
    }
    let roofline = ok(&["run", "roofline", "--quick"]);
    for operation in ["copy", "fill", "zero", "equal"] {
        assert!(
            roofline.contains(&format!("{operation}, 16 MiB, DRAM")),
            "{operation}: {roofline}"
        );
    }
    assert!(roofline.contains("100 %"), "the best kernel is its own ceiling: {roofline}");
    let printed = ok(&[
        "run",
        "whole-cost",
        "--quick",
        "--kernels",
        "zero\\.sse2",
        "--size",
        "64K",
        "--residency",
        "L2",
    ]);
    assert!(printed.contains("bystander") && printed.contains("sum"), "{printed}");
}

#[test]
fn tuning_writes_a_profile_that_explains_exports_and_is_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let printed = ok(&[
        "tune",
        "--quick",
        "--largest",
        "256K",
        "--output",
        &path("p.profile"),
        "--seed",
        "1",
        "--plot",
        "--html",
        &path("p.html"),
    ]);
    let page = std::fs::read_to_string(path("p.html")).expect("a page");
    for text in ["Decisions, and their speed", "copying around the cache", "Speed by size", "<svg"]
    {
        assert!(page.contains(text), "{text} is missing in the page");
    }
    let own = record::read(&directory.path().join("p.record.jsonl")).expect("a record");
    assert_eq!(own.header.figures.len(), 9);
    assert!(own.end.expect("an end").verdicts[0].contains("copying around the cache"));
    for text in ["Decisions", "copying around the cache", "regret", "The library", "a avx"] {
        assert!(printed.contains(text), "{text} is missing in:\n{printed}");
    }
    let profile = path("p.profile");
    let explained =
        ok(&["explain", "--op", "copy", "--size", "64K", "--reuse", "soon", "--profile", &profile]);
    assert!(explained.contains("->") && explained.contains("Time over libc's"), "{explained}");

    for (form, text) in [
        ("profile", "cachewise-profile 2"),
        ("json", "\"decisions\""),
        ("c", "struct cachewise_decision"),
    ] {
        assert!(ok(&["export", form, "--profile", &profile]).contains(text), "{form}");
    }
    compile_header(directory.path(), &ok(&["export", "c", "--profile", &profile]));
    let tunables = ok(&["export", "glibc", "--untried", "--profile", &profile]);
    assert!(tunables.starts_with("GLIBC_TUNABLES=glibc.cpu.x86_non_temporal_threshold=0x"));

    let output = Command::new(env!("CARGO_BIN_EXE_cachewise"))
        .args(["explain", "--op", "zero", "--size", "4K"])
        .env("CACHEWISE_PROFILE", &profile)
        .output()
        .expect("the program starts");
    assert!(stdout(&output).contains(&profile), "{}", stdout(&output));
}

fn compile_header(directory: &Path, header: &str) {
    std::fs::write(directory.join("decisions.h"), header).expect("a header");
    let source =
        "#include \"decisions.h\"\nint main(void) { return cachewise_decisions[0].from != 256; }\n";
    std::fs::write(directory.join("try.c"), source).expect("a source");
    let compiled = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o", "try", "try.c"])
        .current_dir(directory)
        .status()
        .expect("a C compiler");
    assert!(compiled.success());
    let run = Command::new(directory.join("try")).status().expect("the program starts");
    assert!(run.success());
}

#[test]
fn the_proof_of_residency_is_printed() {
    let printed =
        ok(&["run", "copy-matrix", "--kernels", "copy0", "--size", "4K", "--residency", "DRAM"]);
    assert!(printed.to_lowercase().contains("residency"), "{printed}");
}
