//! The library, and the example of a kernel's author, for a target that has no operating system.

use crate::command::{Lacking, built, cargo, output, rustc};
use anyhow::{Context as _, Result};

const TARGET: &str = "x86_64-unknown-none";
const EXAMPLE: &str = "lib/cachewise/examples/kernel_boot.rs";

/// Builds both; skipped where Rust's own `core` for the target is not installed.
pub fn run() -> Result<()> {
    Lacking::check_target(TARGET)?;
    let mut build = cargo("build -p cachewise -p cachewise-kernels --no-default-features");
    build.args(["--target", TARGET]).env("RUSTFLAGS", "-D warnings");
    let libraries = built(&mut build, Some(".rlib"))?;
    let scratch = tempfile::tempdir()?;
    let mut command = rustc();
    // A library: `main` prints, and is not there without an operating system. All of its code is
    // generated, so what core has not got is missed.
    command.args(["--edition", "2024", "--crate-type", "rlib", "-D", "warnings"]);
    command.args(["--target", TARGET, "-C", "link-dead-code", "-o"]);
    command.arg(scratch.path().join("libkernel_boot.rlib"));
    for name in ["cachewise", "cachewise_kernels"] {
        let file = libraries.get(name).with_context(|| format!("cargo made no {name}"))?;
        command.arg("--extern").arg(format!("{name}={}", file.display()));
        let beside = file.parent().context("a file is in a directory")?;
        command.arg("-L").arg(format!("dependency={}", beside.display()));
    }
    output(command.arg(EXAMPLE))?;
    println!("{TARGET}: library and {EXAMPLE} built without a warning");
    Ok(())
}
