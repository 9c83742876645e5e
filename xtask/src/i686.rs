//! 32-bit x86, the documents' own CPUs: their routines under the kernels' tests, and the C interface under
//! C programs that call all of it, run on this machine.

use crate::ci::Ended;
use crate::command;
use anyhow::{Context as _, Result, ensure};
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
    if let Some(ended) = Ended::without_target(TARGET)?.or_else(|| Ended::lacking(&NEEDED)) {
        return Ok(ended);
    }
    let arguments = ["test", "-p", "cachewise-kernels", "--features", "lab", "--target", TARGET];
    command::run(&mut command::cargo(&arguments))?;
    c_programs()?;
    Ok(Ended::Passed)
}

/// What each prints when everything is right.
const PROGRAMS: [(&str, &str); 2] =
    [("contract", "contract kept\n"), ("parallel", "all bytes right\n")];

/// C programs, linked with the shared and with the static library.
fn c_programs() -> Result<()> {
    let arguments =
        ["build", "-p", "cachewise-capi", "--target", TARGET, "--message-format", "json"];
    let told = command::output(&mut command::cargo(&arguments))?.stdout;
    let directory = tempfile::tempdir()?;
    let package = command::root().join("crates/capi");
    // The shared library is found by its soname.
    for (ending, name) in [(".so", "libcachewise.so.0"), (".a", "libcachewise.a")] {
        let made = command::files(&told, ending);
        let made = made.get("cachewise_c").with_context(|| format!("no library in {ending}"))?;
        let library = directory.path().join(name);
        std::fs::copy(made, &library)?;
        for (source, expected) in PROGRAMS {
            let program = directory.path().join(source);
            let mut compiler = Command::new("cc");
            compiler.args(["-m32", "-std=c89", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2"]);
            // The kernel's headers are the same for both; no package of Debian puts them elsewhere.
            compiler.args(["-pthread", "-idirafter", "/usr/include/x86_64-linux-gnu", "-I"]);
            compiler.arg(package.join("include")).arg("-o").arg(&program);
            compiler.arg(package.join(format!("tests/c/{source}.c"))).arg(&library);
            command::run(compiler.arg(format!("-Wl,-rpath,{}", directory.path().display())))?;
            let mut command = Command::new(&program);
            command.env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
            let said = command::output(command.env_remove("CACHEWISE_PROFILE"))?;
            let [out, err] = [&said.stdout, &said.stderr].map(|bytes| command::text(bytes));
            ensure!(out == expected && err.is_empty(), "{source}, {ending}: {out}{err}");
        }
    }
    Ok(())
}
