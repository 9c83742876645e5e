//! `xtask matrix`: every function that the preload library exports, called from every place that
//! callers come from (`conformance/matrix/matrix.c`), and with no `/proc` at all.
//!
//! The functions are those that the built library exports: one that `matrix.c` does not know fails.

use crate::command::{command, output, printed, root, text};
use anyhow::{Context as _, Result, ensure};
use fs_err as fs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The situation that needs another root: a process that never saw `/proc`.
const NO_PROC: &str = "no-proc";

/// Builds the library and the program, and calls everything from everywhere; the last line counts
/// situations, functions and calls.
pub fn run() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let scratch = scratch.path();
    let file = "libcachewise_preload.so";
    let library = scratch.join(file);
    fs::copy(crate::install::built("cachewise-preload")?.join(file), &library)?;
    let exported = BTreeSet::from_iter(exports(&library)?);
    let (program, constructor) = programs(scratch)?;
    let names = |what: &str| -> Result<Vec<String>> {
        Ok(printed(Command::new(&program).arg(what))?.lines().map(str::to_owned).collect())
    };
    let (functions, mut situations) = (names("functions")?, names("situations")?);
    let known: BTreeSet<String> = functions.iter().cloned().collect();
    let unknown: Vec<_> = exported.difference(&known).collect();
    ensure!(unknown.is_empty(), "exported, and not in matrix.c: {unknown:?}");
    let gone: Vec<_> = known.difference(&exported).collect();
    ensure!(gone.is_empty(), "in matrix.c, and not exported any more: {gone:?}");

    let root = scratch.join("root");
    [&library, &program, &constructor].into_iter().try_for_each(|file| copy_into(&root, file))?;
    situations.push(NO_PROC.to_owned());
    let (mut calls, mut failed) = (0, 0);
    for (setting, preload) in [("plain", None), ("preload", Some(&library))] {
        for situation in &situations {
            for function in &functions {
                let mut command = command("timeout -k 1 30");
                if situation == NO_PROC {
                    // The files are at the same paths there.
                    command.arg("chroot").arg(&root).arg(&program).args(["main-thread", function]);
                } else {
                    command.arg(&program).args([situation, function]);
                }
                command.envs(preload.map(|library| ("LD_PRELOAD", library)));
                command.env("MATRIX_CONSTRUCTOR", &constructor).env("HOME", "/nonexistent");
                let output = command.output().context("timeout(1) could not be started")?;
                calls += 1;
                // A library that is not loaded says so on stderr.
                if !output.status.success() || !output.stderr.is_empty() {
                    let why = format!("{} {}", output.status, text(&output.stderr).trim());
                    println!("{function} from {situation}, {setting}: {why}");
                    failed += 1;
                }
            }
        }
    }
    ensure!(failed == 0, "{failed} of {calls} calls failed");
    let (situations, functions) = (situations.len(), functions.len());
    println!("matrix: {situations} situations, {functions} functions, {calls} calls, all right");
    Ok(())
}

fn programs(scratch: &Path) -> Result<(PathBuf, PathBuf)> {
    let sources = root().join("xtask/conformance/matrix");
    let (program, constructor) = (scratch.join("matrix"), scratch.join("constructor.so"));
    for (source, to, flags) in [
        ("matrix.c", &program, &["-fno-builtin", "-rdynamic", "-pthread"] as &[&str]),
        ("constructor.c", &constructor, &["-shared", "-fPIC"]),
    ] {
        let mut cc = command("cc -std=gnu11 -O1 -Wall -Wextra -Werror");
        output(cc.args(flags).arg("-o").arg(to).arg(sources.join(source)))?;
    }
    Ok((program, constructor))
}

/// The names of the functions that a shared library exports.
fn exports(library: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for line in printed(command("nm -D --defined-only").arg(library))?.lines() {
        let mut words = line.split_whitespace().skip(1);
        let (Some(kind), Some(name)) = (words.next(), words.next()) else { continue };
        if matches!(kind, "T" | "W" | "i") {
            names.push(name.split('@').next().unwrap_or(name).to_owned());
        }
    }
    ensure!(!names.is_empty(), "{} exports nothing", library.display());
    Ok(names)
}

/// Copies a file and what it is linked with to the paths below another root that they have here.
fn copy_into(root: &Path, file: &Path) -> Result<()> {
    let linked = text(&Command::new("ldd").arg(file).output()?.stdout);
    let linked = linked.split_whitespace().filter(|word| word.starts_with('/')).map(Path::new);
    for path in linked.chain([file]) {
        let to = root.join(path.strip_prefix("/")?);
        fs::create_dir_all(to.parent().context("a folder")?)?;
        fs::copy(path, &to)?;
    }
    Ok(())
}
