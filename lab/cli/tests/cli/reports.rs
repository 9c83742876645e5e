//! `report`, `compare`, `completions` and `man` as a user would type them: once for real, and every
//! bad input once.

use crate::support::{
    Folder, asked, cachewise, documented, ends, has, keys, names, ok, piped, refused, root, said,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A record that this machine measured, `a.jsonl`, and the page that came with it, `a.html`.
fn measured() -> &'static Folder {
    static MEASURED: OnceLock<Folder> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let folder = Folder::new();
        ok(&format!(
            "run whole-cost --kernels copy\\.(sse2|avx)(\\.nt)?|copy\\.rep\\.movsb \
             --size 1K,2K,4K --residency L1 --json {} --html {}",
            folder.path("a.jsonl"),
            folder.path("a.html")
        ));
        folder
    })
}

/// Its path.
fn record() -> String {
    measured().path("a.jsonl")
}

/// A record with every line of that type changed, as a text.
fn changed_in(record: &str, of_type: &str, change: impl Fn(&mut Value)) -> String {
    let lines = record.lines().map(|line| {
        let mut value: Value = serde_json::from_str(line).expect("JSON");
        if value["type"] == of_type {
            change(&mut value);
        }
        value.to_string() + "\n"
    });
    lines.collect()
}

/// Changed copy of the record that was measured.
fn changed(of_type: &str, change: impl Fn(&mut Value)) -> String {
    changed_in(&measured().read("a.jsonl"), of_type, change)
}

/// The records that a tuning of a minute leaves, however many rows they have: those of `record/`.
#[test]
fn the_page_of_a_quick_tuning_is_small() {
    let mut all = names(&root().join("record"));
    all.retain(|name| name.contains("tune-quick") && name.ends_with(".jsonl.gz"));
    assert!(all.len() >= 3, "{all:?}");
    for name in &all {
        let page = ok(&format!("report {} -o -", root().join("record").join(name).display()));
        assert!((100_000..2_000_000).contains(&page.len()), "{name}: {} bytes", page.len());
    }
}

#[test]
fn no_control_character_of_a_record_reaches_a_terminal() {
    let folder = Folder::new();
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J";
    let hostile = changed("row", |line| {
        if line["candidate"] != line["reference"] {
            line["candidate"] = evil.into();
        }
    });
    let hostile = changed_in(&hostile, "end", |line| line["verdicts"] = json!([evil]));
    let cpu = |line: &mut Value| line["machine"]["cpu"]["model_name"] = evil.into();
    let hostile = changed_in(&hostile, "header", cpu);
    let printed = ok(&format!("report {}", folder.write("hostile.jsonl", hostile)));
    assert!(printed.contains("owned") && printed.lines().count() > 10, "{printed}");
    let other = folder.write("other.jsonl", "{\"type\":\"\u{1b}[2J\"}\n");
    for shown in [printed, cachewise(&format!("report {other}")).with(1).err] {
        let mut control = shown.chars().filter(|c| c.is_control() && *c != '\n');
        assert_eq!(control.next(), None, "{shown:?}");
    }
}

fn compressed(path: &str) -> Vec<u8> {
    Command::new("gzip").args(["-c", path]).output().expect("gzip").stdout
}

#[test]
fn a_record_is_redrawn_plain_or_compressed() {
    let folder = Folder::new();
    let again = ok(&format!("report {} -o -", record()));
    for page in [measured().read("a.html"), again] {
        assert!(page.len() > 20_000 && !page.contains("<script"));
        has(&page, &["copy.sse2", "<svg", "The command", "whole-cost", "Every row"]);
    }
    let packed = folder.write("a.jsonl.gz", compressed(&record()));
    has(&ok(&format!("report {packed}")), &["copy, 1 KiB, L1 to L1", "copy.sse2"]);
    let several = ok(&format!("report {packed} {} -o {}", record(), folder.path("b.html")));
    assert_eq!(several, "");
    let page = folder.read("b.html");
    assert!(page.contains("id=\"r1\"") && !page.contains("different machines"), "two sections");
    let csv = ok(&format!("report {packed} --csv -"));
    assert!(csv.starts_with("experiment,operation,size"), "{csv}");
}

#[test]
fn a_folder_of_records_answers_the_documents() {
    let (folder, all) = (Folder::new(), root().join("record"));
    let rows = ok(&format!("report {} --csv - -o {}", all.display(), folder.path("a.html")));
    assert_eq!(rows, std::fs::read_to_string(root().join("docs/findings/rows.csv")).expect("rows"));
    let page = folder.read("a.html");
    assert_eq!(page.matches("<details class=\"row ").count(), rows.lines().count() - 1);
    assert!(!page.contains("<script"));
    folder.write("a.jsonl", "");
    refused(&format!("report {}", folder.path("")), 1, &["-CPU-guest", "found none"]);
}

#[test]
fn what_is_no_record_is_refused_by_name_and_line() {
    let folder = Folder::new();
    let (page, text) = (folder.path("page.html"), measured().read("a.jsonl"));
    folder.write("empty.jsonl", "");
    // Inside of a line, wherever the half of the text is.
    folder.write("cut.jsonl", text[..text.len() / 2].trim_end().trim_end_matches('}'));
    folder.write("short.jsonl", text.lines().take(2).collect::<Vec<_>>().join("\n"));
    folder.write("newer.jsonl", changed("header", |line| line["schema"] = 99.into()));
    let packed = compressed(&record());
    folder.write("cut.jsonl.gz", &packed[..packed.len() / 2]);
    for (bad, found, accepted) in [
        ("empty.jsonl", "empty", "accepted: a record"),
        ("cut.jsonl", "not a JSON object", "accepted: one JSON object per line"),
        ("short.jsonl", "truncated", "accepted: a record that closes"),
        ("newer.jsonl", "field \"schema\": 99", "accepted: 2; a newer"),
        ("cut.jsonl.gz", "not unpacked", "a whole gzip file"),
        ("absent.jsonl", "absent.jsonl", "No such file"),
    ] {
        let path = folder.path(bad);
        refused(&format!("report {path} -o {page}"), 1, &[bad, found, accepted]);
        refused(&format!("compare {} {path}", record()), 1, &[bad, found, accepted]);
        assert!(!folder.names().contains(&"page.html".to_owned()), "{bad} left a page");
    }
    for (output, told) in [
        ("/nonexistent/a.html", "/nonexistent/a.html"),
        ("/dev/full", "/dev/full"),
        (&folder.path(""), "found a directory"),
    ] {
        refused(&format!("report {} -o {output}", record()), 1, &[told]);
    }
    ends("report", 2);
    ends(&format!("report --check {}", record()), 2);
}

/// An experiment that was stopped at once leaves a whole record without rows.
#[test]
fn a_record_without_rows_is_said_to_have_none() {
    let all = measured().read("a.jsonl");
    let header = all.lines().next().expect("a header");
    let end = json!({ "type": "end", "rows": 0, "interrupted": true, "seconds": 0.1 });
    let folder = Folder::new();
    let record = folder.write("r.jsonl", format!("{header}\n{end}\n"));
    let nothing = "The record has no rows in which something was compared.";
    assert_eq!(ok(&format!("report {record}")).lines().next(), Some(nothing));
    has(&ok(&format!("report {record} -o -")), &[nothing]);
}

#[test]
fn comparing_tells_by_exit_status() {
    let folder = Folder::new();
    // Made-up rounds, so that no neighbour of this machine decides the outcome.
    let scaled = |factor: f64, rounds: i32| {
        changed("row", |line| {
            let scale = if line["candidate"] == "copy.sse2" { factor } else { 1.0 };
            let times = (0..rounds).map(|round| scale * f64::from(100 + round * 7 % 15));
            line["operation_ns"] = times.collect::<Vec<f64>>().into();
            line["reader_ns"] = json!([]);
            line["bystander_ns"] = json!([]);
        })
    };
    let launches = |many: u32, text: String| {
        text.replacen("\"settings\":{", &format!("\"settings\":{{\"launches\":{many},"), 1)
    };
    let plain = folder.write("plain.jsonl", launches(15, scaled(1.0, 15)));
    let slow = folder.write("slow.jsonl", launches(15, scaled(1.5, 15)));
    // Three launches decide nothing, nor do rounds of one.
    let few = folder.write("few.jsonl", launches(3, scaled(1.0, 3)));
    let one = folder.write("one.jsonl", scaled(1.5, 15));
    for (old, new, status, begin) in [
        (&plain, &plain, 0, "No difference shown in "),
        (&plain, &slow, 3, "Slower: "),
        (&slow, &plain, 0, "Faster: "),
        (&plain, &few, 4, "Cannot tell: "),
        (&plain, &one, 4, "Cannot tell: launches of one program differ"),
        (&record(), &record(), 4, "Cannot tell: "),
    ] {
        let told = ends(&format!("compare {old} {new}"), status);
        assert!(told.starts_with(begin), "{told}");
        assert!(status != 3 || told.contains("copy.sse2"), "{told}");
    }
    let mut unread = piped(asked(&format!("compare {plain} {slow}")));
    drop(unread.stdout.take());
    assert_eq!(unread.wait().expect("it ends").code(), Some(3), "| head hides what was found");

    ok(&format!(
        "compare {plain} {plain} --margin 3% --csv {} --markdown {} --json {} --html {} --all",
        folder.path("c.csv"),
        folder.path("c.md"),
        folder.path("c.json"),
        folder.path("c.html")
    ));
    has(&folder.read("c.html"), &["<table"]);
    let csv = folder.read("c.csv");
    assert!(csv.lines().count() >= 10 && csv.contains("no difference shown"), "{csv}");
    has(&folder.read("c.md"), &["| verdict |"]);
    let json: Value = serde_json::from_str(&folder.read("c.json")).expect("JSON");
    assert_eq!(keys(&json), documented("docs/guide/old-and-new.md", "| `outcome`"));
    assert_eq!((&json["outcome"], &json["margin"]), (&json!("no-difference"), &json!(0.03)));
    refused(&format!("compare {plain} {plain} --csv /nonexistent/a"), 1, &["/nonexistent/a"]);
}

#[test]
fn machines_are_not_mixed_unawares() {
    let folder = Folder::new();
    let cpu = |line: &mut Value| line["machine"]["cpu"]["model_name"] = "Some Other CPU".into();
    let other = folder.write("other.jsonl", changed("header", cpu));
    let comparing = format!("compare {} {other}", record());
    refused(&comparing, 1, &["different machines", "Some Other CPU", "--across-machines"]);
    has(&ends(&format!("{comparing} --across-machines"), 4), &["the runs differ in CPU"]);
    let drawn = cachewise(&format!("report {} {other} -o -", record())).with(0);
    assert!(drawn.err.starts_with("warning: other.jsonl comes from another machine"), "{drawn:?}");
    has(&drawn.out, &["different machines: other.jsonl differs from a.jsonl in CPU: "]);

    let unrelated = changed("row", |line| line["experiment"] = "another".into());
    let unrelated = folder.write("unrelated.jsonl", unrelated);
    let comparing = format!("compare {} {unrelated}", record());
    refused(&comparing, 1, &["no row in common", "accepted"]);
}

/// Output of a command on a terminal of so many columns, as util-linux's `script` makes one.
fn on_terminal(columns: u16, locale: &str, arguments: &str) -> String {
    let this = env!("CARGO_BIN_EXE_cachewise");
    let command = format!("stty cols {columns} rows 24; {this} {arguments}");
    let mut script = Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
    script.env("LC_ALL", locale).env("HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/home"));
    said(&mut script).out.replace('\r', "")
}

#[test]
fn terminals_of_all_widths_have_whole_words() {
    let record = record();
    let commands = [
        "list".to_owned(),
        "list kernels --op zero".to_owned(),
        "list experiments".to_owned(),
        "explain --op copy --size 64K".to_owned(),
        format!("report {record}"),
        format!("compare {record} {record} --all"),
    ];
    for arguments in commands {
        let words = |text: &str| -> BTreeSet<String> {
            text.split_whitespace().map(str::to_owned).collect()
        };
        let whole = words(&on_terminal(1000, "C.UTF-8", &arguments));
        for columns in [60, 80, 140] {
            let text = on_terminal(columns, "C", &arguments);
            assert!(text.is_ascii(), "{arguments}: {text}");
            let long = text.lines().find(|line| {
                // A command is never broken.
                let is_command = line.trim().starts_with('`') && line.trim().ends_with('`');
                line.chars().count() > usize::from(columns)
                    && line.trim().contains(' ')
                    && !is_command
            });
            assert_eq!(long, None, "{arguments}, {columns}");
            assert_eq!(words(&text), whole, "{arguments}, {columns}: {text}");
        }
    }
    let summary = on_terminal(80, "C", "list");
    assert!(summary.lines().count() <= 24, "a screen: {summary}");
}

#[test]
fn shells_know_every_verb() {
    let completions = ["bash", "zsh", "fish"].map(|shell| ok(&format!("completions {shell}")));
    for verb in ["tune", "doctor", "list", "run", "explain", "export", "report", "compare"] {
        completions.iter().for_each(|text| has(text, &[verb]));
    }
    for hidden in ["launch-record", "helper"] {
        assert!(completions.iter().all(|text| !text.contains(hidden)), "{hidden}");
    }
    // Bash takes its completions, and completes a flag and a value.
    for (words, at, word, before, completed) in [
        ("compare --marg", 2, "--marg", "compare", "--margin"),
        ("explain --op mo", 3, "mo", "--op", "move"),
        ("run --residency DR", 3, "DR", "--residency", "DRAM"),
        ("explain --reuse ne", 3, "ne", "--reuse", "never"),
    ] {
        let script = format!(
            "source <({} completions bash); COMP_WORDS=(cachewise {words}); COMP_CWORD={at}; \
             _cachewise cachewise {word} {before}; echo \"${{COMPREPLY[@]}}\"",
            env!("CARGO_BIN_EXE_cachewise")
        );
        let told = said(Command::new("bash").args(["-c", &script]));
        assert_eq!(told.out.trim(), completed, "{told:?}");
    }
}

/// The profiles of `record/` are evidence only with the records that they were made from.
#[test]
fn every_kept_profile_has_its_record() {
    let folder = root().join("record");
    let names =
        std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("a file").path());
    let profiles: Vec<_> =
        names.filter(|path| path.extension().is_some_and(|end| end == "profile")).collect();
    assert!(profiles.len() >= 5, "{profiles:?}");
    for profile in profiles {
        let profile = profile.display();
        let found = ok(&format!("explain --op copy --size 4K --profile {profile}"));
        assert!(!found.contains("no figures"), "{profile}: {found}");
    }
}
