//! The C library and the preload library of another architecture: built as they ship, linked into C
//! programs by a cross compiler, and run under emulation.

use super::{CORE, Counts, Target, cargo};
use crate::command::{output, text};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// The C that the libraries' own tests compile, with what it prints where all is well.
struct Program {
    source: &'static str,
    flags: &'static [&'static str],
    prints: &'static str,
}

const CONTRACT: Program = Program {
    source: "crates/capi/tests/c/contract.c",
    flags: &["-std=c89", "-pedantic", "-O2"],
    prints: "contract kept\n",
};
const EXHAUSTIVE: Program = Program {
    source: "crates/preload/tests/c/exhaustive.c",
    flags: &["-std=gnu11", "-O2", "-fno-builtin"],
    prints: "every byte right\n",
};

/// Builds both libraries, links the programs with them, runs those.
pub fn test(target: &Target, root: &Path, counts: &mut Counts) -> Result<()> {
    // Each by itself, as `xtask install` does, so that neither has another package's features.
    for package in ["cachewise-capi", "cachewise-preload"] {
        cargo(target, CORE, &["build", "--release", "-p", package])?;
    }
    let built = root.join("target/emulate-arch").join(target.triple).join("release");
    let preload = built.join("libcachewise_preload.so");
    needs_only_libc(target, &built.join("libcachewise_c.so"))?;
    needs_only_libc(target, &preload)?;

    // A program finds the library by its soname.
    let soname = built.join("libcachewise.so.0");
    std::fs::copy(built.join("libcachewise_c.so"), &soname)
        .with_context(|| soname.display().to_string())?;
    let shared = [format!("-Wl,-rpath,{}", built.display()), soname.display().to_string()];
    let linked_statically = [built.join("libcachewise_c.a").display().to_string()];
    for (name, libraries) in [("shared", &shared[..]), ("static", &linked_statically)] {
        let program = CONTRACT.compile(target, root, &built.join(name), libraries)?;
        eprintln!("--- C program, {name} library");
        CONTRACT.run(&mut target.emulated(&[], &program))?;
        counts.programs += 1;
    }

    let program = EXHAUSTIVE.compile(target, root, &built.join("exhaustive"), &[])?;
    eprintln!("--- C program under the preload library");
    let variable = format!("LD_PRELOAD={}", preload.display());
    // The argument has the program check that the functions it calls are that file's.
    EXHAUSTIVE.run(target.emulated(&["-E", &variable], &program).arg("libcachewise_preload"))?;
    counts.programs += 1;
    Ok(())
}

impl Program {
    fn compile(
        &self,
        target: &Target,
        root: &Path,
        into: &Path,
        libraries: &[String],
    ) -> Result<std::path::PathBuf> {
        let into = into.with_extension("program");
        let mut command = Command::new(target.compiler);
        command.args(["-Wall", "-Wextra", "-Werror"]).args(self.flags);
        command.arg("-I").arg(root.join("crates/capi/include"));
        command.arg("-o").arg(&into).arg(root.join(self.source)).args(libraries).arg("-ldl");
        output(&mut command)?;
        Ok(into)
    }

    fn run(&self, command: &mut Command) -> Result<()> {
        let output = output(command.env("HOME", "/nonexistent"))?;
        let found = (text(&output.stdout), text(&output.stderr));
        ensure!(
            found == (self.prints.to_owned(), String::new()),
            "{}: found {found:?}, expected {:?} and no complaint",
            self.source,
            self.prints
        );
        Ok(())
    }
}

/// That a library as it ships asks for no other library than libc.
fn needs_only_libc(target: &Target, library: &Path) -> Result<()> {
    let tool = target.compiler.replace("gcc", "objdump");
    let told = text(&output(Command::new(tool).arg("-p").arg(library))?.stdout);
    let needed: Vec<_> =
        told.lines().filter_map(|line| line.trim().strip_prefix("NEEDED")).map(str::trim).collect();
    let dynamic_linker = |name: &str| name.starts_with("ld-linux") || name.starts_with("ld64.so");
    ensure!(
        needed.contains(&"libc.so.6")
            && needed.iter().all(|name| *name == "libc.so.6" || dynamic_linker(name)),
        "{} needs {needed:?}, which is more than libc",
        library.display()
    );
    Ok(())
}
