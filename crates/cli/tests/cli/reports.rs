//! `report`, `compare`, `completions` and `man` as a user would type them: once for real, and every
//! bad input once.

use crate::support::{cachewise, ends, has, ok, piped, program, refused_with, stderr, stdout};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A record that this machine measured, and the page that came with it.
fn measured() -> &'static (PathBuf, PathBuf) {
    static MEASURED: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    MEASURED.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory").keep();
        let (record, page) = (directory.join("a.jsonl"), directory.join("a.html"));
        let (json, html) = (name(&record), name(&page));
        let printed = ok(&format!(
            "run whole-cost --kernels copy\\.(sse2|avx)(\\.nt)?|copy\\.rep\\.movsb \
             --size 1K,2K,4K --residency L1 --plot --json {json} --html {html}"
        ));
        has(&printed, &["█ operation ▒ reader ░ bystander"]);
        (record, page)
    })
}

fn name(path: &Path) -> &str {
    path.to_str().expect("a path that is text")
}

/// The record with every line changed.
fn changed(to: &Path, change: impl Fn(&mut Value)) {
    let text = std::fs::read_to_string(&measured().0).expect("the record");
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let mut value: Value = serde_json::from_str(line).expect("JSON");
            change(&mut value);
            value.to_string() + "\n"
        })
        .collect();
    std::fs::write(to, lines.concat()).expect("a record");
}

/// The records that a tuning of a minute leaves, however many rows they have: those of `record/`.
#[test]
fn the_page_of_a_quick_tuning_is_small() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record");
    let directory = tempfile::tempdir().expect("a directory");
    let mut seen = 0;
    for entry in std::fs::read_dir(records).expect("record/") {
        let path = entry.expect("an entry").path();
        if !name(&path).contains("tune-quick") || !name(&path).ends_with(".jsonl.gz") {
            continue;
        }
        let page = directory.path().join("page.html");
        ok(&format!("report {} -o {}", name(&path), name(&page)));
        let bytes = page.metadata().expect("a page").len();
        assert!((100_000..2_000_000).contains(&bytes), "{}: {bytes} bytes", path.display());
        seen += 1;
    }
    assert!(seen >= 3, "{seen} records");
}

#[test]
fn no_control_character_of_a_record_reaches_a_terminal() {
    let directory = tempfile::tempdir().expect("a directory");
    let hostile = directory.path().join("hostile.jsonl");
    changed(&hostile, |line| {
        let evil = "\u{1b}]0;owned\u{7}\u{9b}2J";
        if line["type"] == "row" && line["candidate"] != line["reference"] {
            line["candidate"] = evil.into();
        }
        if line["type"] == "end" {
            line["verdicts"] = serde_json::json!([evil]);
        }
        if line["type"] == "header" {
            line["machine"]["cpu"]["model_name"] = evil.into();
        }
    });
    let printed = ok(&format!("report {} --plot", name(&hostile)));
    assert!(printed.contains("owned") && printed.lines().count() > 10, "{printed}");
    let control = |c: char| c.is_control() && c != '\n';
    assert_eq!(printed.chars().find(|c| control(*c)), None, "{printed:?}");
    let other = directory.path().join("other.jsonl");
    std::fs::write(&other, "{\"type\":\"\u{1b}[2J\"}\n").expect("written");
    let refused = cachewise(&format!("report {}", name(&other)));
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(stderr(&refused).chars().find(|c| control(*c)), None, "{:?}", stderr(&refused));
}

fn compressed(from: &Path, to: &Path) {
    let gzip = Command::new("gzip").arg("-c").arg(from).output().expect("gzip");
    std::fs::write(to, gzip.stdout).expect("a file");
}

#[test]
fn a_record_is_redrawn_plain_or_compressed() {
    let (record, page) = measured();
    let directory = tempfile::tempdir().expect("a directory");
    let (again, packed) = (directory.path().join("b.html"), directory.path().join("a.jsonl.gz"));
    ok(&format!("report {} -o {}", name(record), name(&again)));
    for page in [page, &again] {
        let page = std::fs::read_to_string(page).expect("a page");
        assert!(page.len() > 20_000);
        has(&page, &["copy.sse2", "<svg", "The command", "whole-cost", "Every row"]);
        assert!(!page.contains("<script"));
    }
    compressed(record, &packed);
    let printed = ok(&format!("report {}", name(&packed)));
    has(&printed, &["copy, 1 KiB, L1 to L1", "copy.sse2"]);
    let several = ok(&format!("report {} {} -o -", name(&packed), name(record)));
    assert!(several.contains("id=\"r1\""), "two sections");
    let csv = ok(&format!("report {} --csv -", name(&packed)));
    assert!(csv.starts_with("experiment,operation,bytes"), "{csv}");
}

#[test]
fn what_is_no_record_is_refused_by_name_and_line() {
    let (record, _) = measured();
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    let page = file("page.html");
    let text = std::fs::read_to_string(record).expect("the record");
    std::fs::write(file("empty.jsonl"), "").expect("a file");
    std::fs::write(file("cut.jsonl"), &text[..text.len() / 2]).expect("a file");
    let whole_lines: Vec<&str> = text.lines().collect();
    std::fs::write(file("short.jsonl"), whole_lines[..2].join("\n")).expect("a file");
    changed(&file("newer.jsonl"), |line| {
        if line["type"] == "header" {
            line["schema"] = 99.into();
        }
    });
    compressed(record, &file("cut.jsonl.gz"));
    let packed = std::fs::read(file("cut.jsonl.gz")).expect("a file");
    std::fs::write(file("cut.jsonl.gz"), &packed[..packed.len() / 2]).expect("a file");
    for (bad, said) in [
        ("empty.jsonl", ["empty", "accepted: a record"]),
        ("cut.jsonl", ["not a JSON object", "accepted: one JSON object per line"]),
        ("short.jsonl", ["truncated", "accepted: a record that closes"]),
        ("newer.jsonl", ["field \"schema\": 99", "accepted: up to"]),
        ("cut.jsonl.gz", ["not unpacked", "a whole gzip file"]),
        ("absent.jsonl", ["absent.jsonl", "No such file"]),
    ] {
        let path = file(bad);
        let said = [bad, said[0], said[1]];
        refused_with(&format!("report {} -o {}", name(&path), name(&page)), 1, &said);
        refused_with(&format!("compare {} {}", name(record), name(&path)), 1, &said);
        assert!(!page.exists(), "{bad} left a page");
    }
    for (output, told) in [
        ("/nonexistent/a.html", "/nonexistent/a.html"),
        ("/dev/full", "/dev/full"),
        (name(directory.path()), "found a directory"),
    ] {
        refused_with(&format!("report {} -o {output}", name(record)), 1, &[told]);
    }
    assert_eq!(cachewise("report").status.code(), Some(2));
    assert_eq!(cachewise(&format!("report --check {}", name(record))).status.code(), Some(2));
}

#[test]
fn comparing_tells_by_exit_status() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |name: &str| directory.path().join(name);
    // Made-up rounds, so that no neighbour of this machine decides the outcome.
    let scaled = |to: &Path, factor: f64| {
        changed(to, |line| {
            if line["type"] != "row" {
                return;
            }
            let scale = if line["candidate"] == "copy.sse2" { factor } else { 1.0 };
            let rounds = (0..15).map(|round| scale * f64::from(100 + round * 7 % 15));
            line["operation_ns"] = rounds.collect::<Vec<f64>>().into();
            for part in ["reader_ns", "bystander_ns"] {
                line[part] = Value::Array(Vec::new());
            }
        });
    };
    let record = &file("plain.jsonl");
    scaled(record, 1.0);
    let plain = name(record);
    let same = ok(&format!("compare {plain} {plain}"));
    assert!(same.starts_with("No change beyond 5 %"), "{same}");
    let measured = name(&measured().0);
    assert!(ok(&format!("compare {measured} {measured}")).starts_with("No change"));

    scaled(&file("slow.jsonl"), 1.5);
    let slower = ends(&format!("compare {} {}", name(record), name(&file("slow.jsonl"))), 3);
    assert!(slower.starts_with("Slower: ") && slower.contains("copy.sse2"), "{slower}");
    let mut unread = program();
    unread.args(["compare", name(record), name(&file("slow.jsonl"))]);
    let mut unread = piped(unread);
    drop(unread.stdout.take());
    assert_eq!(unread.wait().expect("it ends").code(), Some(3), "| head hides what was found");
    let faster = ok(&format!("compare {} {}", name(&file("slow.jsonl")), name(record)));
    assert!(faster.starts_with("Faster: "), "{faster}");

    // Three rounds decide nothing.
    changed(&file("few.jsonl"), |line| {
        for part in ["operation_ns", "reader_ns", "bystander_ns"] {
            if let Some(times) = line[part].as_array_mut() {
                times.truncate(3);
            }
        }
    });
    let unknown = ends(&format!("compare {} {}", name(record), name(&file("few.jsonl"))), 4);
    assert!(unknown.starts_with("Cannot tell"), "{unknown}");

    let (csv, markdown, json) = (file("c.csv"), file("c.md"), file("c.json"));
    ok(&format!(
        "compare {plain} {plain} --margin 2% --csv {} --markdown {} --json {} --all",
        name(&csv),
        name(&markdown),
        name(&json)
    ));
    let csv = std::fs::read_to_string(csv).expect("CSV");
    assert!(csv.lines().count() >= 10 && csv.contains("unchanged"), "{csv}");
    assert!(std::fs::read_to_string(markdown).expect("Markdown").contains("| verdict |"));
    let json: Value = serde_json::from_slice(&std::fs::read(json).expect("JSON")).expect("JSON");
    assert_eq!(json["outcome"], "unchanged");
    assert_eq!(json["margin"], 0.02);
    assert_eq!(cachewise("compare a b --margin -3").status.code(), Some(2));
    refused_with(&format!("compare {plain} {plain} --csv /nonexistent/a"), 1, &["/nonexistent/a"]);
}

#[test]
fn machines_are_not_mixed_unawares() {
    let (record, _) = measured();
    let directory = tempfile::tempdir().expect("a directory");
    let other = directory.path().join("other.jsonl");
    changed(&other, |line| {
        if line["type"] == "header" {
            line["machine"]["cpu"]["model_name"] = "Some Other CPU".into();
        }
    });
    let comparing = format!("compare {} {}", name(record), name(&other));
    let said = ["different machines", "Some Other CPU", "--across-machines"];
    refused_with(&comparing, 1, &said);
    has(&ok(&format!("{comparing} --across-machines")), &["the runs differ in CPU"]);
    let page = directory.path().join("both.html");
    let drawn = cachewise(&format!("report {} {} -o {}", name(record), name(&other), name(&page)));
    assert!(drawn.status.success());
    assert!(stderr(&drawn).starts_with("warning: other.jsonl comes from another machine"));
    assert!(std::fs::read_to_string(page).expect("a page").contains("different machines"));

    let unrelated = directory.path().join("unrelated.jsonl");
    changed(&unrelated, |line| {
        if line["type"] == "row" {
            line["experiment"] = "another".into();
        }
    });
    let comparing = format!("compare {} {}", name(record), name(&unrelated));
    refused_with(&comparing, 1, &["no row in common", "accepted"]);
}

#[test]
fn plots_fit_forty_columns_and_need_no_colour() {
    let (record, _) = measured();
    let piped = ok(&format!("report {} --plot", name(record)));
    assert!(!piped.contains('\u{1b}'), "colour into a pipe");
    assert!(piped.contains('█'));
    // A terminal of forty columns, as util-linux's `script` makes one.
    let on_terminal = |environment: &str| -> String {
        let command = format!(
            "stty cols 40 rows 24; {environment} {} report {} --plot",
            env!("CARGO_BIN_EXE_cachewise"),
            name(record)
        );
        let mut script = Command::new("script");
        script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
        let output = script.stdin(Stdio::null()).output().expect("util-linux's script");
        assert!(output.status.success());
        stdout(&output)
    };
    let plain = on_terminal("NO_COLOR=1");
    let start = plain.find("Whole cost").expect("a plot");
    assert!(!plain.contains('\u{1b}'), "colour under NO_COLOR");
    for line in plain[start..].lines() {
        assert!(line.trim_end().chars().count() <= 40, "{line:?}");
    }
    assert!(plain[start..].contains('█'));
}

#[test]
fn documents_are_spliced_and_checked() {
    let (record, _) = measured();
    let directory = tempfile::tempdir().expect("a directory");
    let document = directory.path().join("page.md");
    std::fs::copy(record, directory.path().join("a.jsonl")).expect("a copy");
    let marked = |what: &str| format!("<!-- cachewise a.jsonl {what} -->\n<!-- /cachewise -->\n");
    let source = format!(
        "# Title\n\n{}\ntext\n\n{}\n{}\n{}",
        marked("machine"),
        marked("table copy, 1 KiB"),
        marked("plot 1 copy, L1 to L1, 2 KiB"),
        marked("figure 1 cost.svg copy, L1 to L1, 4 KiB"),
    );
    std::fs::write(&document, &source).expect("a document");
    let stale = cachewise(&format!("report --check --splice {}", name(&document)));
    assert_eq!(stale.status.code(), Some(1));
    assert!(stderr(&stale).contains("out of date"));
    let unchanged = std::fs::read_to_string(&document).expect("text");
    assert_eq!(unchanged, source, "a check changes nothing");
    let written = ok(&format!("report --splice {}", name(&document)));
    assert!(written.contains("page.md") && written.contains("cost.svg"), "{written}");
    let spliced = std::fs::read_to_string(&document).expect("text");
    has(&spliced, &["| copy.sse2 |", "```text", "![Whole cost", "](cost.svg)", "\ntext\n"]);
    let svg = std::fs::read_to_string(directory.path().join("cost.svg")).expect("a picture");
    assert!(svg.starts_with("<svg xmlns=") && !svg.contains("NaN"));
    let again = ok(&format!("report --splice {}", name(&document)));
    assert_eq!(again, "", "nothing is left to do");
    ok(&format!("report --check --splice {}", name(&document)));

    // Every refusal names the document's line, and leaves the document alone.
    for (bad, said) in [
        (marked("picture"), "page.md:1: found \"picture\""),
        (marked("table nothing"), "page.md:1: found table \"nothing\""),
        ("\n<!-- cachewise b.jsonl verdict -->\n<!-- /cachewise -->".into(), "page.md:2: "),
        ("<!-- cachewise a.jsonl verdict -->\n".into(), "page.md:1: found no end"),
    ] {
        std::fs::write(&document, &bad).expect("a document");
        refused_with(&format!("report --splice {}", name(&document)), 1, &[said]);
        assert_eq!(std::fs::read_to_string(&document).expect("text"), bad);
    }
}

#[test]
fn shells_and_man_know_every_verb() {
    let directory = tempfile::tempdir().expect("a directory");
    let manual = ends("man", 0);
    assert!(manual.contains(".TH cachewise 1"), "{manual}");
    ok(&format!("man --to {}", name(directory.path())));
    for verb in ["tune", "doctor", "list", "run", "explain", "export", "report", "compare"] {
        let page = directory.path().join(format!("cachewise-{verb}.1"));
        assert!(std::fs::read_to_string(&page).expect(verb).contains(".SH OPTIONS"), "{verb}");
        for shell in ["bash", "zsh", "fish"] {
            assert!(ok(&format!("completions {shell}")).contains(verb), "{shell} {verb}");
        }
    }
    assert!(!directory.path().join("cachewise-helper.1").exists(), "hidden verbs have no page");
    // Bash takes its completions, and completes a flag.
    let script = format!(
        "source <({} completions bash); COMP_WORDS=(cachewise compare --marg); COMP_CWORD=2; \
         _cachewise cachewise --marg compare; echo \"${{COMPREPLY[@]}}\"",
        env!("CARGO_BIN_EXE_cachewise")
    );
    let completed = Command::new("bash").args(["-c", &script]).output().expect("bash");
    assert_eq!(stdout(&completed).trim(), "--margin", "{}", stderr(&completed));
    assert_eq!(cachewise("completions tcsh").status.code(), Some(2));
}
