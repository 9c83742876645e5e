//! Files that the command reads and writes: what is refused before anything runs, whom they belong to, and strings that
//! others chose.

use crate::support::{Folder, asked, cachewise, piped, program, root, said, signal, text};
use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A record that is kept here.
const RECORD: &str = "record/2026-11-28-advise-columns-zen1-guest.jsonl.gz";

fn fifo(path: &str) {
    let path = CString::new(path).expect("a path");
    // SAFETY: a path that ends in NUL.
    assert_eq!(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }, 0);
}

/// Runs it, which may wait for nothing.
fn soon(mut command: Command) -> (Option<i32>, String) {
    let begun = Instant::now();
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    while child.try_wait().expect("ours").is_none() {
        if begun.elapsed() > Duration::from_secs(30) {
            child.kill().expect("ours");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("it ended");
    (output.status.code(), text(&output.stderr))
}

/// Outputs that are an input, another output, the program or something that is no file, and inputs that have no end: each
/// refused in a line that names it, before the program has run and with all files as they were.
#[test]
fn files_that_cannot_be_meant_are_refused_before_anything_runs() {
    let folder = Folder::new();
    let prog = folder.write("prog", "#!/bin/sh\ntouch \"$0.ran\"\n");
    fs::set_permissions(&prog, Permissions::from_mode(0o755)).expect("its own");
    for name in ["in", "other"] {
        folder.write(name, "precious\n");
    }
    fs::hard_link(folder.path("in"), folder.path("link")).expect("linked");
    symlink(folder.path("in"), folder.path("soft")).expect("linked");
    fs::copy(root().join(RECORD), folder.path("record")).expect("a record");
    fs::create_dir(folder.path("dir")).expect("made");
    fifo(&folder.path("pipe"));
    let _socket = UnixListener::bind(folder.path("socket")).expect("bound");
    let before = folder.names();
    for (words, named) in [
        ("advise --json F/new --html F/new -- F/prog", "new"),
        ("advise --json F/in --html F/link -- F/prog", "link"),
        ("advise --json F/prog -- F/prog", "prog"),
        ("advise --json F/in --input F/in -- F/prog", "in"),
        ("advise --json F/soft --input F/in -- F/prog", "soft"),
        ("advise --json F/in --compare F/in -- F/prog", "in"),
        ("advise --json F/dir -- F/prog", "dir"),
        ("advise --json F/socket -- F/prog", "socket"),
        ("advise --json F/pipe -- F/prog", "pipe"),
        ("advise --json F/none/x -- F/prog", "none/x"),
        ("advise --input F/pipe -- F/prog", "pipe"),
        ("advise --input /dev/zero -- F/prog", "/dev/zero"),
        ("advise --input F/dir -- F/prog", "dir"),
        ("advise --compare /dev/zero -- F/prog", "/dev/zero"),
        ("advise --compare F/pipe -- F/prog", "pipe"),
        ("report F/record -o F/record", "record"),
        ("report F/record --csv F/pipe", "pipe"),
        ("compare F/record F/in --csv F/in", "in"),
        ("run copy-matrix --csv F/other --markdown F/other", "other"),
        ("run copy-matrix --json F/prog", "prog"),
    ] {
        let words = words.replace("F/", &folder.path(""));
        let (status, told) = soon(asked(&words));
        assert!(matches!(status, Some(1 | 2)), "{words}: {status:?} {told}");
        assert!(told.contains(&folder.path(named)) || told.contains(named), "{words}: {told}");
        assert_eq!(folder.names(), before, "{words}");
        assert_eq!(folder.read("in") + &folder.read("other"), "precious\nprecious\n", "{words}");
    }
}

/// A reader that does not read is waited for until the first signal.
#[test]
fn a_pipe_that_nobody_reads_is_left_at_the_first_signal() {
    let folder = Folder::new();
    let pipe = folder.path("pipe");
    fifo(&pipe);
    let reader = fs::File::options().read(true).write(true).open(&pipe).expect("opened");
    let small = "run copy-matrix --kernels copy0 --size 1K --residency L1 --rounds 15 --html";
    let mut child = piped(asked(&format!("{small} {pipe}")));
    let begun = Instant::now();
    while rustix::io::ioctl_fionread(&reader).expect("a pipe") == 0 {
        assert!(child.try_wait().expect("ours").is_none(), "it does not wait");
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(&child, rustix::process::Signal::INT);
    while child.try_wait().expect("ours").is_none() {
        assert!(begun.elapsed() < Duration::from_secs(120), "it waits on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_file_keeps_its_mode_and_owner_and_a_new_one_is_its_owners_alone() {
    let folder = Folder::new();
    let mode = |name: &str| fs::metadata(folder.path(name)).expect(name).mode() & 0o777;
    let page = |name: &str| {
        let words = format!("umask 0; exec \"$0\" report {RECORD} --csv {}", folder.path(name));
        let mut shell = Command::new("sh");
        shell.args(["-c", &words]).arg(program().get_program()).current_dir(root());
        said(&mut shell).with(0);
    };
    page("new");
    assert_eq!(mode("new"), 0o600);
    for own in [0o640, 0o444, 0o600] {
        folder.write("old", "old");
        fs::set_permissions(folder.path("old"), Permissions::from_mode(own)).expect("its own");
        page("old");
        assert_eq!(mode("old"), own);
        fs::remove_file(folder.path("old")).expect("it is there");
    }
    // A link's target is another file: it stays, and gives no permissions.
    folder.write("target", "precious");
    symlink(folder.path("target"), folder.path("soft")).expect("linked");
    page("soft");
    assert_eq!((folder.read("target").as_str(), mode("soft")), ("precious", 0o600));
    if rustix::process::geteuid().is_root() {
        folder.write("other", "old");
        std::os::unix::fs::chown(folder.path("other"), Some(65534), Some(65534)).expect("root's");
        page("other");
        assert_eq!(fs::metadata(folder.path("other")).expect("there").uid(), 65534);
    }
}

/// Output of a program that is measured: in files of its user's alone, in a folder of its own, whatever the umask.
#[test]
fn what_a_program_prints_is_private() {
    let folder = Folder::new();
    let script = "f=$(readlink /proc/$$/fd/1); stat -c %a $f \"${f%/*}\" >> $0; find \"${f%/*}\" -perm /066 >> $0";
    let seen = folder.write("seen", "");
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 0; exec \"$0\" \"$@\""]).arg(program().get_program());
    shell.args("advise --rounds 6 --only X --also X=1 -- sh -c".split(' ')).args([script, &seen]);
    said(&mut shell);
    let seen = folder.read("seen");
    let modes: Vec<&str> = seen.lines().collect();
    assert!(modes.len() >= 6 && modes.chunks(2).all(|pair| pair == ["600", "700"]), "{seen}");
}

#[test]
fn names_that_others_chose_stay_in_their_line() {
    let folder = Folder::new();
    let name = folder.path("n\new\x1b[31mred");
    let told = said(program().arg("report").arg(Path::new(&name))).with(1);
    assert!(told.err.lines().count() == 1 && !told.err.contains('\x1b'), "{told:?}");
    let bytes = std::ffi::OsStr::from_bytes(b"\xff\xfe\x07");
    let told = said(program().arg("report").arg(bytes)).with(1);
    assert!(told.err.lines().count() == 1 && !told.err.contains('\x07'), "{told:?}");
}

#[test]
fn a_small_stack_is_enough() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -s 64; exec \"$0\" list kernels"]).arg(program().get_program());
    let told = said(&mut shell).with(0);
    assert_eq!(told.out, cachewise("list kernels").with(0).out);
}
