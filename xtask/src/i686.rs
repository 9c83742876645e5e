//! 32-bit x86, the documents' own CPUs: their routines under the kernels' tests, run on this machine.

use crate::ci::Ended;
use crate::command;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

const TARGET: &str = "i686-unknown-linux-gnu";

/// What a program for that target is linked with, and the package that has it. Not `gcc-multilib`, which
/// cannot be beside the compilers for Arm and POWER.
const NEEDED: [(&str, &str); 2] = [
    ("/usr/lib32/crti.o", "libc6-dev-i386"),
    ("/usr/lib/gcc/x86_64-linux-gnu/12/32/libgcc.a", "lib32gcc-12-dev"),
];

/// Runs them; skipped where the standard library or the C library for that target is not installed.
pub fn run() -> Result<Ended> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut told = Command::new(rustc);
    told.args(["--print", "target-libdir", "--target", TARGET]);
    let directory = command::text(&command::output(&mut told)?.stdout);
    if !Path::new(directory.trim()).is_dir() {
        return Ok(Ended::Skipped(format!("rustup target add {TARGET}")));
    }
    let missing: Vec<&str> = NEEDED
        .iter()
        .filter(|(file, _)| !Path::new(file).exists())
        .map(|(_, package)| *package)
        .collect();
    if !missing.is_empty() {
        return Ok(Ended::lacks(&missing));
    }
    let arguments = ["test", "-p", "cachewise-kernels", "--features", "lab", "--target", TARGET];
    command::run(&mut command::cargo(&arguments))?;
    Ok(Ended::Passed)
}
