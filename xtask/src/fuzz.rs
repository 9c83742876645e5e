//! `xtask fuzz`: every fuzz target for a while, as many at a time as there are CPUs.
//!
//! The ordinary compiler builds them: libFuzzer's counters are a stable option, and AddressSanitizer is
//! in the standard distribution behind `RUSTC_BOOTSTRAP`. What is found stays in `target/fuzz`, as a
//! file that becomes a test by being copied to `fuzz/corpus/TARGET/`.

use crate::command::{accepted, cargo, files_in, root, run as run_command, stem};
use anyhow::{Result, ensure};
use fs_err::{self as fs, File};
use rayon::prelude::*;
use std::path::Path;
use std::process::Command;

const COMPILED_FOR: &str = "x86_64-unknown-linux-gnu";

/// Compiler flags, as cargo-fuzz passes them.
const FLAGS: &str = "--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions=yes";

/// Runs the targets named, or all.
pub fn run(names: &[String], seconds: u64) -> Result<()> {
    let target = root().join("target/fuzz");
    let sources = files_in(&root().join("fuzz/fuzz_targets"), "", "")?;
    let mut wanted: Vec<&str> = sources.iter().map(|file| stem(file)).collect();
    accepted("target", names, &wanted)?;
    wanted.retain(|name| names.is_empty() || names.iter().any(|named| named == name));
    let mut build = cargo("build --release --target-dir");
    build.arg(&target).arg("--manifest-path").arg(root().join("fuzz/Cargo.toml"));
    // The compiled target is named, so that build scripts and macros are not instrumented.
    build.args(["--target", COMPILED_FOR]).env("RUSTFLAGS", FLAGS).env("RUSTC_BOOTSTRAP", "1");
    run_command(&mut build)?;

    let passed = wanted.par_iter().map(|name| passes(&target, name, seconds));
    let passed: Vec<bool> = passed.collect::<Result<_>>()?;
    let failed = wanted.iter().zip(passed).filter_map(|(name, passed)| (!passed).then_some(*name));
    let failed: Vec<&str> = failed.collect();
    ensure!(failed.is_empty(), "found something: {}", failed.join(", "));
    Ok(())
}

/// Runs one target, and shows what it says where it found something.
fn passes(target: &Path, name: &str, seconds: u64) -> Result<bool> {
    let (found, crashes) = (target.join("corpus").join(name), target.join("found").join(name));
    fs::create_dir_all(&found)?;
    fs::create_dir_all(&crashes)?;
    let log = target.join(format!("{name}.log"));
    let output = File::create(&log)?.into_file();
    let mut command = Command::new(target.join(COMPILED_FOR).join("release").join(name));
    command.arg(format!("-max_total_time={seconds}")).args(["-timeout=30", "-print_final_stats=1"]);
    command.args(["-rss_limit_mb=4096", "-max_len=16384"]);
    command.arg(format!("-artifact_prefix={}/", crashes.display()));
    command.arg(&found).arg(root().join("fuzz/corpus").join(name));
    let status = command.stdout(output.try_clone()?).stderr(output).status()?;
    let told = fs::read_to_string(&log)?;
    let executed =
        told.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    println!("{name}: {} inputs, {status}", executed.map_or("no", str::trim));
    if !status.success() {
        println!("{told}");
    }
    Ok(status.success())
}
