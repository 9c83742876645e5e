//! Every verb once for real, as a user would type it.

use crate::support::{has, ok, profile, program, stdout};
use cachewise::profile::Profile;
use cachewise_kernels::{Operation, resolve};
use cachewise_measure::record;
use std::path::Path;
use std::process::Command;

#[test]
fn help_of_every_verb() {
    insta::assert_snapshot!("help", ok("--help"));
    let verbs = "tune doctor list run explain export report compare completions man learn forget";
    for verb in verbs.split(' ') {
        insta::assert_snapshot!(format!("help-{verb}"), ok(&format!("{verb} --help")));
    }
}

#[test]
fn every_alias_of_the_source_documents_is_listed_and_resolves() {
    let listed = ok("list kernels --format csv");
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
    let table = ok("list kernels --op zero");
    assert!(table.contains("zero.rep.stosb") && !table.contains("copy.avx"));
    let entries = ok("list entries --op copy --format csv");
    if cfg!(target_arch = "x86_64") {
        assert!(entries.contains("copy,avx512vl,"), "{entries}");
        let lines = ok("list entries --format json");
        let in_use = lines.lines().filter(|line| line.contains("\"in_use\":true")).count();
        assert_eq!((lines.lines().count(), in_use), (18, 6), "{lines}");
    }
    assert!(ok("list experiments").contains("copy-matrix"));
    let markdown = ok("list kernels --kernels copy[TUV] --format markdown");
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| copy.")).count(), 3);
    for line in ok("list kernels --format json").lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect("a JSON line");
        assert!(value["name"].is_string());
    }
}

#[test]
fn doctor_speaks_text_and_json() {
    // Without a profile nothing was measured here: status 4, and the command that measures.
    let none = |arguments: &[&str]| {
        let mut command = program();
        command.args(arguments).env("XDG_CONFIG_HOME", "/nonexistent");
        let output = command.output().expect("the program starts");
        assert_eq!(output.status.code(), Some(4), "{arguments:?}");
        stdout(&output)
    };
    let text = none(&["doctor"]);
    let begin = "Cannot tell, because nothing was measured on this machine";
    assert!(text.starts_with(begin), "{text}");
    has(&text, &["`cachewise tune --quick`", "LLC of a core complex"]);
    let json = none(&["doctor", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(value["machine"]["cpu"]["vendor"].is_string());
    assert!(value["warnings"].is_array());
}

/// A profile for this CPU whose record says that the library takes this part of libc's time.
fn measured_here(directory: &Path, ratio: f64) -> std::path::PathBuf {
    use cachewise::profile::{MAX_SIZE, Record, fnv1a64};
    let stored = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../record/2026-11-22-tune-quick-zen3-guest.jsonl.gz"
    );
    let text = Command::new("gzip").args(["-dc", stored]).output().expect("gzip").stdout;
    let mut rows = 0;
    let lines: Vec<String> = String::from_utf8(text)
        .expect("text")
        .lines()
        .filter_map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).expect("JSON");
            if line["type"] == "row" && line["experiment"] != "tune-library" {
                return None;
            }
            match line["type"].as_str() {
                Some("row") => rows += 1,
                Some("end") => line["rows"] = rows.into(),
                _ => {}
            }
            if line["contestant"] == "cachewise" || line["candidate"] == "cachewise" {
                for (end, value) in [("low", 0.99), ("median", 1.0), ("high", 1.01)] {
                    line["ratio"][end] = (ratio * value).into();
                }
            }
            Some(line.to_string() + "\n")
        })
        .collect();
    let record = lines.concat();
    std::fs::write(directory.join("p.record.jsonl"), &record).expect("written");
    let checksum = fnv1a64(record.as_bytes());
    let path = directory.join("p.profile");
    let record = Some(Record { name: "p.record.jsonl".into(), checksum });
    let profile = Profile { record, ..profile(&[(256, MAX_SIZE, "copy.gpr64")]) };
    profile.write_atomic(&path).expect("written");
    path
}

#[test]
fn doctor_answers_from_the_record_with_its_status() {
    let directory = tempfile::tempdir().expect("a directory");
    let doctor = |profile: &Path| {
        let mut command = program();
        let output = command.arg("doctor").env("CACHEWISE_PROFILE", profile).output();
        let output = output.expect("the program starts");
        let text = stdout(&output);
        (text.lines().next().unwrap_or_default().to_owned(), output.status.code())
    };
    let fine = "The C library is fine here";
    let better = "Use the library (`cachewise exec -- PROGRAM`)";
    for (ratio, says, status) in [(0.5, better, 3), (1.0, fine, 0), (2.0, fine, 0)] {
        let (line, code) = doctor(&measured_here(directory.path(), ratio));
        let says = format!("{says}: where this machine's profile names");
        assert!(line.starts_with(&says) && code == Some(status), "{ratio}: {code:?} {line}");
    }
    let profile = measured_here(directory.path(), 0.5);
    std::fs::remove_file(directory.path().join("p.record.jsonl")).expect("removed");
    let (line, code) = doctor(&profile);
    assert!(line.starts_with("Cannot tell, because ") && line.contains("p.record.jsonl"), "{line}");
    assert!(line.ends_with("`cachewise tune --quick` measures again."), "{line}");
    assert_eq!(code, Some(4), "{line}");
}

#[test]
fn an_experiment_prints_seed_columns_and_writes_its_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let [json, csv, markdown] = ["a.jsonl", "a.csv", "a.md"].map(path);
    let printed = ok(&format!(
        "run copy-matrix --kernels copy[T0]|copy\\.sse2 --size 1K --residency L1,DRAM:L1 --seed 7 \
         --json {json} --csv {csv} --markdown {markdown}"
    ));
    let columns = ["copy0", "copyT", "B/s", "us"];
    has(&printed, &columns);
    has(&printed, &["copy, 1 KiB, L1 to L1", "DRAM to L1", "4.096e9 bytes"]);
    // In capitals where the proof failed, beside other work.
    assert!(printed.to_lowercase().contains("residency"), "{printed}");
    let read = record::read(Path::new(&json)).expect("a whole record");
    assert_eq!(read.header.seed, 7);
    assert!(!read.end.expect("an end").interrupted);
    // Four candidates with libc, two cells.
    assert_eq!(read.rows.len(), 8);
    assert!(read.rows.iter().all(|row| row.operation_ns.len() >= 15));
    assert_eq!(std::fs::read_to_string(csv).expect("CSV").lines().count(), 9);
    has(&std::fs::read_to_string(markdown).expect("Markdown"), &["| copy.sse2 |"]);
}

#[test]
fn json_to_stdout_replaces_the_tables() {
    let printed = ok("run zero-matrix --kernels zero\\.sse2 --size 512 --residency L1 --json -");
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
        let printed =
            ok(&format!("run {experiment} --quick --kernels {kernels} --size 8K --residency L2"));
        assert!(printed.contains("sse2"), "{experiment}:\n{printed}");
    }
    let roofline = ok("run roofline --quick");
    let cells = ["copy", "fill", "zero", "equal"].map(|name| format!("{name}, 16 MiB, DRAM"));
    has(&roofline, &cells.each_ref().map(String::as_str));
    assert!(roofline.contains("100 %"), "the best kernel is its own ceiling: {roofline}");
    let printed = ok("run whole-cost --quick --kernels zero\\.sse2 --size 64K --residency L2");
    has(&printed, &["bystander", "sum"]);
}

#[test]
fn tuning_writes_a_profile_that_explains_exports_and_is_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let printed = ok(&format!(
        "tune --budget 5s --memory 64M --output {} --seed 1 --plot --html {}",
        path("p.profile"),
        path("p.html")
    ));
    let page = std::fs::read_to_string(path("p.html")).expect("a page");
    has(&page, &["Decisions, and the library", "<svg"]);
    let record_path = directory.path().join("p.record.jsonl");
    let own = record::read(&record_path).expect("a record");
    assert!(!own.rows.is_empty() && !own.header.figures.is_empty());
    // Every operation and hint is decided, and the profile says the same.
    let profile = path("p.profile");
    let written = Profile::read(Path::new(&profile)).expect("a profile");
    let recorded = own.decisions.kernels.iter().map(|d| (d.operation.as_str(), d.kernel.as_str()));
    let decided = written.decisions.iter().map(|d| (d.operation.name(), d.kernel.as_str()));
    assert!(recorded.eq(decided));
    assert_eq!(written.decisions.iter().filter(|d| d.from == 256).count(), 14);
    // The last three lines.
    let lines: Vec<&str> = printed.lines().rev().take(3).collect();
    assert!(lines[2].starts_with("gain here:  "), "{printed}");
    assert!(lines[1].starts_with("trust:      "), "{printed}");
    assert!(lines[0].starts_with("what next:  "), "{printed}");
    assert!(printed.contains("Decisions, and the library's speed"), "{printed}");

    let explained = ok(&format!("explain --op memcpy --size 64K --profile {profile}"));
    has(&explained, &["copy of 64 KiB", "Time over", "lower is faster"]);
    has(&explained, &["evicted: it is in no cache"]);

    // Today's rules decide from the record what they decided then.
    let record_name = record_path.to_string_lossy().into_owned();
    let again = ok(&format!("tune --from {record_name}"));
    let again = Profile::parse(again.as_bytes()).expect("a profile");
    assert_eq!(again.cpu.signature, written.cpu.signature);
    assert_eq!(again.decisions.iter().filter(|d| d.from == 256).count(), 14);

    for (form, text) in [
        ("profile", "cachewise-profile 2"),
        ("json", "\"decisions\""),
        ("c", "struct cachewise_decision"),
    ] {
        assert!(ok(&format!("export {form} --profile {profile}")).contains(text), "{form}");
    }
    compile_header(directory.path(), &ok(&format!("export c --profile {profile}")));

    let followed = |size| {
        let mut command = program();
        command.args(["explain", "--op", "zero", "--size", size]);
        stdout(&command.env("CACHEWISE_PROFILE", &profile).output().expect("the program starts"))
    };
    assert!(followed("4K").contains(&profile), "{}", followed("4K"));
    // No line decides a small size, but there is a record, of the race of entries.
    assert!(!followed("64").contains("nothing was measured here"), "{}", followed("64"));
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
