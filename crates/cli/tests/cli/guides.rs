//! The guides of `docs/guide`: what they name in double quotes is printed by an experiment that
//! they name, and their commands are understood.

use crate::support::{self, stderr, stdout};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn guides() -> Vec<(String, String)> {
    let entries = fs::read_dir(root().join("docs/guide")).expect("docs/guide");
    let mut all: Vec<_> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            (path.display().to_string(), fs::read_to_string(&path).expect("text"))
        })
        .collect();
    all.sort();
    assert!(all.len() >= 6, "{}", all.len());
    all
}

/// The text outside of code blocks and inline code, and the code blocks' lines.
fn parts(text: &str) -> (String, Vec<String>) {
    let (mut prose, mut code, mut inside) = (String::new(), Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            inside = !inside;
        } else if inside {
            code.push(line.split("  #").next().unwrap_or(line).trim().to_owned());
        } else {
            let outside: Vec<&str> = line.split('`').step_by(2).collect();
            prose.push_str(&outside.join(" "));
            prose.push('\n');
        }
    }
    (prose, code)
}

/// What the command prints of the newest record of an experiment, white space folded.
fn printed(experiment: &str, records: &[String]) -> String {
    let ours = |name: &&String| {
        // The year, the month and the day; the experiment; the machine.
        let name = name.splitn(4, '-').nth(3).unwrap_or_default();
        name.strip_prefix(experiment).is_some_and(|rest| rest == "-zen5-guest.jsonl.gz")
    };
    let newest = records.iter().filter(ours).max();
    let newest = newest.unwrap_or_else(|| panic!("no record of {experiment}"));
    let record = root().join("record").join(newest).display().to_string();
    let (status, told) = cachewise(&format!("report {record} --plot"));
    assert_eq!(status, Some(0), "{told}");
    told.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_a_guide_quotes_is_printed_by_an_experiment_that_it_names() {
    let experiments = cachewise("list experiments").1;
    let known: Vec<&str> =
        experiments.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let records: Vec<String> = fs::read_dir(root().join("record"))
        .expect("record")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    // The closing lines of every measurement are in no record.
    let closing = fs::read_to_string(root().join("crates/report/src/closing.rs")).expect("text");
    let mut outputs: BTreeMap<&str, String> = BTreeMap::new();
    let mut seen = 0;
    for (name, text) in guides() {
        let named: Vec<&str> = known
            .iter()
            .copied()
            .filter(|known| {
                let asked = format!("cachewise run {known}");
                text.contains(&format!("`{known}`"))
                    || parts(&text).1.iter().any(|line| {
                        line.strip_prefix(&asked).is_some_and(|rest| !rest.starts_with('-'))
                    })
            })
            .collect();
        for known in &named {
            outputs.entry(known).or_insert_with(|| printed(known, &records));
        }
        let prose = parts(&text).0.replace('\n', " ");
        for quoted in prose.split('"').skip(1).step_by(2) {
            let is_there = named.iter().any(|known| outputs[known].contains(quoted));
            assert!(
                is_there || closing.contains(quoted),
                "{name}: \"{quoted}\" is printed by none of {named:?}"
            );
            seen += 1;
        }
    }
    assert!(seen > 25, "{seen}");
}

#[test]
fn the_commands_of_a_guide_are_understood() {
    let experiments = cachewise("list experiments").1;
    let mut seen = 0;
    for (name, text) in guides() {
        for line in parts(&text).1 {
            let line = line.trim_start_matches("sudo ").trim_start_matches("CACHEWISE_STATS=1 ");
            let Some(rest) = line.strip_prefix("cachewise ") else { continue };
            // What follows is the program's.
            let own = rest.split(" -- ").next().unwrap_or(rest);
            let words: Vec<&str> = own.split_whitespace().map(|w| w.trim_matches('\'')).collect();
            let (status, told) = cachewise(&format!("{} --help", words.join(" ")));
            assert_eq!(status, Some(0), "{name}: {line}: {told}");
            if words[0] == "run" {
                let known =
                    experiments.lines().any(|known| known.starts_with(&format!("{} ", words[1])));
                assert!(known, "{name}: no experiment {}", words[1]);
            }
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
}

fn cachewise(arguments: &str) -> (Option<i32>, String) {
    let output = support::cachewise(arguments);
    (output.status.code(), stdout(&output) + &stderr(&output))
}

/// The recipes name programs, packages and flags that there are.
#[test]
fn the_recipes_use_flags_that_the_command_has() {
    let unit = fs::read_to_string(root().join("packaging/cachewise-tune.service")).expect("a unit");
    let start =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/cachewise "));
    let asked = format!("{} --help", start.expect("what it starts"));
    assert_eq!(cachewise(&asked).0, Some(0), "{asked}");
    let recipe = fs::read_to_string(root().join("packaging/Containerfile")).expect("a recipe");
    for package in recipe.split("-p ").skip(1).filter_map(|rest| rest.split_whitespace().next()) {
        let manifests = ["crates/cli/Cargo.toml", "xtask/Cargo.toml"];
        let named = |file: &&str| {
            let text = fs::read_to_string(root().join(file)).expect("a manifest");
            text.contains(&format!("name = \"{package}\""))
        };
        assert!(manifests.iter().any(named), "{package} is no package");
    }
    let verify = Command::new("systemd-analyze").arg("--version").output();
    if !verify.is_ok_and(|output| output.status.success()) {
        eprintln!("no systemd-analyze here: the unit's syntax is not tested");
        return;
    }
    // The same unit with a program that is there.
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("cachewise-tune.service");
    fs::write(&copy, unit.replace("/usr/local/bin/cachewise", "/bin/true")).expect("written");
    let output =
        Command::new("systemd-analyze").arg("verify").arg(&copy).output().expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
}

/// A name that no kernel answers to sends a reader looking for it.
#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_that_documents_name_exist() {
    let others = ["README.md", "METHODOLOGY.md", "crates/capi/include/cachewise.h"];
    let mut files = others.map(str::to_owned).to_vec();
    for folder in ["docs", "docs/guide", "docs/decisions"] {
        let entries = fs::read_dir(root().join(folder)).expect(folder).flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let pages = names.filter(|name| name.ends_with(".md"));
        files.extend(pages.map(|name| format!("{folder}/{name}")));
    }
    let mut seen = 0;
    for file in files {
        let text = fs::read_to_string(root().join(&file)).expect("text");
        let part = |c: char| c.is_ascii_alphanumeric() || "._-*/".contains(c);
        for word in text.split(|c| !part(c)).map(|word| word.trim_matches(['.', '-'])) {
            let operation = word.split_once('.').map_or("", |(operation, _)| operation);
            let operations = ["copy", "move", "zero", "fill", "compare", "equal"];
            let other = word.contains(['*', '/', '_']) || word.ends_with(".s");
            if operations.contains(&operation) && !other {
                assert!(cachewise_kernels::find(word).is_some(), "{file}: no kernel is {word}");
                seen += 1;
            }
        }
    }
    assert!(seen > 5, "{seen} names");
}
