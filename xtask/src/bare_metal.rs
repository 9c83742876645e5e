//! The library, and the example of a kernel's author, for a target that has no operating system.

use crate::ci::Ended;
use crate::command::{cargo, files, output, rustc};
use anyhow::{Context as _, Result};
use std::path::PathBuf;

const TARGET: &str = "x86_64-unknown-none";
const EXAMPLE: &str = "crates/cachewise/examples/kernel_boot.rs";

/// Builds both; skipped where Rust's own `core` for the target is not installed.
pub fn run() -> Result<Ended> {
    if let Some(ended) = Ended::without_target(TARGET)? {
        return Ok(ended);
    }
    let (library, kernels) = build()?;
    let scratch = tempfile::tempdir()?;
    let mut command = rustc();
    // A library: `main` prints, and is not there without an operating system. All of its code is
    // generated, so what core has not got is missed.
    command.args(["--edition", "2024", "--crate-type", "rlib", "-D", "warnings"]);
    command.args(["--target", TARGET, "-C", "link-dead-code", "-o"]);
    command.arg(scratch.path().join("libkernel_boot.rlib"));
    for (name, file) in [("cachewise", &library), ("cachewise_kernels", &kernels)] {
        command.arg("--extern").arg(format!("{name}={}", file.display()));
        let beside = file.parent().context("a file is in a directory")?;
        command.arg("-L").arg(format!("dependency={}", beside.display()));
    }
    output(command.arg(EXAMPLE))?;
    println!("{TARGET}: library and {EXAMPLE} built without a warning");
    Ok(Ended::Passed)
}

/// The libraries' files, as Cargo names them.
fn build() -> Result<(PathBuf, PathBuf)> {
    let mut command = cargo(&["build", "-p", "cachewise", "-p", "cachewise-kernels"]);
    command.args(["--no-default-features", "--target", TARGET, "--message-format", "json"]);
    let mut made = files(&output(command.env("RUSTFLAGS", "-D warnings"))?.stdout, ".rlib");
    let mut file = |name: &str| made.remove(name).with_context(|| format!("cargo made no {name}"));
    Ok((file("cachewise")?, file("cachewise_kernels")?))
}
