//! Tests of kernels and library on emulated Arm and POWER CPUs, for machines that are neither.
//!
//! QEMU runs single programs of another architecture, and Debian's cross compilers link them with Rust's library for it
//! (`rustup target add`). Emulation proves bytes, never speed: no time from it is kept.

use crate::command::{Lacking, accepted, built, cargo, number_before, root, text};
use crate::emulate::Summary;
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::Command;

/// An architecture that can be emulated.
struct Target {
    /// Name for stages, the command line and compilers.
    name: &'static str,
    emulator: &'static str,
    /// Debian package of its C library.
    libc: &'static str,
    /// Further CPUs: QEMU's name for one, and the kernels that behave differently there.
    variants: &'static [(&'static str, &'static str)],
}

const TARGETS: [Target; 2] = [
    Target {
        name: "powerpc64le",
        emulator: "qemu-ppc64le",
        libc: "libc6-dev-ppc64el-cross",
        // The CPU that the memcmp of seed 004 was written for; the default is a later one.
        variants: &[("power8", "vmx,vsx,dcbz")],
    },
    Target {
        name: "aarch64",
        emulator: "qemu-aarch64",
        libc: "libc6-dev-arm64-cross",
        variants: &[],
    },
];

/// Packages and test targets: the kernels over the whole table, and the library.
const TESTS: &str = "-p cachewise-kernels -p cachewise --features cachewise-kernels/lab --lib --test kernels --test all";

/// Emulates the architecture named, or all, and prints how many tests and calls passed. Everything it makes is under
/// `target/emulate-arch`; what the programs print goes to stderr.
pub fn run(name: Option<&str>, effort: &str) -> Result<()> {
    let known = TARGETS.each_ref().map(|target| target.name);
    accepted("architecture", &name.map(str::to_owned).into_iter().collect::<Vec<_>>(), &known)?;
    let chosen = TARGETS.iter().filter(|target| name.is_none_or(|name| name == target.name));
    for target in chosen {
        emulated(target, effort)?;
    }
    Ok(())
}

fn emulated(target: &Target, effort: &str) -> Result<()> {
    let (name, triple) = (target.name, format!("{}-unknown-linux-gnu", target.name));
    let (libraries, compiler) = (format!("/usr/{name}-linux-gnu"), format!("{name}-linux-gnu-gcc"));
    Lacking::check_target(&triple)?;
    Lacking::check([
        (&*format!("/usr/bin/{compiler}"), &*format!("gcc-{name}-linux-gnu")),
        (&*format!("{libraries}/lib/libc.so.6"), target.libc),
        (&*format!("/usr/bin/{}", target.emulator), "qemu-user"),
    ])?;
    let mut build = cargo(&format!("test --no-run --target {triple} {TESTS} --target-dir"));
    build.arg(root().join("target/emulate-arch")).current_dir(root());
    let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace('-', "_"));
    let tests = built(build.env(linker, compiler), None)?;
    let program = |options: &[&str], program: &Path| {
        let mut command = Command::new(target.emulator);
        command.args(["-L", &libraries]).args(options).arg(program).arg("--quiet");
        // Decisions are the computed ones, whoever runs this.
        command.env_remove("CACHEWISE_PROFILE").env("XDG_CONFIG_HOME", "/nonexistent");
        command.env("CACHEWISE_TEST_EFFORT", effort);
        command
    };
    let mut commands = Vec::new();
    for (test, file) in &tests {
        let mut command = program(&[], file);
        // The rest starts processes, which would not be emulated.
        command.args((test == "all").then_some("bytes::"));
        commands.push((test.clone(), command));
    }
    let kernels = tests.get("kernels").context("cargo built no kernels' tests")?;
    for &(cpu, names) in target.variants {
        let mut command = program(&["-cpu", cpu], kernels);
        command.args(["--skip", "disassembly", "--skip", "corpus", "--skip", "properties"]);
        command.env("CACHEWISE_TEST_KERNELS", names);
        commands.push((format!("kernels on {cpu}"), command));
    }
    let (mut tests, mut calls) = (0, 0);
    for (test, mut command) in commands {
        eprintln!("--- {test}");
        let output = command.output().with_context(|| format!("{test} could not be started"))?;
        let told = text(&output.stdout) + &text(&output.stderr);
        eprintln!("{}", told.trim());
        let summary = Summary::of(&told);
        let passed = number_before(&summary.result, " passed").unwrap_or(0);
        ensure!(output.status.success() && passed > 0, "{test} ended with {}", output.status);
        tests += passed;
        calls += summary.calls;
    }
    println!("emulated {name}: {tests} tests passed, {calls} calls checked by them");
    Ok(())
}
