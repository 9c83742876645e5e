//! `xtask fuzz`: every fuzz target for a while, as many at a time as there are CPUs.
//!
//! The ordinary compiler builds them: libFuzzer's counters are a stable option, and AddressSanitizer is
//! in the standard distribution behind `RUSTC_BOOTSTRAP`. What is found stays in `target/fuzz`, as a
//! file that becomes a test by being copied to `fuzz/corpus/TARGET/`.

use crate::command::{cargo, files_in, root, run as run_command, text};
use anyhow::{Result, ensure};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

const COMPILED_FOR: &str = "x86_64-unknown-linux-gnu";

/// What cargo-fuzz passes as well.
const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Ccodegen-units=1 -Cdebug-assertions=yes";

/// Runs the targets named, or all.
pub fn run(names: &[String], seconds: u64) -> Result<()> {
    let root = root();
    let target = root.join("target/fuzz");
    let sources = files_in(&root.join("fuzz/fuzz_targets"), "", "")?;
    let known: Vec<String> = sources
        .iter()
        .filter_map(|file| Some(text(file.file_stem()?.as_encoded_bytes())))
        .collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        anyhow::bail!("target: found \"{unknown}\", accepted {}", known.join(", "));
    }
    let mut cargo = cargo(&["build", "--release", "--target", COMPILED_FOR, "--manifest-path"]);
    cargo.arg(root.join("fuzz/Cargo.toml")).arg("--target-dir").arg(&target);
    // The compiled target is named, so that build scripts and macros are not instrumented.
    run_command(cargo.env("RUSTFLAGS", FLAGS).env("RUSTC_BOOTSTRAP", "1"))?;

    let mut waiting: Vec<String> =
        known.into_iter().filter(|name| names.is_empty() || names.contains(name)).rev().collect();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let mut running: Vec<(String, Child, PathBuf)> = Vec::new();
    let mut failed = Vec::new();
    while !waiting.is_empty() || !running.is_empty() {
        while running.len() < cpus {
            let Some(name) = waiting.pop() else { break };
            running.push(start(root, &target, name, seconds)?);
        }
        let (name, mut child, log) = running.remove(0);
        let status = child.wait()?;
        let told = fs::read_to_string(&log)?;
        let executed =
            told.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
        let executed = executed.map_or("no", str::trim);
        println!("{name}: {executed} inputs, {status}");
        if !status.success() {
            println!("{told}");
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "found something: {}", failed.join(", "));
    Ok(())
}

fn start(
    root: &Path,
    target: &Path,
    name: String,
    seconds: u64,
) -> Result<(String, Child, PathBuf)> {
    let (found, crashes) = (target.join("corpus").join(&name), target.join("found").join(&name));
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&crashes)?;
    let log = target.join(format!("{name}.log"));
    let output = File::create(&log)?;
    let mut command = Command::new(target.join(COMPILED_FOR).join("release").join(&name));
    command.arg(format!("-max_total_time={seconds}")).args(["-timeout=30", "-print_final_stats=1"]);
    command.args(["-rss_limit_mb=4096", "-max_len=16384"]);
    command.arg(format!("-artifact_prefix={}/", crashes.display()));
    command.arg(&found).arg(root.join("fuzz/corpus").join(&name));
    let child = command.stdout(output.try_clone()?).stderr(output).spawn()?;
    Ok((name, child, log))
}
