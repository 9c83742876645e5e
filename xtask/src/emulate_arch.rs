//! Tests of kernels and library on emulated Arm and POWER CPUs, for machines that are neither.
//!
//! QEMU runs single programs of another architecture, and Debian's cross compilers link them with Rust's library for it
//! (`rustup target add`). Emulation proves bytes, never speed: no time from it is kept.

use crate::command::{Lacking, accepted, built, cargo, number_before, output, printed, root, text};
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
    before_relocation(target)?;
    println!("emulated {name}: {tests} tests passed, {calls} calls checked by them");
    Ok(())
}

/// The preload library in a resolver that copies, fills and compares before the library is relocated, and in copies that
/// overlap.
fn before_relocation(target: &Target) -> Result<()> {
    let (name, triple) = (target.name, format!("{}-unknown-linux-gnu", target.name));
    let compiler = format!("{name}-linux-gnu-gcc");
    let mut build =
        cargo(&format!("build --release -p cachewise-preload --target {triple} --target-dir"));
    build.arg(root().join("target/emulate-arch")).current_dir(root());
    let linker = format!("CARGO_TARGET_{}_LINKER", triple.to_uppercase().replace('-', "_"));
    let library = built(build.env(linker, &compiler), Some(".so"))?;
    let library = library.get("cachewise_preload").context("cargo built no preload library")?;
    let folder = root().join("target/emulate-arch").join(name);
    std::fs::create_dir_all(&folder)?;
    for parts in [
        "-shared -DCHOSEN -o chosen.so",
        "-shared -DREFERS -o refers.so chosen.so",
        "-DASKS -o asks refers.so chosen.so",
    ] {
        let mut link = Command::new(&compiler);
        link.args(["-O1", "-fPIC", "-fno-builtin", "-Wl,-z,now", "-Wl,-rpath,."]);
        link.arg(root().join("lib/preload/tests/c/resolver.c")).args(parts.split(' '));
        output(link.current_dir(&folder))?;
    }
    let mut command = Command::new(target.emulator);
    command.arg("-L").arg(format!("/usr/{name}-linux-gnu")).arg("-E");
    command.arg(format!("LD_PRELOAD={}", library.display())).arg("./asks").current_dir(&folder);
    let told = printed(&mut command)?;
    ensure!(told.trim() == "42", "a call before relocation: expected 42, found {told}");
    Ok(())
}
