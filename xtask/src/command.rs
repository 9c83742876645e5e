//! Starting other programs, cargo and compilers, whose failure is the chore's; and what a chore lacks.

use anyhow::{Context as _, Result, bail, ensure};
use fs_err as fs;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// The program that the first of these words names, with the others as arguments.
pub fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// The cargo that runs this, with these words as arguments.
pub fn cargo(words: &str) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words.split_whitespace());
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

/// Runs it to its end and returns its stdout.
pub fn printed(command: &mut Command) -> Result<String> {
    Ok(text(&output(command)?.stdout))
}

/// A program's output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The files of a folder whose names begin and end so, in order.
pub fn files_in(folder: &Path, beginning: &str, end: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(beginning) && name.ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Files that Git tracks, or would if they were added, and that are there: with that ending, relative to the root.
pub fn tracked(ending: &str) -> Result<Vec<PathBuf>> {
    let mut git = command("git ls-files -z --cached --others --exclude-standard");
    let names = printed(git.current_dir(root()))?;
    let files = names.split('\0').filter(|name| name.ends_with(ending)).map(PathBuf::from);
    Ok(files.filter(|file| root().join(file).is_file()).collect())
}

/// A file's name without its ending.
pub fn stem(file: &Path) -> &str {
    file.file_stem().and_then(|name| name.to_str()).unwrap_or_default()
}

/// Removes a folder where there is one.
pub fn remove_folder(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Has cargo build and says what it made, by target: the files with that ending, or the programs.
pub fn built(cargo: &mut Command, ending: Option<&str>) -> Result<BTreeMap<String, PathBuf>> {
    let told = output(cargo.args(["--message-format", "json"]).stderr(Stdio::inherit()))?.stdout;
    Ok(made(&told, ending))
}

fn made(told: &[u8], ending: Option<&str>) -> BTreeMap<String, PathBuf> {
    let of_line = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let mut files = message["filenames"].as_array()?.iter().filter_map(|file| file.as_str());
        let file = match ending {
            Some(ending) => files.find(|file| file.ends_with(ending)),
            None => message["executable"].as_str(),
        };
        Some((message["target"]["name"].as_str()?.to_owned(), file?.into()))
    };
    text(told).lines().filter_map(of_line).collect()
}

/// An error where one of the names wanted is not among those there are.
pub fn accepted(what: &str, wanted: &[String], known: &[&str]) -> Result<()> {
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => bail!("{what}: expected {}, found \"{unknown}\"", known.join(", ")),
        None => Ok(()),
    }
}

/// Exit status of a chore that lacks something on this machine, as `make check` knows it.
pub const LACKING: u8 = 77;

/// Package or setting that a task lacks on this machine.
#[derive(Debug, thiserror::Error)]
#[error("cannot run: {0}")]
pub struct Lacking(pub String);

impl Lacking {
    /// These Debian packages.
    pub fn packages(names: &[&str]) -> Lacking {
        Lacking(format!("install the Debian packages {}", names.join(" ")))
    }

    /// An error where one of these files is not there, each with the Debian package it comes from.
    pub fn check<'n>(needs: impl IntoIterator<Item = (&'n str, &'n str)>) -> Result<()> {
        let missing = needs.into_iter().filter(|(file, _)| !Path::new(file).exists());
        let missing: Vec<&str> = missing.map(|(_, package)| package).collect();
        ensure!(missing.is_empty(), Lacking::packages(&missing));
        Ok(())
    }

    /// An error where Rust's libraries for that target are not installed.
    pub fn check_target(target: &str) -> Result<()> {
        let directory = printed(rustc().args(["--print", "target-libdir", "--target", target]))?;
        ensure!(
            Path::new(directory.trim()).is_dir(),
            Lacking(format!("rustup target add {target}"))
        );
        Ok(())
    }
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
        assert_eq!(names(made(told, None)), [("a".to_owned(), "/t/a".into())]);
        let [a, b] = ["a", "b"].map(|name| (name.to_owned(), format!("/t/lib{name}.rlib").into()));
        assert_eq!(names(made(told, Some(".rlib"))), [a, b]);
    }
}
