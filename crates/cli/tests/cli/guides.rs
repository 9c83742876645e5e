//! The guides of `docs/guide`: what they name in double quotes is printed somewhere, their commands are
//! understood, and the files that they name are there.

use crate::support::{self, stderr, stdout};
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

fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            text.push_str(&fs::read_to_string(&path).expect("text"));
        }
    }
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

#[test]
fn what_a_guide_quotes_is_printed_by_the_command() {
    let mut printed = String::new();
    for folder in ["measure", "report", "lab", "cli"] {
        sources(&root().join("crates").join(folder).join("src"), &mut printed);
    }
    let mut seen = 0;
    for (name, text) in guides() {
        let prose = parts(&text).0.replace('\n', " ");
        for quoted in prose.split('"').skip(1).step_by(2) {
            assert!(printed.contains(quoted), "{name}: \"{quoted}\" is printed nowhere");
            seen += 1;
        }
    }
    assert!(seen > 25, "{seen}");
}

#[test]
fn the_commands_of_a_guide_are_understood() {
    let experiments = cachewise(&["list", "experiments"]).1;
    let mut seen = 0;
    for (name, text) in guides() {
        for line in parts(&text).1 {
            let line = line.trim_start_matches("sudo ").trim_start_matches("CACHEWISE_STATS=1 ");
            let Some(rest) = line.strip_prefix("cachewise ") else { continue };
            // What follows is the program's.
            let own = rest.split(" -- ").next().unwrap_or(rest);
            let words: Vec<&str> = own.split_whitespace().map(|w| w.trim_matches('\'')).collect();
            let mut asked = words.clone();
            asked.push("--help");
            let (status, told) = cachewise(&asked);
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

fn cachewise(arguments: &[&str]) -> (Option<i32>, String) {
    let output = support::cachewise(arguments);
    (output.status.code(), stdout(&output) + &stderr(&output))
}

#[test]
fn the_files_that_a_guide_links_are_there() {
    for (name, text) in guides() {
        for link in text.split("](").skip(1) {
            let target =
                link.split(')').next().unwrap_or_default().split('#').next().unwrap_or_default();
            let place = root().join("docs/guide").join(target);
            assert!(target.starts_with("http") || place.exists(), "{name}: {target} is not there");
        }
    }
}

/// The recipes name programs, packages and flags that there are.
#[test]
fn the_recipes_use_flags_that_the_command_has() {
    let unit = fs::read_to_string(root().join("packaging/cachewise-tune.service")).expect("a unit");
    let start =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/cachewise "));
    let mut words: Vec<&str> = start.expect("what it starts").split_whitespace().collect();
    words.push("--help");
    assert_eq!(cachewise(&words).0, Some(0), "{words:?}");
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
