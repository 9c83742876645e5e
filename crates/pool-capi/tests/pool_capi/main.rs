//! The pool's C interface as C programs see it: header, libraries, example.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let told = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{}\n{}", output.status, told.0, told.1);
    output
}

/// A directory with the libraries under the names they are installed by, built as they ship.
fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let target = scratch.parent().expect("target/tmp");
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--release", "-p", "cachewise-pool-capi", "--target-dir"]).arg(target);
        run(build.current_dir(package()));
        let directory = scratch.join("pool-capi");
        std::fs::create_dir_all(&directory).expect("a directory");
        for (built, name) in [
            ("libcachewise_pool_c.so", "libcachewise_pool.so"),
            ("libcachewise_pool_c.so", "libcachewise_pool.so.0"),
            ("libcachewise_pool_c.a", "libcachewise_pool.a"),
        ] {
            std::fs::copy(target.join("release").join(built), directory.join(name)).expect(name);
        }
        directory
    })
}

fn compile(into: &Path, source: &str, flags: &[&str], shared: bool) -> PathBuf {
    let program = into.join(format!("{}-{shared}", source.replace(['/', '.'], "_")));
    let mut command = Command::new("cc");
    command.args(["-Wall", "-Wextra", "-Werror", "-O2", "-std=c89", "-pedantic"]);
    command.args(flags);
    command.arg("-I").arg(package().join("include")).arg("-o").arg(&program);
    command.arg(package().join(source));
    if shared {
        let search = format!("-Wl,-rpath,{}", libraries().display());
        command.arg("-L").arg(libraries()).args(["-lcachewise_pool", &search]);
    } else {
        let libraries = libraries().join("libcachewise_pool.a");
        command.arg(libraries).args(["-lpthread", "-ldl", "-lm", "-lgcc_s"]);
    }
    run(&mut command);
    program
}

fn output(program: &Path) -> String {
    let output = run(Command::new(program).env_remove("LD_PRELOAD").env("HOME", "/nonexistent"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_contract_is_kept_and_the_example_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    for shared in [true, false] {
        let program = compile(directory.path(), "tests/c/contract.c", &[], shared);
        assert_eq!(output(&program), "contract kept\n");
        let program = compile(directory.path(), "examples/row_cache.c", &[], shared);
        let told = output(&program);
        assert!(told.ends_with("rows were zero\n"), "{told}");
    }
}

#[test]
fn a_process_whose_main_thread_leaves_ends_with_its_last_thread() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compile(directory.path(), "tests/c/leaves.c", &["-pthread"], true);
    assert_eq!(output(&program), "");
    // Without /proc, and in a namespace whose task ids are not those that /proc has.
    let nothing = ["--mount", "sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"];
    for surroundings in [&nothing[..], &["--pid", "--kill-child"]] {
        // The threads that are left would let no other signal through.
        let mut elsewhere = Command::new("timeout");
        elsewhere.args(["--signal=KILL", "60", "unshare", "--map-root-user"]);
        run(elsewhere.args(surroundings).arg(&program));
    }
}

/// With both libraries under ThreadSanitizer as well (`cargo run -p xtask -- ci thread-sanitizer`).
#[test]
fn threads_pass_blocks_on_while_one_zeroes_and_trims() {
    let directory = tempfile::tempdir().expect("a directory");
    for shared in [true, false] {
        let program = compile(directory.path(), "tests/c/threads.c", &["-pthread"], shared);
        assert_eq!(output(&program), "threads hold\n");
    }
}

/// Each reads and writes what it may, and leaves nothing that nobody can reach: handles, which are never
/// freed, were once reported as lost.
#[test]
fn under_address_sanitizer_nothing_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let flags = ["-g", "-pthread", "-fsanitize=address,undefined", "-fno-sanitize-recover"];
    let program = compile(directory.path(), "tests/c/contract.c", &flags, false);
    assert_eq!(output(&program), "contract kept\n");
    let program = compile(directory.path(), "tests/c/threads.c", &flags, false);
    assert_eq!(output(&program), "threads hold\n");
    let program = compile(directory.path(), "examples/row_cache.c", &flags, false);
    let told = output(&program);
    assert!(told.ends_with("rows were zero\n"), "{told}");
}

/// Names of functions in the header, as the compiler sees it.
fn declared() -> BTreeSet<String> {
    let mut command = Command::new("cc");
    command.args(["-E", "-P"]).arg(package().join("include/cachewise_pool.h"));
    let text = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let names = text.split('(').filter_map(|before| {
        let name = before.rsplit(|letter| !is_name(letter)).next()?;
        name.starts_with("cw_").then(|| name.to_owned())
    });
    names.collect()
}

#[test]
fn what_is_declared_is_exported_and_nothing_else() {
    let mut command = Command::new("nm");
    command.args(["-D", "--defined-only"]).arg(libraries().join("libcachewise_pool.so"));
    let text = String::from_utf8(run(&mut command).stdout).expect("UTF-8");
    let exported: BTreeSet<String> =
        text.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect();
    assert_eq!(exported, declared());
    let list = std::fs::read_to_string(package().join("../../packaging/symbols")).expect("a list");
    let (_, list) = list.split_once("\nlibcachewise_pool.so.0 cachewise\n").expect("the library");
    let listed: Vec<_> = list.lines().filter(|line| !line.starts_with('#')).collect();
    let names = listed.iter().map(|line| line.trim_start().split_once("@Base ").expect(line).0);
    assert_eq!(exported, names.map(str::to_owned).collect());
}

#[test]
fn the_header_compiles_alone_in_every_dialect() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, compiler, dialects) in [
        ("one.c", "cc", ["-std=c89", "-std=c99", "-std=c17"]),
        ("one.cpp", "c++", ["-std=c++98", "-std=c++11", "-std=c++20"]),
    ] {
        let source = directory.path().join(name);
        let text = "#include <cachewise_pool.h>\n#include <cachewise_pool.h>\n";
        std::fs::write(&source, text).expect("written");
        for dialect in dialects {
            let mut command = Command::new(compiler);
            command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", dialect]);
            run(command.arg("-I").arg(package().join("include")).arg(&source));
        }
    }
}
