//! Documents against the command: their command lines parse, the short ones run, their kernels exist, and the units of
//! `packaging` are units.

use crate::support::{Folder, Said, names, ok, root, said};
use std::fs;
use std::process::Command;

/// Markdown that a user reads, as paths from the root on.
fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned(), "METHODOLOGY.md".to_owned()];
    for folder in ["docs", "docs/guide", "docs/decisions"] {
        let inside = names(&root().join(folder)).into_iter().filter(|name| name.ends_with(".md"));
        pages.extend(inside.map(|name| format!("{folder}/{name}")));
    }
    pages
}

fn read(file: &str) -> String {
    fs::read_to_string(root().join(file)).expect(file)
}

/// Command lines in a page's code blocks, for a shell, without the command's name and without the program that it starts.
fn commands(text: &str) -> Vec<String> {
    let text = text.replace(" \\\n", " ");
    let blocks = text.split("\n```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter_map(|line| {
        let line = line.split(" #").next().unwrap_or(line).trim_start_matches("$ ");
        let (before, own) = line.split_once("cachewise ")?;
        let is_set = |word: &str| word == "sudo" || word.contains('=');
        let is_verb = own.starts_with(|c: char| c.is_ascii_lowercase());
        (is_verb && before.split_whitespace().all(is_set)).then(|| {
            let ends = [" -- ", " | ", " || ", " > ", " && "];
            let end = ends.iter().filter_map(|end| own.find(end)).min();
            own[..end.unwrap_or(own.len())].trim().to_owned()
        })
    });
    lines.collect()
}

/// Runs a command line of a page by a shell.
fn typed(line: &str) -> Said {
    let mut shell = Command::new("sh");
    said(shell.args(["-c", &format!("\"$0\" {line}"), env!("CARGO_BIN_EXE_cachewise")]))
}

#[test]
fn command_lines_of_documents_parse_and_those_of_moments_run() {
    // Verbs that only read.
    const SHORT: [&str; 3] = ["explain", "list", "completions"];
    let (mut parsed, mut run) = (0, 0);
    for page in pages() {
        for line in commands(&read(&page)) {
            let told = typed(&format!("{line} --help"));
            assert_eq!(told.status, Some(0), "{page}: {line}: {}", told.err);
            parsed += 1;
            if SHORT.iter().any(|verb| line.starts_with(verb)) && !line.contains(".profile") {
                assert!(!typed(&line).with(0).out.is_empty(), "{page}: {line}");
                run += 1;
            }
        }
    }
    assert!(parsed > 25 && run > 3, "{parsed} parsed, {run} run");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn kernels_that_documents_name_exist() {
    let mut seen = 0;
    for page in pages() {
        let part = |c: char| c.is_ascii_alphanumeric() || "._-*/".contains(c);
        for word in read(&page).split(|c| !part(c)).map(|word| word.trim_matches(['.', '-'])) {
            let operation = word.split_once('.').map_or("", |(operation, _)| operation);
            let operations = ["copy", "move", "zero", "fill", "compare", "equal"];
            let other =
                word.contains(['*', '/', '_']) || word.ends_with(".s") || word.ends_with(".md");
            if operations.contains(&operation) && !other {
                assert!(cachewise_kernels::find(word).is_some(), "{page}: no kernel is {word}");
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "{seen} names");
}

#[test]
fn units_are_accepted_by_systemd_and_start_what_exists() {
    let units = ["cachewise-tune.service", "cachewise-scrubd.service", "cachewise-scrubd.socket"];
    let folder = Folder::new();
    let socket = read("packaging/cachewise-scrubd.socket");
    let listens = socket.lines().find_map(|line| line.strip_prefix("ListenSequentialPacket="));
    let own = format!("--socket {}\n", listens.expect("a socket"));
    assert!(read("packaging/cachewise-scrubd.service").contains(&own), "{own}");
    let mut files = Vec::new();
    for name in units {
        let unit = read(&format!("packaging/{name}"));
        let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/local/bin/"));
        if let Some(start) = start {
            let words = start.replace("${CACHEWISE_SCRUBD_SIZE}", "4G");
            ok(&format!("{} --help", words.trim_start_matches("cachewise ")));
        }
        files.push(folder.write(name, unit.replace("/usr/local/bin/cachewise", "/bin/true")));
    }
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("systemd-analyze: SKIPPED, not installed");
        return;
    }
    said(Command::new("systemd-analyze").arg("verify").args(files)).with(0);
}

/// The wings: programs link `lib`, `memory` stands on it, the laboratory on both.
#[test]
fn libraries_depend_on_nothing_of_the_laboratory() {
    let laboratory: Vec<String> =
        names(&root().join("lab")).iter().map(|name| format!("cachewise-{name}")).collect();
    for name in names(&root().join("lib")) {
        let manifest = read(&format!("lib/{name}/Cargo.toml"));
        let uses = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let uses = uses.split("\n[").next().unwrap_or_default();
        let uses =
            |krate: &&String| uses.lines().any(|line| line.split(['.', ' ']).next() == Some(krate));
        assert_eq!(laboratory.iter().find(uses), None, "lib/{name}");
    }
}
