//! Tests the library on emulated Arm and POWER CPUs, for machines that are neither.
//!
//! QEMU runs single programs of another architecture, and Debian's cross compilers link them with Rust's library for it
//! (`rustup target add`).
//!
//! What runs: the kernels' tests over the whole table, the library's, and C programs with the libraries
//! for C; with more effort than `small` also the command line once per verb that works there, the profile's
//! tests and what the laboratory knows of machines. Emulation proves bytes, never speed: no time from it is
//! kept.

mod libraries;
mod target;

use crate::command::{Lacking, accepted, number_before, text};
use crate::emulate::Summary;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use target::cargo;
pub(crate) use target::{Target, tool};

/// All of them.
const TARGETS: [Target; 2] = [
    Target {
        name: "powerpc64le",
        emulator: "qemu-ppc64le",
        libc: "libc6-dev-ppc64el-cross",
        // The one that the memcmp of seed 004 was written for; the default is a later one.
        variants: &[("power8", "vmx,vsx,dcbz")],
    },
    Target {
        name: "aarch64",
        emulator: "qemu-aarch64",
        libc: "libc6-dev-arm64-cross",
        variants: &[],
    },
];

/// The same for all that is built, so that dependencies have the same features and are compiled once.
const PACKAGES: &str = "-p cachewise-kernels -p cachewise --features cachewise-kernels/lab";

/// The command line, which takes longer to compile than all the rest.
const COMMAND: &str = "-p cachewise-cli";

/// Test targets, as cargo names them.
const TESTS: &str = "--lib --test kernels --test all";

/// Packages whose tests say little of an architecture and take long there.
const MORE: &str = "-p cachewise-measure";

/// Numbers of tests that passed.
#[derive(Default)]
struct Counts {
    /// Tests of all binaries, the variants' included.
    tests: u64,
    /// Kernels of the table.
    kernels: usize,
    /// Calls of kernels that were checked, all sweeps together.
    calls: u64,
    /// C programs that ran.
    programs: usize,
}

/// Emulates the architecture named, or all, and tells how it went; with `required`, packages that are
/// missing are an error.
pub fn chore(name: Option<&str>, effort: &str, required: bool) -> Result<()> {
    let chosen = match name {
        Some(name) => std::slice::from_ref(find(name)?),
        None => &TARGETS,
    };
    chosen.iter().try_for_each(|target| Lacking::allowed(run(target, effort), !required))
}

/// The target of that name.
pub fn find(name: &str) -> Result<&'static Target> {
    accepted("architecture", &[name.to_owned()], &TARGETS.each_ref().map(|target| target.name))?;
    TARGETS.iter().find(|target| target.name == name).context("an architecture")
}

/// Builds, runs and counts. Everything it makes is under `target/emulate-arch`; what the programs
/// say goes to stderr.
pub fn run(target: &Target, effort: &str) -> Result<()> {
    target.is_installed()?;
    let with_command = effort != "small";
    let packages = if with_command { format!("{COMMAND} {PACKAGES}") } else { PACKAGES.to_owned() };
    let cachewise = match with_command {
        true => cargo(target, &format!("build {packages}"))?.remove("cachewise"),
        false => None,
    };
    let more = if effort == "small" { "" } else { MORE };
    let tests = cargo(target, &format!("test --no-run {packages} {TESTS} {more}"))?;
    let mut counts = Counts::default();
    for (name, program) in &tests {
        let mut command = target.emulated(&[], program);
        command.arg("--quiet").env("CACHEWISE_TEST_EFFORT", effort);
        match name.as_str() {
            // The rest of it is about time.
            "cachewise_measure" => {
                command.args(["machine::", "caches::", "verify::", "tree::"]);
            }
            // The rest starts processes, which would not be emulated.
            "all" if effort == "small" => {
                command.arg("bytes::");
            }
            "all" => {
                command.args(["bytes::", "profile::"]);
            }
            _ => {}
        }
        test(name, &mut command, &mut counts)?;
    }
    let kernels = tests.get("kernels").context("cargo built no kernels' tests")?;
    for &(cpu, names) in target.variants {
        let mut command = target.emulated(&["-cpu", cpu], kernels);
        command
            .args(["--quiet", "--skip", "disassembly", "--skip", "corpus", "--skip", "properties"])
            .env("CACHEWISE_TEST_EFFORT", effort)
            .env("CACHEWISE_TEST_KERNELS", names);
        test(&format!("kernels on {cpu}"), &mut command, &mut counts)?;
    }
    if with_command {
        let cachewise = cachewise.context("cargo built no program")?;
        command_line(target, &cachewise, &mut counts)?;
    }
    counts.programs += libraries::test(target)?;
    let Counts { tests, kernels, calls, programs } = counts;
    let by_command = match with_command {
        true => format!("{kernels} kernels by the command"),
        false => "the command left out".to_owned(),
    };
    println!(
        "emulated {}: {tests} tests passed, {calls} calls checked by them, {by_command}, {programs} C programs",
        target.name
    );
    Ok(())
}

/// Runs a test binary, passes on what it says, counts.
fn test(name: &str, command: &mut Command, counts: &mut Counts) -> Result<()> {
    eprintln!("--- {name}");
    let output = command.output().with_context(|| format!("{name} could not be started"))?;
    let text = text(&output.stdout) + &text(&output.stderr);
    eprintln!("{}", text.trim());
    let summary = Summary::of(&text);
    let passed = number_before(&summary.result, " passed").unwrap_or(0);
    ensure!(output.status.success() && passed > 0, "{name} ended with {}", output.status);
    counts.tests += passed;
    counts.calls += summary.calls;
    Ok(())
}

/// The command line, a verb at a time.
fn command_line(target: &Target, program: &Path, counts: &mut Counts) -> Result<()> {
    let run = |words: &str| -> Result<(Option<i32>, String, String)> {
        eprintln!("--- cachewise {words}");
        let output = target.emulated(&[], program).args(words.split(' ')).output()?;
        Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
    };
    let succeeds = |words: &str| -> Result<String> {
        let (status, out, err) = run(words)?;
        ensure!(status == Some(0), "{words} ended with {status:?}: {err}");
        Ok(out)
    };
    let listed = |what: &str| -> Result<Vec<Value>> {
        let lines = succeeds(&format!("list {what} --format json"))?;
        lines.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
    };
    let kernels = listed("kernels")?;
    counts.kernels = kernels.len();
    for kernel in kernels {
        ensure!(kernel["runs_here"] == true, "the emulated CPU cannot run {}", kernel["name"]);
    }

    let (status, doctor, err) = run("doctor")?;
    ensure!(status == Some(4), "doctor can tell on an emulated CPU: {status:?}: {doctor}{err}");
    ensure!(doctor.contains("no timing is taken here"), "doctor says nothing of emulation");
    let times = doctor.contains(" ns") || doctor.contains(" GHz");
    ensure!(!times, "doctor prints a time: {doctor}");
    let decision = succeeds("explain --op zero --size 1M")?;
    // Nothing was measured on this CPU, so large stores are the C library's.
    ensure!(decision.contains("libc (from 2 KiB"), "the computed decision is not libc: {decision}");

    for words in ["tune --quick --output /dev/null", "run copy-matrix"] {
        let (status, out, err) = run(words)?;
        ensure!(
            status == Some(1) && out.is_empty() && err.lines().count() == 1,
            "{words} ended with {status:?}, not with one line: {out}{err}"
        );
        ensure!(err.contains("emulated by"), "{words} does not say why: {err}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        assert_eq!(number_before("ok. 21 passed; 0 failed; 1 ignored", " passed"), Some(21));
        assert_eq!(number_before("FAILED. 0 passed; 2 failed", " passed"), Some(0));
        assert_eq!(number_before("", " passed"), None);
    }

    #[test]
    fn unknown_architectures_are_refused_with_the_list() {
        assert_eq!(find("aarch64").map(|target| target.name).ok(), Some("aarch64"));
        let error = find("riscv64").map(|target| target.name).expect_err("unknown").to_string();
        assert!(error.contains("powerpc64le, aarch64"), "{error}");
    }
}
