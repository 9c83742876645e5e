//! `exec`: what programs get, and each refusal.

use crate::support::{Folder, asked, cachewise, has, refused, said};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The folder of the preload library as it ships; it is built once.
pub fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args([
                "build",
                "--release",
                "-p",
                "cachewise-preload",
                "-p",
                "cachewise-preload-stats",
                "--target-dir",
            ])
            .arg(target);
        said(cargo.current_dir(env!("CARGO_MANIFEST_DIR"))).with(0);
        target.join("release")
    })
}

/// The command, which finds the preload library.
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
        let refusal =
            refused(&format!("exec --library {file} -- echo run"), 1, &["--library", told]);
        assert_eq!(refusal.err.lines().count(), 1, "{refusal:?}");
    }
}

/// The pool under unmodified programs left: a line says what to use, and nothing is run.
#[test]
fn a_pool_under_a_program_is_answered_by_what_takes_its_place() {
    for arguments in ["--pool 1G --", "--pool=many", "--pool -1"] {
        let refusal = cachewise(&format!("exec {arguments} echo run")).with(2);
        assert_eq!(refusal.out, "");
        has(refusal.line(), &["GLIBC_TUNABLES=glibc.malloc.mmap_max=0:", "cachewise advise"]);
    }
}
