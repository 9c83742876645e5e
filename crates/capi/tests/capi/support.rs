//! The libraries as they ship, built once, and what compiles against them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A directory with `libcachewise.so`, under its soname too, and `libcachewise.a`, as
/// `cargo build --release -p cachewise-capi` makes them.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let target = scratch.parent().expect("target/tmp");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--release", "-p", "cachewise-capi", "--target-dir"]).arg(target);
        run(build.current_dir(package()));
        let directory = scratch.join("capi");
        std::fs::create_dir_all(&directory).expect("a directory");
        for (built, name) in [
            ("libcachewise_c.so", "libcachewise.so"),
            ("libcachewise_c.so", "libcachewise.so.0"),
            ("libcachewise_c.a", "libcachewise.a"),
        ] {
            std::fs::copy(target.join("release").join(built), directory.join(name)).expect(name);
        }
        directory
    })
}

/// This package's directory.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// How a program gets at the library.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Linked {
    Shared,
    Static,
}

/// Compiles a C or C++ program against the header and a library.
pub fn compile(into: &Path, source: &str, flags: &[&str], linked: Linked) -> PathBuf {
    let program = into.join(format!("{}-{linked:?}", source.replace(['/', '.'], "_")));
    let mut command = Command::new(if source.ends_with(".cpp") { "c++" } else { "cc" });
    command.args(["-Wall", "-Wextra", "-Werror", "-O2"]).args(flags);
    command.arg("-I").arg(package().join("include")).arg("-o").arg(&program);
    command.arg(package().join(source));
    match linked {
        Linked::Shared => {
            let search = format!("-Wl,-rpath,{}", libraries().display());
            command.arg("-L").arg(libraries()).args(["-lcachewise", &search]);
        }
        Linked::Static => {
            command.arg(libraries().join("libcachewise.a"));
        }
    }
    run(&mut command);
    program
}

/// Runs what has to succeed.
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let told = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{}\n{}", output.status, told.0, told.1);
    output
}

/// Runs a compiled program with an environment that holds nothing of ours; its output.
pub fn output(program: &Path) -> String {
    let mut command = Command::new(program);
    for variable in ["LD_PRELOAD", "CACHEWISE_PROFILE", "CACHEWISE_QUIET", "XDG_CONFIG_HOME"] {
        command.env_remove(variable);
    }
    let output = run(command.env("HOME", "/nonexistent"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
