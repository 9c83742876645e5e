//! `exec --pool`: a program whose large blocks come from the pool, and each refusal.

use crate::support::{program, stderr, text};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    size_t n = 4 << 20, sum = 0;
    for (int i = 0; i < 5; i++) {
        unsigned char *table = calloc(1, n);
        for (size_t at = 0; at < n; at++) sum += table[at];
        memset(table, 7, n);
        free(table);
    }
    const char *pool = getenv("CACHEWISE_POOL");
    printf("%zu, pool %s\n", sum, pool ? pool : "none");
}
"#;

/// A preload library as it ships; all are built once.
pub fn library(name: &str) -> String {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let folder = BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
        // One by one, so that none is built with another's features.
        for package in ["cachewise-preload", "cachewise-pool-preload"] {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--release", "-p", package, "--target-dir"]).arg(target);
            let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output();
            let output = output.expect("cargo runs");
            assert!(output.status.success(), "{}", stderr(&output));
        }
        target.join("release")
    });
    folder.join(name).to_string_lossy().into_owned()
}

/// A program of that text, compiled in that folder.
pub fn compiled(text: &str, folder: &Path, name: &str) -> String {
    let (source, program) = (folder.join("p.c"), folder.join(name));
    std::fs::write(&source, text).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-fno-builtin", "-o"]).arg(&program).arg(&source);
    let output = compiler.output().expect("a C compiler");
    assert!(output.status.success(), "{}", stderr(&output));
    program.to_string_lossy().into_owned()
}

/// Of each process that says so: the large requests that were served, and those that found another thread in
/// the pool, which is the one that zeroes what was freed.
fn served(told: &str) -> Vec<u64> {
    let number = |text: &str| text.split_once(' ').and_then(|(number, _)| number.parse().ok());
    let lines = told.lines().filter_map(|line| line.split_once("cachewise: pool: "));
    lines
        .map(|(_, line)| {
            let served: u64 = number(line).expect("a number");
            let busy = line.split_once(": another thread was in it");
            let busy = busy.and_then(|(before, _)| before.rsplit(['(', ' ']).next()?.parse().ok());
            assert!(served > 0, "{line}");
            served + busy.unwrap_or(0)
        })
        .collect()
}

fn exec(arguments: &[&str]) -> Output {
    program().arg("exec").args(arguments).output().expect("the program starts")
}

#[test]
fn a_programs_large_blocks_come_from_the_pool_that_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(PROGRAM, folder.path(), "tables");
    let [library, pool] = ["libcachewise_preload.so", "libcachewise_pool_preload.so"].map(library);

    let with = ["--library", &library, "--pool-library", &pool, "--pool", "64M", "--stats", "--"];
    let output = exec(&[with.as_slice(), &[&program]].concat());
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    assert_eq!(text(&output.stdout), "0, pool 67108864\n");
    assert_eq!(served(&told), [5], "{told}");
    assert!(told.contains("fill"), "the other library counts beside it: {told}");

    // Every process of the command that made a pool; the shell made none, and says nothing.
    let with = ["--library", &library, "--pool-library", &pool, "--pool", "64M"];
    let two = format!("{program}; true; {program}");
    for (form, what, times) in [
        ("--pool-stats", " large requests served, ", 2),
        ("--pool-stats", ", in tables[", 2),
        ("--pool-stats=json", r#"{"cachewise_pool":{"program":"tables","#, 2),
        ("--pool-stats=prometheus", "# TYPE cachewise_pool_served_total counter\n", 1),
        ("--pool-stats=prometheus", "cachewise_pool_served_total{program=\"tables\",pid=", 2),
    ] {
        let output = exec(&[with.as_slice(), &[form, "--", "sh", "-c", &two]].concat());
        let told = text(&output.stderr);
        assert!(output.status.success(), "{told}");
        assert_eq!(told.matches(what).count(), times, "{form}: {told}");
        assert!(form != "--pool-stats" || served(&told) == [5, 5], "{told}");
        assert!(!told.contains("\"sh\"") && !told.contains("in sh["), "{form}: {told}");
    }
    let output = exec(&[with.as_slice(), &["--pool-stats", "--", "true"]].concat());
    assert!(text(&output.stderr).contains("no process of the command"), "{output:?}");
    let output =
        exec(&[with.as_slice(), &["--pool-stats=json", "--", "sh", "-c", "exit 3"]].concat());
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(3), String::new()));

    let output = exec(&["--library", &library, "--", &program]);
    assert_eq!(text(&output.stdout), "0, pool none\n", "nobody asked for one");
    assert!(!text(&output.stderr).contains("pool"), "{}", text(&output.stderr));
}

/// What the dynamic linker would wait for, or pass over: a line instead, and nothing is run.
#[test]
fn a_library_that_is_none_is_refused_before_the_program_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    assert!(Command::new("mkfifo").arg(path("pipe")).status().expect("mkfifo").success());
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
    std::fs::write(path("text"), "no library\n").expect("written");
    let endless = std::fs::File::create(path("large")).expect("made");
    endless.set_len(1 << 30).expect("a length");
    let of_pool = ["exec", "--library", "/bin/sh", "--pool", "64M", "--pool-library"];
    for (file, told) in [
        (path("pipe"), "found a pipe, accepted a regular file"),
        (path("socket"), "found a socket, accepted a regular file"),
        (path("."), "found a directory, accepted a regular file"),
        ("/dev/zero".to_owned(), "found a device, accepted a regular file"),
        (path("text"), "accepted a shared library"),
        (path("large"), "accepted a shared library"),
        (path("absent"), "No such file"),
    ] {
        let file = file.as_str();
        for arguments in [&["exec", "--library"][..], &["learn", "--library"], &of_pool] {
            let option = arguments[arguments.len() - 1];
            let output = program().args(arguments).args([file, "--", "echo", "run"]).output();
            let output = output.expect("the program starts");
            let error = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
            assert!(output.stdout.is_empty() && error.lines().count() == 1, "{error}");
            assert!(error.contains(option) && error.contains(told), "{arguments:?}: {error}");
        }
    }
}

#[test]
fn each_wrong_pool_is_refused_before_the_program_runs() {
    let missing = "--library /bin/sh --pool 1G --pool-library /nowhere.so -- true".split(' ');
    let missing: Vec<&str> = missing.collect();
    for (arguments, status, told) in [
        (&["--pool", "many", "--", "true"] as &[&str], 2, "many"),
        (&["--pool", "0", "--", "true"], 2, "accepted 128K"),
        (&["--pool", "64K", "--", "true"], 2, "found 64K, accepted 128K"),
        (&["--pool-library", "/x.so", "--", "true"], 2, "--pool <SIZE>"),
        (&["--pool-stats", "--", "true"], 2, "--pool <SIZE>"),
        (&["--pool", "1G", "--pool-stats=xml", "--", "true"], 2, "possible values: text, json"),
        (&missing, 1, "--pool-library /nowhere.so"),
    ] {
        let output = exec(arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
        assert!(error.contains(told), "{arguments:?}: {error}");
    }
}
