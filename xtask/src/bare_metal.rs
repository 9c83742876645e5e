//! The library, and the example of a kernel's author, for a target that has no operating system.

use crate::ci::Ended;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-none";
const EXAMPLE: &str = "crates/cachewise/examples/kernel_boot.rs";

/// Builds both; skipped where Rust's own `core` for the target is not installed.
pub fn run() -> Result<Ended> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(&rustc);
    command.args(["--print", "target-libdir", "--target", TARGET]);
    let directory = String::from_utf8(succeed(&mut command)?)?;
    if !Path::new(directory.trim()).is_dir() {
        return Ok(Ended::Skipped(format!("rustup target add {TARGET}")));
    }
    let (library, kernels) = build()?;
    let scratch = tempfile::tempdir()?;
    let mut command = Command::new(&rustc);
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
    succeed(command.arg(EXAMPLE))?;
    println!("{TARGET}: library and {EXAMPLE} built without a warning");
    Ok(Ended::Passed)
}

/// The libraries' files, as Cargo names them.
fn build() -> Result<(PathBuf, PathBuf)> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "-p", "cachewise", "-p", "cachewise-kernels", "--no-default-features"]);
    command.args(["--target", TARGET, "--message-format", "json"]).env("RUSTFLAGS", "-D warnings");
    let told = String::from_utf8(succeed(&mut command)?)?;
    let file = |name: &str| {
        told.lines().find_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let built = message["target"]["name"] == name
                && message["target"]["kind"][0] == "lib"
                && message["reason"] == "compiler-artifact";
            let mut files = message["filenames"].as_array().filter(|_| built)?.iter();
            let library =
                files.find_map(|file| file.as_str().filter(|file| file.ends_with(".rlib")));
            library.map(PathBuf::from)
        })
    };
    let library = file("cachewise").context("cargo named no file for cachewise")?;
    let kernels = file("cachewise_kernels").context("cargo named no file for cachewise-kernels")?;
    Ok((library, kernels))
}

fn succeed(command: &mut Command) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}
