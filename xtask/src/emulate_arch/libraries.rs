//! The C library and the preload library of another architecture: built as they ship, linked into C
//! programs by a cross compiler, and run under emulation.

use super::target::{Target, cargo};
use crate::command::{output, printed, prints, root};
use anyhow::{Result, ensure};
use fs_err as fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C that the libraries' own tests compile, and what it is compiled with.
type Program = (&'static str, &'static [&'static str]);

const CONTRACT: Program = ("lib/capi/tests/c/contract.c", &["-std=c89", "-pedantic", "-O2"]);
const EXHAUSTIVE: Program =
    ("lib/preload/tests/c/exhaustive.c", &["-std=gnu11", "-O2", "-fno-builtin"]);

/// Builds both libraries, links the programs with them, runs those; how many ran.
pub fn test(target: &Target) -> Result<usize> {
    let mut ran = 0;
    // Each by itself, as `xtask install` does, so that neither has another package's features.
    for package in ["cachewise-capi", "cachewise-preload", "cachewise-preload-stats"] {
        cargo(target, &format!("build --release -p {package}"))?;
    }
    let built = root().join("target/emulate-arch").join(target.triple()).join("release");
    needs_only_libc(target, &built.join("libcachewise_c.so"))?;

    // A program finds the library by its soname.
    let soname = built.join("libcachewise.so.0.2");
    fs::copy(built.join("libcachewise_c.so"), &soname)?;
    let shared = [format!("-Wl,-rpath,{}", built.display()), soname.display().to_string()];
    let linked_statically = [built.join("libcachewise_c.a").display().to_string()];
    let run =
        |command: &mut Command, expected| prints(command.env("HOME", "/nonexistent"), expected);
    for (name, libraries) in [("shared", &shared[..]), ("static", &linked_statically)] {
        let program = compile(CONTRACT, target, &built.join(name), libraries)?;
        eprintln!("--- C program, {name} library");
        run(&mut target.emulated(&[], &program), "contract kept\n")?;
        ran += 1;
    }

    let program = compile(EXHAUSTIVE, target, &built.join("exhaustive"), &[])?;
    for library in ["libcachewise_preload", "libcachewise_preload_stats"] {
        eprintln!("--- C program under {library}");
        let preload = built.join(format!("{library}.so"));
        needs_only_libc(target, &preload)?;
        let variable = format!("LD_PRELOAD={}", preload.display());
        // The argument has the program check that the functions it calls are that file's.
        let mut preloaded = target.emulated(&["-E", &variable], &program);
        run(preloaded.arg(library), "every byte right\n")?;
        ran += 1;
    }
    Ok(ran)
}

fn compile(
    (source, flags): Program,
    target: &Target,
    into: &Path,
    libraries: &[String],
) -> Result<PathBuf> {
    let into = into.with_extension("program");
    let mut command = Command::new(target.tool("gcc"));
    command.args(["-Wall", "-Wextra", "-Werror"]).args(flags);
    command.arg("-I").arg(root().join("lib/capi/include"));
    command.arg("-o").arg(&into).arg(root().join(source)).args(libraries).arg("-ldl");
    output(&mut command)?;
    Ok(into)
}

/// That a library as it ships asks for no other library than libc.
fn needs_only_libc(target: &Target, library: &Path) -> Result<()> {
    let told = printed(Command::new(target.tool("objdump")).arg("-p").arg(library))?;
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
