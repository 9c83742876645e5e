//! Starting other programs: cargo and compilers, whose failure is the chore's.

use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The workspace's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or_else(|| Path::new("."))
}

/// Cargo's target directory.
pub fn target() -> PathBuf {
    root().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The number before a word, as in `21 passed`; none where there is no such word.
pub fn number_before(text: &str, word: &str) -> Option<u64> {
    text.split_once(word)?.0.rsplit(' ').next()?.parse().ok()
}

/// The cargo that runs this.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// The compiler.
pub fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Runs it to its end, with all that it prints shown.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

/// Runs it to its end and returns what it printed, which is told where it failed.
pub fn output(command: &mut Command) -> Result<Output> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    ensure!(output.status.success(), "{command:?} ended with {}\n{out}{err}", output.status);
    Ok(output)
}

/// What a program printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The files of a folder whose names begin and end so, in order.
pub fn files_in(folder: &Path, beginning: &str, end: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(beginning) && name.ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The programs that cargo says it made (`--message-format json`), by target.
pub fn programs(told: &[u8]) -> BTreeMap<String, PathBuf> {
    made(told, |message| message["executable"].as_str().map(PathBuf::from))
}

/// The files with that ending that it says it made.
pub fn files(told: &[u8], ending: &str) -> BTreeMap<String, PathBuf> {
    made(told, |message| {
        let mut files = message["filenames"].as_array()?.iter().filter_map(|file| file.as_str());
        files.find(|file| file.ends_with(ending)).map(PathBuf::from)
    })
}

fn made(
    told: &[u8],
    file: impl Fn(&serde_json::Value) -> Option<PathBuf>,
) -> BTreeMap<String, PathBuf> {
    let of_line = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some((message["target"]["name"].as_str()?.to_owned(), file(&message)?))
    };
    text(told).lines().filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_and_a_library_of_one_name_are_told_apart() {
        let told = br#"{"target":{"name":"a"},"filenames":["/t/liba.rlib"],"executable":null}
{"target":{"name":"a"},"filenames":["/t/a"],"executable":"/t/a"}
{"target":{"name":"b"},"filenames":["/t/libb.rlib","/t/libb.rmeta"],"executable":null}
{"reason":"build-finished"}"#;
        let names = |found: BTreeMap<String, PathBuf>| found.into_iter().collect::<Vec<_>>();
        assert_eq!(names(programs(told)), [("a".to_owned(), "/t/a".into())]);
        let [a, b] = ["a", "b"].map(|name| (name.to_owned(), format!("/t/lib{name}.rlib").into()));
        assert_eq!(names(files(told, ".rlib")), [a, b]);
    }
}
