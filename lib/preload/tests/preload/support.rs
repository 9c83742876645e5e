//! The library as it ships, built once; C programs; running one under it.

pub use crate::built::run;

use crate::built::built;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The shared library as `cargo build --release -p cachewise-preload` makes it.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| shipped("cachewise-preload"))
}

/// The library that counts calls.
pub fn statistics_library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| shipped("cachewise-preload-stats"))
}

/// A folder with the plain library, and in `glibc-hwcaps` its build for x86-64-v4, as it is installed.
pub fn installed() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
    for level in ["", "x86-64-v4"] {
        let place = match level {
            "" => folder.clone(),
            level => folder.join("glibc-hwcaps").join(level),
        };
        std::fs::create_dir_all(&place).expect("a folder");
        let library = if level.is_empty() { library().to_owned() } else { built_for(level) };
        std::fs::copy(library, place.join("libcachewise_preload.so")).expect("copied");
    }
    folder
}

/// The library as `xtask install` builds it for a level.
fn built_for(level: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(level);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "-p", "cachewise-preload", "--target-dir"]).arg(&target);
    cargo.env("RUSTFLAGS", format!("-C target-cpu={level}"));
    run(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
    target.join("release/libcachewise_preload.so")
}

/// A package's library, as it ships.
fn shipped(package: &str) -> PathBuf {
    let file = format!("lib{}.so", package.replace('-', "_"));
    // A copy, since a build of the whole workspace may replace that file meanwhile.
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&file);
    std::fs::copy(built(&[package]).join(&file), &copy).expect("the library is copied");
    copy
}

/// Every call is a call, so that it reaches the library.
pub const CALLS: &[&str] = &["-O1", "-fno-builtin", "-pthread", "-ldl", "-Wl,-z,now"];

/// Compiles a program of `tests/c`.
pub fn compile(directory: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = directory.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(format!("{name}.c"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"]).args(flags);
    run(compiler.arg("-o").arg(&program).arg(source));
    program
}

/// A command under the library, with an environment that holds nothing of ours.
pub fn preloaded(program: &Path) -> Command {
    let mut command = plain(program);
    command.env("LD_PRELOAD", library());
    command
}

/// A command under the library that counts, to where `CACHEWISE_STATS` says; for `0` as [`preloaded`].
pub fn watched(program: &Path, statistics: impl AsRef<OsStr>) -> Command {
    let mut command = preloaded(program);
    if statistics.as_ref() != "0" {
        command.env("LD_PRELOAD", statistics_library());
    }
    command.env("CACHEWISE_STATS", statistics);
    command
}

/// A command without either library.
pub fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (variable, _) in std::env::vars_os() {
        let name = variable.to_string_lossy();
        if name == "LD_PRELOAD" || name.starts_with("CACHEWISE_") {
            command.env_remove(&variable);
        }
    }
    command.env("LC_ALL", "C").env("HOME", "/nonexistent").env_remove("XDG_CONFIG_HOME");
    command
}

/// Output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
