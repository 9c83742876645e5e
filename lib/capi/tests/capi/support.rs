//! The libraries as they ship, built once, and what compiles against them. The pool's tests include this.

#[path = "../../../preload/tests/preload/built.rs"]
mod built;

pub use built::run;

use built::built;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// `cachewise`, or `cachewise_pool` in the pool's tests.
fn name() -> String {
    env!("CARGO_PKG_NAME").trim_end_matches("-capi").replace('-', "_")
}

/// A directory with `libcachewise.so`, under its soname too, and `libcachewise.a`, as
/// `cargo build --release -p cachewise-capi` makes them.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let release = built(&[env!("CARGO_PKG_NAME")]);
        let directory = scratch.join(env!("CARGO_PKG_NAME"));
        std::fs::create_dir_all(&directory).expect("a directory");
        for (built, installed) in [("so", "so"), ("so", "so.0.2"), ("a", "a")] {
            let built = release.join(format!("lib{}_c.{built}", name()));
            let installed = directory.join(format!("lib{}.{installed}", name()));
            std::fs::copy(&built, installed).unwrap_or_else(|error| panic!("{built:?}: {error}"));
        }
        directory
    })
}

/// This package's directory.
pub fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Ways to link a program with the library.
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
            command.arg("-L").arg(libraries()).args([&format!("-l{}", name()), &search]);
        }
        Linked::Static => {
            command.arg(libraries().join(format!("lib{}.a", name()))).args(crate::NEEDED);
        }
    }
    run(&mut command);
    program
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

/// Compiles the header, twice since it guards itself, and what follows it, in every dialect.
pub fn the_header_compiles_alone(then: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    for (file, compiler, dialects) in [
        ("one.c", "cc", ["-std=c89", "-std=c99", "-std=c11", "-std=c17"]),
        ("one.cpp", "c++", ["-std=c++98", "-std=c++11", "-std=c++17", "-std=c++20"]),
    ] {
        let source = directory.path().join(file);
        let include = format!("#include <{}.h>\n", name());
        std::fs::write(&source, include.repeat(2) + then).expect("written");
        // As users compile their own code, whose warnings are errors in what they include, too.
        let strict = ["-Wconversion", "-Wsign-conversion", "-Wshadow", "-Wundef", "-Wcast-qual"];
        let of_cpp = ["-Wold-style-cast", "-Wzero-as-null-pointer-constant", "-Wnon-virtual-dtor"];
        for dialect in dialects {
            let mut command = Command::new(compiler);
            command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", dialect]);
            command.args(strict).args(if compiler == "c++" { &of_cpp[..] } else { &[] });
            run(command.arg("-I").arg(package().join("include")).arg(&source));
        }
    }
}

/// Every declaration of the kept interface is in the preprocessed header, word by word; of an enumeration or a
/// structure, its beginning. What is new may come behind.
pub fn the_interface_is_kept(soname: &str, header: &str) {
    let parts = |text: &str| -> Vec<String> {
        let ours = |part: &&str| part.contains("cw_");
        // At the end of each declaration: a structure has others inside.
        let (mut all, mut part, mut depth) = (Vec::new(), String::new(), 0);
        for word in text.split_inclusive([';', '{', '}']) {
            part.push_str(word);
            depth += i32::from(word.ends_with('{')) - i32::from(word.ends_with('}'));
            if depth == 0 && word.ends_with(';') {
                all.push(std::mem::take(&mut part));
            }
        }
        let plain = |part: &str| part.split_whitespace().collect::<Vec<_>>().join(" ");
        all.iter().map(String::as_str).filter(ours).map(plain).collect()
    };
    // `extern "C" {` opens a block in C++ alone; this is C.
    let now = parts(header);
    let kept = package().join("../../packaging/interface").join(soname);
    if std::env::var_os("CACHEWISE_BLESS").is_some() {
        std::fs::write(&kept, now.join("\n") + "\n").expect("written");
    }
    let before = std::fs::read_to_string(&kept).unwrap_or_else(|error| panic!("{kept:?}: {error}"));
    assert!(before.lines().count() > 10, "{before}");
    for declared in before.lines() {
        let beginning = declared.trim_end_matches([';', ' ', '}']);
        let is_kept =
            |one: &String| one == declared || declared.contains('{') && one.starts_with(beginning);
        assert!(
            now.iter().any(is_kept),
            "{soname}: found no {declared}, which programs were compiled with"
        );
    }
}
