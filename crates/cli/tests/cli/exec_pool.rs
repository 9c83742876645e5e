//! `exec --pool`: a program whose large blocks come from the pool, and each refusal.

use crate::support::{Folder, asked, cachewise, has, refused, said};
use std::path::{Path, PathBuf};
use std::process::Command;
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

/// The folder of the preload libraries as they ship; they are built once.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
        // One by one, so that none is built with another's features.
        for package in ["cachewise-preload", "cachewise-pool-preload"] {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--release", "-p", package, "--target-dir"]).arg(target);
            said(cargo.current_dir(env!("CARGO_MANIFEST_DIR"))).with(0);
        }
        target.join("release")
    })
}

/// The command, which finds the preload libraries.
pub fn asked_beside(arguments: &str) -> Command {
    let mut command = asked(arguments);
    command.env("CACHEWISE_LIBRARY", libraries());
    command
}

/// A program of that text, compiled in that folder.
pub fn compiled(text: &str, folder: &Folder, name: &str) -> String {
    let (source, program) = (folder.write("p.c", text), folder.path(name));
    said(Command::new("cc").args(["-O1", "-fno-builtin", "-o", &program, &source])).with(0);
    program
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

#[test]
fn a_programs_large_blocks_come_from_the_pool_that_was_asked_for() {
    let folder = Folder::new();
    let tables = compiled(PROGRAM, &folder, "tables");
    let exec = |words: &str| said(&mut asked_beside(&format!("exec {words}")));
    let [library, pool] = ["libcachewise_preload.so", "libcachewise_pool_preload.so"]
        .map(|name| libraries().join(name).display().to_string());

    let named = format!("--library {library} --pool-library {pool}");
    let told = cachewise(&format!("exec {named} --pool 64M --stats -- {tables}")).with(0);
    assert_eq!(told.out, "0, pool 67108864\n");
    assert_eq!(served(&told.err), [5], "{told:?}");
    assert!(told.err.contains("fill"), "the other library counts beside it: {told:?}");

    // Every process of the command that made a pool; the shell made none, and says nothing.
    for (form, parts) in [
        ("--pool-stats", &[(" large requests served, ", 2), (", in tables[", 2)][..]),
        ("--pool-stats=json", &[(r#"{"cachewise_pool":{"program":"tables","#, 2)]),
        (
            "--pool-stats=prometheus",
            &[
                ("# TYPE cachewise_pool_served_total counter\n", 1),
                ("cachewise_pool_served_total{program=\"tables\",pid=", 2),
            ],
        ),
    ] {
        let mut twice = asked_beside(&format!("exec --pool 64M {form} -- sh -c"));
        let told = said(twice.arg(format!("{tables}; true; {tables}"))).with(0).err;
        for (part, times) in parts {
            assert_eq!(told.matches(part).count(), *times, "{form}: {told}");
        }
        assert!(form != "--pool-stats" || served(&told) == [5, 5], "{told}");
        assert!(!told.contains("\"sh\"") && !told.contains("in sh["), "{form}: {told}");
    }
    has(&exec("--pool 64M --pool-stats -- true").err, &["no process of the command"]);
    let mut three = asked_beside("exec --pool 64M --pool-stats=json -- sh -c");
    assert_eq!(said(three.arg("exit 3")).with(3).err, "");

    let told = exec(&format!("-- {tables}"));
    assert_eq!(told.out, "0, pool none\n", "nobody asked for one");
    assert!(!told.err.contains("pool"), "{told:?}");
}

/// What the dynamic linker would wait for, or pass over: a line instead, and nothing is run.
#[test]
fn a_library_that_is_none_is_refused_before_the_program_runs() {
    let folder = Folder::new();
    let path = |name: &str| folder.path(name);
    said(Command::new("mkfifo").arg(path("pipe"))).with(0);
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
    folder.write("text", "no library\n");
    let endless = std::fs::File::create(path("large")).expect("made");
    endless.set_len(1 << 30).expect("a length");
    for (file, told) in [
        (path("pipe"), "found a pipe, accepted a regular file"),
        (path("socket"), "found a socket, accepted a regular file"),
        (path("."), "found a directory, accepted a regular file"),
        ("/dev/zero".to_owned(), "found a device, accepted a regular file"),
        (path("text"), "accepted a shared library"),
        (path("large"), "accepted a shared library"),
        (path("absent"), "No such file"),
    ] {
        let of_pool = "exec --library /bin/sh --pool 64M --pool-library";
        for arguments in ["exec --library", "learn --library", of_pool] {
            let option = arguments.rsplit(' ').next().expect("an option");
            let refusal = refused(&format!("{arguments} {file} -- echo run"), 1, &[option, told]);
            assert_eq!(refusal.err.lines().count(), 1, "{refusal:?}");
        }
    }
}

#[test]
fn each_wrong_pool_is_refused_before_the_program_runs() {
    for (arguments, status, told) in [
        ("--pool many", 2, "many"),
        ("--pool 0", 2, "accepted 128K"),
        ("--pool 64K", 2, "found 64K, accepted 128K"),
        ("--pool-library /x.so", 2, "--pool <SIZE>"),
        ("--pool-stats", 2, "--pool <SIZE>"),
        ("--pool 1G --pool-stats=xml", 2, "possible values: text, json"),
        ("--library /bin/sh --pool 1G --pool-library /no.so", 1, "--pool-library /no.so"),
    ] {
        has(&cachewise(&format!("exec {arguments} -- true")).with(status).err, &[told]);
    }
}
