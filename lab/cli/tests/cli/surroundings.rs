//! Terminals that are gone, disks that are full, folders that are missing: the work is done all the
//! same, and what cannot be is said in a line.

use crate::exec::{asked_beside, compiled, libraries, limited};
use crate::support::{Folder, asked, has, ok, refused, said, signal};
use rustix::process::Signal;
use std::fs::{self, OpenOptions};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const SMALL: &str = "run copy-matrix --kernels copy0 --size 1K --residency L1 --rounds 15";

/// Covers each kind of message: an error, a measurement's progress and warnings, what `exec` says itself. No folder for
/// temporary files is needed.
#[test]
fn messages_that_nobody_can_read_end_nothing() {
    let folder = Folder::new();
    let nine = compiled(NINE, &folder, "nine");
    let counted = format!("exec --stats -- {nine}");
    for (arguments, status) in [
        ("exec -- /nonexistent/program", 127),
        ("list kernels --op shred", 2),
        (SMALL, 0),
        (&counted, 9),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("opened");
        let (reader, unread) = std::io::pipe().expect("a pipe");
        drop(reader);
        for nobody in [Stdio::from(full), Stdio::from(unread)] {
            let mut asked = asked_beside(arguments);
            asked.env("TMPDIR", folder.path("none"));
            let ended = asked.stderr(nobody).stdout(Stdio::null()).status();
            assert_eq!(ended.expect("it starts").code(), Some(status), "{arguments}");
        }
    }
}

/// Checks that measured figures are shown when a file cannot be written; and no part of a file is left.
#[test]
#[ignore = "long: CI runs it, by --include-ignored"]
fn a_disk_that_fills_costs_the_file_and_not_the_figures() {
    let folder = Folder::new();
    let sizes = SMALL.replace("1K", "1K,2K,4K,8K");
    let whole = ok(&format!("{sizes} --json -"));
    // A record whose header has room, and some of its rows.
    let some = whole.lines().next().expect("a header").len() as u64 + 1500;
    let record = folder.path("record");
    for (flag, file, room) in [
        ("--json", &*record, some.max(4200)),
        ("--csv", "/dev/full", 4200),
        ("--markdown", "/dev/full", 4200),
        ("--html", &record, 4200),
    ] {
        let ended =
            said(limited(&mut asked(&format!("{sizes} {flag} {file}")), room, libc::SIG_IGN))
                .with(1);
        has(&ended.err, &[file]);
        has(&ended.out, &["gain here:"]);
        assert_eq!(folder.names(), [""; 0], "{flag}");
    }
    let profile = folder.path("p.profile");
    let mut tune = asked(&format!("tune --budget 1s --memory 48M --output {profile}"));
    let ended = said(limited(&mut tune, 4200, libc::SIG_IGN)).with(1);
    let last = ended.err.lines().last().expect("an error");
    assert!(last.contains("p.record.jsonl: ") && last.matches("too large").count() == 1, "{last}");
    has(&ended.out, &["gain here:"]);
    assert_eq!(folder.names(), [""; 0]);
}

/// Before an hour of measuring, not after it; and a variable that is set is not said to be missing.
#[test]
fn no_room_and_no_place_are_told_before_anything_is_measured() {
    let folder = Folder::new();
    let mut tune = asked(&format!("tune --output {}", folder.path("p.profile")));
    let ended = said(limited(&mut tune, 0, libc::SIG_IGN)).with(1);
    let end = "cannot be written: File too large (os error 27)\n";
    assert!(ended.err.ends_with(end) && ended.err.lines().count() == 1, "{ended:?}");
    assert_eq!(folder.names(), [""; 0]);
    let ended = said(asked("tune").env("HOME", "relative").env("XDG_CONFIG_HOME", "")).with(1);
    has(ended.line(), &["is an absolute path"]);
    // A record's header.
    refused(&format!("{SMALL} --json /dev/full"), 1, &["space"]);
    // A profile and its record are read again, and replaced by the next tuning: regular files.
    for output in ["--output /dev/full", "--record /dev/full", "--output -"] {
        refused(
            &format!("tune --quick {output}"),
            1,
            &["expected a file name, found standard output, a device or a pipe"],
        );
    }
    let device = Path::new("/dev/full").metadata();
    assert!(device.is_ok_and(|metadata| !metadata.is_file()), "the device was replaced");
}

/// A tuning that was begun with `nohup`, so that a line that breaks does not matter.
#[test]
fn a_terminal_that_goes_away_stops_nothing_that_shall_go_on() {
    let mut run = asked("run roofline --size 64K --kernels .*\\.sse2");
    run.stdout(Stdio::null()).stderr(Stdio::null());
    let ignored = || {
        // SAFETY: nothing is called when it comes.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: a system call alone, which a forked child may make.
    let mut child = unsafe { run.pre_exec(ignored) }.spawn().expect("it starts");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(20));
        signal(&child, Signal::HUP);
    }
    let ended = child.wait().expect("it ends");
    assert_eq!((ended.code(), ended.signal()), (Some(0), None));
}

const NINE: &str = "int main(void) { return 9; }";

/// Surroundings of some containers and changed roots.
#[test]
fn programs_run_where_there_is_no_proc() {
    let folder = Folder::new();
    let nine = compiled(NINE, &folder, "nine");
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs none /proc && exec \"$@\"";
    command.args(["-r", "-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_cachewise")]);
    command.args(["exec", "--", &nine]);
    command.env("CACHEWISE_LIBRARY", libraries()).env("HOME", folder.path(""));
    let ended = said(&mut command);
    if ["unshare: ", "mount: "].iter().any(|who| ended.err.starts_with(who)) {
        eprintln!("no /proc: SKIPPED, {}", ended.err.trim());
        return;
    }
    assert_eq!(ended.with(9).err, "");
}

/// Statistics are kept in memory: where no file may grow, and none be made, they are printed as ever.
#[test]
fn statistics_need_no_room_for_files() {
    let folder = Folder::new();
    let text = "#include <stdlib.h>\n#include <string.h>\n\
                int main(void) { for (int i = 0; i < 4; i++) {\n\
                char *block = malloc(4 << 20); memset(block, i, 4 << 20); free(block); } return 9; }";
    let nine = compiled(text, &folder, "nine");
    let mut exec = asked_beside(&format!("exec --stats -- {nine}"));
    let ended = said(limited(exec.env("TMPDIR", folder.path("")), 0, libc::SIG_IGN)).with(9);
    assert!(ended.err.contains("fill               all              3"), "{ended:?}");
    assert!(!ended.err.contains("arge"), "{ended:?}");
}

/// A file that may not grow is an error in a line, though the signal for it has its default, which ends a process; a
/// program that is started has that default again, or ignores it as before.
#[test]
fn a_file_that_may_not_grow_is_an_error_and_no_end_without_a_word() {
    let folder = Folder::new();
    for arguments in ["list kernels", "list experiments", "completions bash", SMALL] {
        let mut asked = asked(arguments);
        limited(&mut asked, 100, libc::SIG_DFL);
        let out = fs::File::create(folder.path("out")).expect("made");
        let ended = asked.stdout(out).stderr(Stdio::piped()).output().expect("it starts");
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{arguments}: {ended:?}");
        let last = told.lines().last().expect("a line");
        has(last, &["cachewise: ", "File too large"]);
    }
    for (action, status) in [(libc::SIG_DFL, None), (libc::SIG_IGN, Some(9))] {
        let mut exec = asked_beside("exec -- sh -c");
        exec.arg("kill -XFSZ $$; exit 9");
        let set = move || {
            // SAFETY: nothing is called when it comes.
            unsafe { libc::signal(libc::SIGXFSZ, action) };
            Ok(())
        };
        // SAFETY: a system call alone, which a forked child may make.
        let ended = unsafe { exec.pre_exec(set) }.status().expect("it starts");
        assert_eq!(ended.code(), status, "{ended:?}");
    }
}

pub const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
pub const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_HAS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
pub const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// A step of a filter of system calls: the number of the call is at 0, its arguments from 16 on.
pub fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// A step that refuses the call with that number of an error.
pub fn error(number: i32) -> libc::sock_filter {
    step(ANSWER, 0, 0, libc::SECCOMP_RET_ERRNO | number as u32)
}

/// Has the system refuse every thread of a program, and of what it starts, as a full `ulimit -u` does: a filter of system
/// calls, since no limit holds for root.
fn without_threads(command: &mut Command) -> &mut Command {
    let steps = [
        step(LOAD, 0, 0, 0),
        step(IF_EQUAL, 4, 0, libc::SYS_clone3 as u32),
        step(IF_EQUAL, 0, 4, libc::SYS_clone as u32),
        step(LOAD, 0, 0, 16),
        step(IF_HAS, 0, 2, libc::CLONE_THREAD as u32),
        error(libc::EAGAIN),
        error(libc::ENOSYS),
        step(ANSWER, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    filtered(command, steps)
}

/// Has a command begin behind a filter.
pub fn filtered<const N: usize>(
    command: &mut Command,
    steps: [libc::sock_filter; N],
) -> &mut Command {
    let filter = move || {
        let mut steps = steps;
        let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        // SAFETY: numbers alone.
        unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        // SAFETY: the program and its steps are readable.
        match unsafe { libc::prctl(libc::PR_SET_SECCOMP, 2, &raw const program) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: system calls alone, which a forked child may make.
    unsafe { command.pre_exec(filter) }
}

/// Checks all that starts threads: a line that names the limits and a status of ours, or the work without them; nothing
/// panics, nothing is left running.
#[test]
fn a_limit_of_threads_is_told_in_a_line() {
    let folder = Folder::new();
    let ended = said(without_threads(&mut asked("run page-fault --quick"))).with(1);
    let last = ended.err.lines().last().expect("a line");
    has(last, &["no further thread: ", "ulimit -u", "pids.max"]);
    assert!(!ended.err.contains("panicked"), "{ended:?}");
    let nine = compiled(NINE, &folder, "nine");
    for arguments in ["exec --", "exec --stats --"] {
        let mut exec = asked_beside(&format!("{arguments} {nine}"));
        let ended = said(without_threads(exec.env("HOME", folder.path("")))).with(9);
        assert!(!ended.err.contains("panicked"), "{ended:?}");
    }
    // Children that were there before have advise work in a child, whose signals a thread passes on.
    let mut shell = Command::new("sh");
    let script = "sleep 30 & kept=$!; trap 'kill $kept' EXIT; exec 3>&-; (exec \"$0\" advise --budget 1s -- true)";
    shell.args(["-c", script, env!("CARGO_BIN_EXE_cachewise")]).env("HOME", folder.path(""));
    let ended = said(without_threads(&mut shell));
    assert!(!ended.err.contains("panicked"), "{ended:?}");
}
