//! 32-bit x86, the documents' own CPUs: their routines under the kernels' tests, and the C interface under
//! C programs that call all of it, run on this machine.

use crate::command::{Lacking, built, cargo, command, prints, root, run as run_command};
use anyhow::{Context as _, Result};
use fs_err as fs;
use std::process::Command;

const TARGET: &str = "i686-unknown-linux-gnu";

/// What a program for that target is linked with, and the package that has it. Not `gcc-multilib`, which
/// cannot be beside the compilers for Arm and POWER.
const NEEDED: [(&str, &str); 2] = [
    ("/usr/lib32/crti.o", "libc6-dev-i386"),
    ("/usr/lib/gcc/x86_64-linux-gnu/12/32/libgcc.a", "lib32gcc-12-dev"),
];

/// Runs them; skipped where the standard library or the C library for that target is not installed.
pub fn run() -> Result<()> {
    Lacking::check_target(TARGET)?;
    Lacking::check(NEEDED)?;
    run_command(cargo("test -p cachewise-kernels --features lab --target").arg(TARGET))?;
    c_programs()
}

/// What each prints when everything is right.
const PROGRAMS: [(&str, &str); 2] =
    [("contract", "contract kept\n"), ("parallel", "all bytes right\n")];

/// C programs, linked with the shared and with the static library.
fn c_programs() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let package = root().join("crates/capi");
    // The shared library is found by its soname.
    for (ending, name) in [(".so", "libcachewise.so.0"), (".a", "libcachewise.a")] {
        let mut libraries =
            built(cargo("build -p cachewise-capi --target").arg(TARGET), Some(ending))?;
        let built = libraries.remove("cachewise_c");
        let built = built.with_context(|| format!("no library in {ending}"))?;
        let library = directory.path().join(name);
        fs::copy(built, &library)?;
        for (source, expected) in PROGRAMS {
            let program = directory.path().join(source);
            let mut cc = command("cc -m32 -std=c89 -pedantic -Wall -Wextra -Werror -O2 -pthread");
            // The kernel's headers are the same for both; no package of Debian puts them elsewhere.
            cc.args(["-idirafter", "/usr/include/x86_64-linux-gnu", "-I"]);
            cc.arg(package.join("include")).arg("-o").arg(&program);
            cc.arg(package.join(format!("tests/c/{source}.c"))).arg(&library);
            run_command(cc.arg(format!("-Wl,-rpath,{}", directory.path().display())))?;
            let mut ran = Command::new(&program);
            ran.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
            prints(ran.env_remove("CACHEWISE_PROFILE"), expected)?;
        }
    }
    Ok(())
}
