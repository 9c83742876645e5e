//! Every verb once for real, as a user would type it.

use crate::support::{DECIDED, Folder, asked, has, ok, piped, profile, refused, root, said, text};
use cachewise::profile::{Profile, fnv1a64};
use cachewise_kernels::{Operation, resolve};
use cachewise_measure::{Machine, Record, Writer, record};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

#[test]
fn help_of_every_verb() {
    let help = ok("--help");
    insta::assert_snapshot!("help", help);
    // As the command itself lists them.
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ")?;
        (!name.starts_with(' ')).then(|| name.split_whitespace().next()).flatten()
    });
    let verbs: Vec<&str> = listed.filter(|verb| *verb != "help").collect();
    has(&verbs.join(" "), &["tune", "run", "advise", "exec"]);
    for verb in verbs {
        insta::assert_snapshot!(format!("help-{verb}"), ok(&format!("{verb} --help")));
    }
}

#[test]
fn every_alias_of_the_source_documents_is_listed_and_resolves() {
    let listed = ok("list kernels --format csv");
    let letters = ['0', 'D'].into_iter().chain('H'..='Y');
    let mut aliases: Vec<String> = letters.map(|letter| format!("copy{letter}")).collect();
    for name in ["slow", "mmx_APn", "mmx_APN", "sse_APn", "sse_APN"] {
        aliases.push(name.to_owned());
        let operations: Vec<_> = resolve(name).map(|kernel| kernel.operation()).collect();
        assert!(operations.contains(&Operation::Copy), "{name} copies");
        assert!(operations.contains(&Operation::Zero), "{name} zeroes");
    }
    for alias in &aliases {
        let mut words = listed.split([',', ' ', '\n']).map(|word| word.trim_matches('"'));
        assert!(words.any(|word| word == alias), "{alias} is not listed");
    }
    let (zero, copy) = cachewise_kernels::resolve_pair("mmx_APn/APN").expect("a pair");
    assert_eq!((zero.name, copy.name), ("zero.mmx", "copy.mmx.nt.pf320.vlasenko"));
}

#[test]
fn listings_have_every_form() {
    let summary = ok("list");
    has(&summary, &["copy-matrix", "list kernels --op copy"]);
    assert!(summary.lines().count() < 24, "a screen: {summary}");
    let table = ok("list kernels --op zero");
    assert!(table.contains("zero.rep.stosb") && !table.contains("copy.avx"));
    assert!(ok("list experiments").contains("copy-matrix"));
    let markdown = ok("list kernels --kernels copy[TUV] --format markdown");
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| copy.")).count(), 3);
    for line in ok("list kernels --format json").lines() {
        let value: Value = serde_json::from_str(line).expect("a JSON line");
        assert!(value["name"].is_string());
    }
}

#[test]
fn doctor_speaks_text_and_json() {
    // Without a profile nothing was measured here: status 4, and the command that measures.
    let [text, json] = ["doctor", "doctor --json"]
        .map(|words| said(asked(words).env("XDG_CONFIG_HOME", "/nonexistent")).with(4).out);
    let begin = "Cannot tell, because nothing was measured on this machine";
    assert!(text.starts_with(begin), "{text}");
    has(&text, &["`cachewise tune --quick`", "LLC of a core complex"]);
    let value: Value = serde_json::from_str(&json).expect("JSON");
    assert!(value["machine"]["cpu"]["vendor"].is_string());
    assert!(value["warnings"].is_array());
}

/// A profile for this CPU whose record says that the library takes this part of libc's time.
fn measured_here(folder: &Folder, ratio: f64) -> String {
    let mut whole = stored();
    whole.rows.retain(|row| row.experiment == "tune-referee");
    for row in &mut whole.rows {
        let time = if row.candidate == row.reference { 100.0 } else { 100.0 * ratio };
        row.operation_ns.fill(time);
        (row.reader_ns, row.bystander_ns) = (Vec::new(), Vec::new());
    }
    with_record(folder, &whole, DECIDED)
}

/// A tuning of another machine.
fn stored() -> Record {
    let file = root().join("record/2026-11-27-tune-quick-zen4-guest.jsonl.gz");
    record::read(&file).expect("a record")
}

/// A profile of these lines with that record beside it.
fn with_record(folder: &Folder, record: &Record, lines: &str) -> String {
    let mut writer = Writer::create(Path::new(&folder.path("p.record.jsonl"))).expect("room");
    writer.header(&record.header).expect("room");
    record.rows.iter().try_for_each(|row| writer.row(row)).expect("room");
    writer.decisions(&record.decisions).expect("room");
    writer.finish(false).expect("room");
    let checksum = fnv1a64(folder.read("p.record.jsonl").as_bytes());
    let named = format!("record p.record.jsonl fnv1a64:{checksum:016x}");
    folder.write("p.profile", profile(&format!("{named}\n{lines}")))
}

/// The first line of what `doctor` says by that profile.
fn doctor(profile: &str, status: i32) -> String {
    let told = said(asked("doctor").env("CACHEWISE_PROFILE", profile)).with(status);
    told.out.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn doctor_answers_from_the_record_with_its_status() {
    let folder = Folder::new();
    let fine = "The C library is fine here";
    let better = "Use the library (`cachewise exec -- PROGRAM`)";
    for (ratio, says) in [(0.5, better), (1.0, fine), (2.0, fine)] {
        // Nothing is wrong in any of them.
        let line = doctor(&measured_here(&folder, ratio), 0);
        let says = format!("{says}: measured here, the library's speed beside ");
        assert!(line.starts_with(&says), "{ratio}: {line}");
        let is_old = Machine::describe().libc.release().is_some_and(|release| release < (2, 41));
        let tells = line.contains("later releases of glibc do part of it");
        assert_eq!(tells, is_old && ratio < 1.0, "{line}");
    }
    std::fs::remove_file(folder.path("p.record.jsonl")).expect("removed");
    let line = doctor(&folder.path("p.profile"), 4);
    assert!(line.starts_with("Cannot tell, because ") && line.contains("p.record.jsonl"), "{line}");
    assert!(line.ends_with("`cachewise tune --quick` measures again."), "{line}");
}

/// A compressed record is read as it is, and libc is named only where it is what is called.
#[test]
fn explain_reads_a_compressed_record_and_names_who_is_called() {
    let folder = Folder::new();
    let (name, profile) = ("2026-11-27-tune-quick-zen4-guest.jsonl.gz", folder.path("p.profile"));
    std::fs::copy(root().join("record").join(name), folder.path(name)).expect("the record");
    ok(&format!("tune --from {} -o {profile}", folder.path(name)));
    let told = |size: &str| ok(&format!("explain --op memcmp --size {size} --profile {profile}"));
    let [small, large] = [told("1K"), told("1M")];
    has(&told("64"), &["done by the entry stub itself"]);
    has(&told("64"), &["whatever a profile says"]);
    has(&small, &["compare of 1 KiB with reuse unknown: libc", "the library's own loop", "why: "]);
    has(&large, &["libc (from", "the C library's own routine", "Time over glibc 2.36's at 1 MiB"]);
    // A profile that is kept beside its record.
    let kept = root().join("record/2026-11-27-tune-quick-zen4-guest.profile");
    let kept = ok(&format!("explain --op zero --size 4K --profile {}", kept.display()));
    has(
        &kept,
        &[
            "zero of 4 KiB with reuse unknown: libc",
            "look at the size",
            "not confirmed beside libc",
        ],
    );
    has(&kept, &["libc.handed-over: glibc 2.36 as the library calls it"]);
}

#[test]
fn an_experiment_prints_seed_columns_and_writes_its_files() {
    let folder = Folder::new();
    let printed = ok(&format!(
        "run copy-matrix --kernels copy[T0]|copy\\.sse2 --size 1K --residency L1,DRAM:L1 --seed 7 \
         --json {} --csv {} --markdown {}",
        folder.path("a.jsonl"),
        folder.path("a.csv"),
        folder.path("a.md")
    ));
    has(&printed, &["copy0", "copyT", "GB/s", "us"]);
    has(&printed, &["copy, 1 KiB, L1 to L1", "DRAM to L1", "4.096e9 bytes"]);
    // In capitals where the proof failed, beside other work.
    assert!(printed.to_lowercase().contains("residency"), "{printed}");
    let read = folder.record("a.jsonl");
    assert_eq!(read.header.seed, 7);
    assert!(!read.end.expect("an end").interrupted);
    // Four candidates with libc, two cells.
    assert_eq!(read.rows.len(), 8);
    assert!(read.rows.iter().all(|row| row.operation_ns.len() >= 15));
    assert_eq!(folder.read("a.csv").lines().count(), 9);
    has(&folder.read("a.md"), &["| copy.sse2 |"]);
}

/// The decisions of a record, written where a stream takes them, and never in the place of a device.
#[test]
fn a_profile_that_is_decided_again_goes_where_it_is_sent() {
    let stored = root().join("record/2026-11-27-tune-quick-zen4-guest.jsonl.gz");
    let tune = format!("tune --from {}", stored.display());
    let printed = ok(&tune);
    assert!(Profile::parse(printed.as_bytes()).is_ok(), "{printed}");
    assert_eq!(ok(&format!("{tune} -o -")), printed);
    refused(&format!("{tune} -o /nonexistent/p.profile"), 1, &["/nonexistent/p.profile"]);
    assert!(!Path::new("/nonexistent").exists());
    // A device of a test's own: what is not a file is written into.
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    said(Command::new("mkfifo").arg(&pipe)).with(0);
    let reader = piped({
        let mut cat = Command::new("cat");
        cat.arg(&pipe);
        cat
    });
    ok(&format!("{tune} -o {pipe}"));
    let read = reader.wait_with_output().expect("it ends");
    assert_eq!(text(&read.stdout), printed);
    assert_eq!(folder.names(), ["pipe"]);
}

/// A profile that leaves everything to libc: `tune` says no, `doctor` agrees, and nothing is to be set.
#[test]
fn a_tuning_that_found_nothing_is_an_answer() {
    let folder = Folder::new();
    let mut whole = stored();
    whole.rows.retain(|row| row.experiment == "tune");
    let kernels = whole.decisions.kernels.iter_mut();
    kernels.for_each(|decision| decision.kernel = "libc".to_owned());
    let libc = "decide copy unknown 256 max libc copy.gpr64\ndecide fill unknown 256 max libc";
    let fine = doctor(&with_record(&folder, &whole, libc), 0);
    assert!(fine.starts_with("The C library is fine here: no kernel was shown"), "{fine}");
    whole.rows.iter_mut().for_each(|row| row.operation_ns.truncate(1));
    let short = doctor(&with_record(&folder, &whole, libc), 4);
    assert!(short.starts_with("Cannot tell, because there was time for 1 round "), "{short}");
    let export = format!("export glibc --profile {}", folder.path("p.profile"));
    let nothing = refused(&export, 4, &["there is nothing to set"]);
    assert!(nothing.out.is_empty());
}

#[test]
fn every_experiment_runs() {
    for (arguments, printed) in [
        ("compare-matrix --kernels (compare|equal)\\.sse2 --size 8K --residency L2", &["sse2"][..]),
        ("whole-cost --kernels copy\\.sse2(\\.nt)? --size 8K --residency L2", &["sse2"]),
        ("zero-matrix --kernels zero(-pages)?\\.sse2 --size 8K --residency L2", &["sse2"]),
        ("whole-cost --kernels zero\\.sse2 --size 64K --residency L2", &["bystander", "sum"]),
    ] {
        has(&ok(&format!("run {arguments} --quick")), printed);
    }
    let roofline = ok("run roofline --quick --kernels .*\\.sse2");
    for operation in ["copy", "fill", "zero", "equal"] {
        has(&roofline, &[&format!("{operation}, 16 MiB, DRAM")]);
    }
    assert!(roofline.contains("100 %"), "the best kernel is its own ceiling: {roofline}");
}

#[test]
fn tuning_writes_a_profile_that_explains_exports_and_is_followed() {
    let folder = Folder::new();
    let profile = folder.path("p.profile");
    let printed = ok(&format!(
        "tune --budget 10s --memory 64M --output {profile} --seed 1 --html {}",
        folder.path("p.html")
    ));
    has(&folder.read("p.html"), &["Decisions, and the library", "<svg"]);
    let own = folder.record("p.record.jsonl");
    assert!(!own.rows.is_empty() && !own.header.figures.is_empty());
    // Every operation and hint is decided, and the profile says the same.
    let written = Profile::read(Path::new(&profile)).expect("a profile");
    let recorded = own.decisions.kernels.iter().map(|d| (d.operation.as_str(), d.kernel.as_str()));
    let decided = written.decisions.iter().map(|d| (d.operation.name(), d.kernel.as_str()));
    assert!(recorded.eq(decided));
    assert_eq!(written.decisions.iter().filter(|d| d.from == 256).count(), 14);
    let last: Vec<&str> = printed.lines().rev().take(3).collect();
    for (line, begin) in last.iter().zip(["what next:  ", "trust:      ", "gain here:  "]) {
        assert!(line.starts_with(begin), "{printed}");
    }
    has(&printed, &["Decisions, and the library's speed"]);

    let explained = ok(&format!("explain --op memcpy --size 64K --profile {profile}"));
    has(&explained, &["copy of 64 KiB", "Time over", "lower is faster"]);
    has(&explained, &["evicted: it is in no cache"]);

    // Today's rules decide from the record what they decided then.
    let again = ok(&format!("tune --from {}", folder.path("p.record.jsonl")));
    let again = Profile::parse(again.as_bytes()).expect("a profile");
    assert_eq!(again.cpu.signature, written.cpu.signature);
    assert_eq!(again.decisions.iter().filter(|d| d.from == 256).count(), 14);

    let followed = |size| {
        let mut explain = asked(&format!("explain --op zero --size {size}"));
        said(explain.env("CACHEWISE_PROFILE", &profile)).out
    };
    has(&followed("4K"), &[&profile]);
    // No line decides a small size, but there is a record, of the race of entries.
    assert!(!followed("64").contains("nothing was measured here"), "{}", followed("64"));
}
