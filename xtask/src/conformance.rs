//! `xtask conformance`: glibc's own tests of memory functions (Debian package `glibc-source`) under the
//! preload library.
//!
//! Every test of the suite is either run, or in [`LEFT_OUT`] with the reason; a new one is neither, and
//! fails.

use crate::command::{command, files_in, output, root, run as run_command, stem, text};
use anyhow::{Context as _, Result, ensure};
use rayon::prelude::*;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

/// Tests that are not run, by their names: nothing of ours could fail in them.
const LEFT_OUT: &[(&str, &str)] =
    &[("test-memccpy test-memchr test-memmem test-memrchr", "not a function that we export")];

/// Longest that one test may take, in seconds, on a slow machine beside others.
const LIMIT: &str = "300";

/// Folder of the libraries in an unpacked package of glibc.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Runs the suite; those tests alone whose names contain `only`, and with the loader and the libraries of the
/// glibc that is unpacked in `glibc_root`. `conformance/Makefile` builds them. The last line counts them.
pub fn run(only: Option<&str>, glibc_root: Option<&Path>) -> Result<()> {
    let library = crate::install::built("cachewise-preload")?.join("libcachewise_preload.so");
    let scratch = tempfile::tempdir()?;
    let scratch = scratch.path();
    let glibc = glibc(scratch)?;
    let (mut tests, mut left_out) = (Vec::new(), 0);
    for beginning in ["test-mem", "test-bcopy", "test-bzero"] {
        for name in files_in(&glibc.join("string"), beginning, ".c")?.iter().map(|file| stem(file))
        {
            if chosen(name, only, &mut left_out) {
                tests.push(format!("glibc/{name}"));
            }
        }
    }
    ensure!(!tests.is_empty(), "no test has such a name");
    let mut make = command("make --silent --jobs");
    make.arg(rayon::current_num_threads().to_string()).arg("-C").arg(scratch);
    make.arg("-f").arg(root().join("xtask/conformance/Makefile"));
    make.arg(format!("GLIBC={}", glibc.display()));
    output(make.args(&tests))?;
    let libraries = glibc_root.map(|root| root.join(LIBRARIES).canonicalize());
    let libraries = libraries.transpose().context("no libraries of an unpacked glibc package")?;
    let wrong = |test| wrong(test, &library, libraries.as_deref(), scratch);
    let failed: Vec<String> = tests.par_iter().filter_map(wrong).collect();
    ensure!(failed.is_empty(), "{} tests failed:\n{}", failed.len(), failed.join("\n"));
    let tests = tests.len();
    println!("conformance: {tests} tests passed, {left_out} left out for the reasons above");
    Ok(())
}

/// Runs one test, and where it fails once more without our library; says whose fault it is.
fn wrong(test: &String, ours: &Path, libc: Option<&Path>, scratch: &Path) -> Option<String> {
    let begun = Instant::now();
    let program = scratch.join(test);
    let output = match under(&program, Some(ours), libc, scratch) {
        Ok(output) => output,
        Err(error) => return Some(format!("{test}: {error:#}")),
    };
    if output.status.success() {
        println!("{test}: passed in {:.1} s", begun.elapsed().as_secs_f64());
        return None;
    }
    let [told, errors] = [&output.stdout, &output.stderr].map(|bytes| text(bytes));
    println!("{test}: FAILED, {}\n{told}{errors}", output.status);
    let plain = under(&program, None, libc, scratch);
    let alone = plain.is_ok_and(|output| output.status.success());
    let whose = if alone { "passes without" } else { "fails without as well" };
    Some(format!("{test}: {}; {whose}", output.status))
}

/// Returns whether a test is run; says so where it is not.
fn chosen(name: &str, only: Option<&str>, left_out: &mut usize) -> bool {
    if only.is_some_and(|only| !name.contains(only)) {
        return false;
    }
    let is_named = |names: &str| names.split(' ').any(|beginning| name.starts_with(beginning));
    let reason = LEFT_OUT.iter().find(|(names, _)| is_named(names));
    if let Some((_, reason)) = reason {
        println!("{name}: left out: {reason}");
        *left_out += 1;
    }
    reason.is_none()
}

fn under(
    program: &Path,
    ours: Option<&Path>,
    libc: Option<&Path>,
    scratch: &Path,
) -> Result<Output> {
    // A test that hangs has failed.
    let mut command = Command::new("timeout");
    command.args(["-k", "5", LIMIT, "env"]);
    command.args(ours.map(|library| format!("LD_PRELOAD={}", library.display())));
    if let Some(libc) = libc {
        command.arg(libc.join("ld-linux-x86-64.so.2")).arg("--library-path").arg(libc);
    }
    command.arg(program).current_dir(scratch).env("HOME", "/nonexistent").env("TMPDIR", scratch);
    command.env_remove("CACHEWISE_PROFILE");
    command.output().context("timeout(1) could not be started")
}

/// glibc's sources, unpacked.
fn glibc(scratch: &Path) -> Result<PathBuf> {
    let archives = files_in(Path::new("/usr/src/glibc"), "glibc-", ".tar.xz").unwrap_or_default();
    let archive = archives.first();
    let archive =
        archive.context("/usr/src/glibc: no sources; install the Debian package glibc-source")?;
    run_command(command("tar xf").arg(archive).arg("-C").arg(scratch))?;
    Ok(scratch.join(stem(archive).trim_end_matches(".tar")))
}
