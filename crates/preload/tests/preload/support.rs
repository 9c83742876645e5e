//! The library as it ships, built once; C programs; running one under it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The shared library as `cargo build --release -p cachewise-preload` makes it: by itself, so that
/// no other package's features are in it.
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
        let output = Command::new(env!("CARGO"))
            .args(["build", "--release", "-p", "cachewise-preload", "--target-dir"])
            .arg(target)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let built = target.join("release/libcachewise_preload.so");
        // A copy, since a build of the whole workspace may replace that file meanwhile.
        let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libcachewise_preload.so");
        std::fs::copy(&built, &copy).expect("the library is copied");
        copy
    })
}

/// Compiles a program of `tests/c`.
pub fn compile(directory: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = directory.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(format!("{name}.c"));
    let output = Command::new("cc")
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .arg("-o")
        .arg(&program)
        .arg(source)
        .output()
        .expect("a C compiler: Rust links with it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// A command under the library, with an environment that holds nothing of ours.
pub fn preloaded(program: &Path) -> Command {
    let mut command = plain(program);
    command.env("LD_PRELOAD", library());
    command
}

/// The same without it.
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

/// A profile with two ways: for data that nobody reads from 256 KiB on, and by itself from 8 MiB
/// on. What is computed from the caches has them only for sizes that depend on the machine.
pub fn two_ways() -> &'static Path {
    static WRITTEN: OnceLock<PathBuf> = OnceLock::new();
    WRITTEN.get_or_init(|| {
        let cpu = cachewise::cpu::Signature::detect();
        let mut body = format!("cachewise-profile 1\ncpu {cpu}\ncaches 32768 1048576 16777216\n");
        for operation in ["copy", "move", "fill", "zero"] {
            for (hint, around) in
                [("unknown", 8_u32 << 20), ("soon", 8 << 20), ("never", 256 << 10)]
            {
                let last = around - 1;
                body += &format!("decide {operation} {hint} 256 {last} {operation}.sse2\n");
                body += &format!("decide {operation} {hint} {around} max {operation}.sse2.nt\n");
            }
        }
        let sum = cachewise::profile::fnv1a64(body.as_bytes());
        let end = format!("end {} fnv1a64:{sum:016x}\n", body.lines().count());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("two-ways.profile");
        std::fs::write(&path, body + &end).expect("written");
        path
    })
}

/// A command under the library and that profile.
pub fn preloaded_two_ways(program: &Path) -> Command {
    let mut command = preloaded(program);
    command.env("CACHEWISE_PROFILE", two_ways());
    command
}

/// Runs a command that has to succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}\n{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

/// Output as text.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
