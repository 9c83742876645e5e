//! Terminals that are gone, disks that are full, folders that are missing: the work is done all the
//! same, and what cannot be is said in a line.

use crate::exec_pool::{compiled, library};
use crate::support::{line, program, stderr, stdout};
use std::fs::OpenOptions;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const SMALL: &str = "run copy-matrix --kernels copy0 --size 1K --residency L1 --rounds 15";

fn cachewise(arguments: &[&str]) -> Command {
    let mut command = program();
    command.args(arguments);
    command
}

fn small() -> Vec<&'static str> {
    SMALL.split(' ').collect()
}

fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

/// No file of its may become larger; that is an error of each write and no signal, as on a full disk.
fn limited(command: &mut Command, bytes: u64) -> &mut Command {
    let limit = move || {
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: `limit` is readable.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
        // SAFETY: nothing is called when it comes.
        unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: system calls alone, which a forked child may make.
    unsafe { command.pre_exec(limit) }
}

fn names(directory: &Path) -> Vec<String> {
    let all = std::fs::read_dir(directory).expect("a directory");
    all.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

/// Of each kind of message: an error, a measurement's progress and warnings, what `exec` says itself.
#[test]
fn messages_that_nobody_can_read_end_nothing() {
    let preload = library("libcachewise_preload.so");
    let counted = ["exec", "--library", &preload, "--stats", "--", "sh", "-c", "exit 7"];
    for (arguments, status) in [
        (&["exec", "--", "/nonexistent/program"][..], 127),
        (&["list", "kernels", "--op", "shred"], 2),
        (&small(), 0),
        (&counted, 7),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("opened");
        let (reader, unread) = std::io::pipe().expect("a pipe");
        drop(reader);
        for nobody in [Stdio::from(full), Stdio::from(unread)] {
            let mut command = cachewise(arguments);
            let ended = command.stderr(nobody).stdout(Stdio::null()).status().expect("it starts");
            assert_eq!(ended.code(), Some(status), "{arguments:?}: {ended}");
        }
    }
}

/// What was measured is shown, whatever cannot be written; and no part of a file is left.
#[test]
fn a_disk_that_fills_costs_the_file_and_not_the_figures() {
    let directory = tempfile::tempdir().expect("a directory");
    let sizes: Vec<_> = SMALL.replace("1K", "1K,2K,4K,8K").split(' ').map(str::to_owned).collect();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    let whole = stdout(&output(cachewise(&sizes).args(["--json", "-"])));
    // A record whose header has room, and some of its rows.
    let some = whole.lines().next().expect("a header").len() as u64 + 1500;
    let (record, full) = (directory.path().join("record"), Path::new("/dev/full"));
    for (flag, file, room) in [
        ("--json", &*record, some.max(4200)),
        ("--csv", full, 4200),
        ("--markdown", full, 4200),
        ("--html", &record, 4200),
    ] {
        let ended = output(limited(cachewise(&sizes).arg(flag).arg(file), room));
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(1), "{flag}: {said}");
        assert!(said.contains(&*file.to_string_lossy()), "{flag}: {said}");
        assert!(stdout(&ended).contains("gain here:"), "{flag}: {said}{}", stdout(&ended));
        assert_eq!(names(directory.path()), [""; 0], "{flag}");
    }
    let profile = directory.path().join("p.profile");
    let mut command = cachewise(&["tune", "--budget", "1s", "--memory", "48M", "--output"]);
    let ended = output(limited(command.arg(&profile), 4200));
    let said = stderr(&ended);
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let last = said.lines().last().expect("an error");
    assert!(last.contains("p.record.jsonl: ") && last.matches("too large").count() == 1, "{last}");
    assert!(stdout(&ended).contains("gain here:"), "{said}{}", stdout(&ended));
    assert_eq!(names(directory.path()), [""; 0]);
}

/// Before an hour of measuring, not after it; and a variable that is set is not said to be missing.
#[test]
fn no_room_and_no_place_are_told_before_anything_is_measured() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("p.profile");
    let mut command = cachewise(&["tune", "--output"]);
    let ended = output(limited(command.arg(&file), 0));
    let said = stderr(&ended);
    assert_eq!((ended.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.ends_with("cannot be written: File too large (os error 27)\n"), "{said}");
    assert_eq!(names(directory.path()), [""; 0]);
    let mut command = cachewise(&["tune"]);
    let ended = output(command.env("HOME", "relative").env("XDG_CONFIG_HOME", ""));
    assert_eq!(ended.status.code(), Some(1));
    assert!(line(&stderr(&ended)).contains("is an absolute path"), "{}", stderr(&ended));
}

/// `ssh` whose line breaks, and a tuning that was begun with `nohup` so that it does not matter.
#[test]
fn a_terminal_that_goes_away_keeps_the_rows_and_stops_nothing_that_shall_go_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("a.jsonl");
    let mut command = cachewise(&["run", "copy-matrix", "--kernels", "copy\\.sse2", "--json"]);
    command.arg(&file).args(["--rounds", "3000"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let rows = || {
        let part = std::fs::read_dir(directory.path()).expect("a directory").next();
        let part = part.and_then(|part| std::fs::read_to_string(part.ok()?.path()).ok());
        part.map_or(0, |text| text.matches("\"type\":\"row\"").count())
    };
    while rows() < 3 && child.try_wait().expect("ours").is_none() {
        std::thread::sleep(Duration::from_millis(20));
    }
    hang_up(&child);
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let read = cachewise_measure::record::read(&file).expect("a whole record");
    assert!(read.end.is_some_and(|end| end.interrupted) && read.rows.len() > 2);

    let mut command = cachewise(&["run", "roofline", "--size", "64K"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let ignored = || {
        // SAFETY: nothing is called when it comes.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: a system call alone, which a forked child may make.
    let child = unsafe { command.pre_exec(ignored) }.spawn().expect("it starts");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(20));
        hang_up(&child);
    }
    let ended = child.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), ended.status.signal()), (Some(0), None));
}

fn hang_up(child: &std::process::Child) {
    let pid = rustix::process::Pid::from_child(child);
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::HUP);
}

/// Programs run, and what they print and end with is theirs; only what has to be kept in such a folder is
/// refused, before the program runs.
#[test]
fn no_folder_for_temporary_files_is_needed_but_for_statistics() {
    let directory = tempfile::tempdir().expect("a directory");
    let ours = library("libcachewise_preload.so");
    let pool = library("libcachewise_pool_preload.so");
    let program = compiled("int main(void) { return 9; }", directory.path(), "nine");
    let missing = directory.path().join("none");
    let without = |arguments: &[&str]| {
        let mut command = cachewise(arguments);
        output(command.env("TMPDIR", &missing).env("HOME", directory.path()))
    };
    for more in [&[][..], &["--pool", "64M", "--pool-library", &pool]] {
        let words = [&["exec", "--library", &ours], more, &["--", &program]].concat();
        let ended = without(&words);
        assert_eq!((ended.status.code(), stderr(&ended)), (Some(9), String::new()));
    }
    let ended = without(&small());
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    let learned = without(&["learn", "--library", &ours, "--", &program]);
    assert_eq!((learned.status.code(), stderr(&learned)), (Some(9), String::new()));
    for words in [
        &["exec", "--stats"][..],
        &["exec", "--pool", "64M", "--pool-stats"],
        &["learn", "--prove"],
    ] {
        let ended = without(&[words, &["--library", &ours, "--", &program]].concat());
        let said = stderr(&ended);
        assert_eq!((ended.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        let option = words.last().expect("an option");
        let begin = format!("cachewise: {option}: {}: No such file", missing.display());
        let end = "(os error 2); accepted in TMPDIR: a directory that can be written";
        assert!(line(&said).starts_with(&begin) && line(&said).ends_with(end), "{said}");
    }
}

/// As in some containers and changed roots, where this test may make one.
#[test]
fn programs_run_where_there_is_no_proc() {
    let directory = tempfile::tempdir().expect("a directory");
    let ours = library("libcachewise_preload.so");
    let libraries = Path::new(&ours).parent().expect("a folder");
    let program = compiled("int main(void) { return 9; }", directory.path(), "nine");
    let without = |words: &[&str]| {
        let mut command = Command::new("unshare");
        let script = "mount -t tmpfs none /proc || exit 77; exec \"$@\"";
        command.args(["-r", "-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_cachewise")]);
        command.args(words).env("CACHEWISE_LIBRARY", libraries).env("HOME", directory.path());
        command.output()
    };
    for words in [
        &["exec", "--", &program][..],
        &["exec", "--pool", "64M", "--", &program],
        &["learn", "--", &program],
    ] {
        let Ok(ended) = without(words) else { return };
        let said = stderr(&ended);
        if ended.status.code() == Some(77) || said.starts_with("unshare: ") {
            return;
        }
        assert_eq!((ended.status.code(), &*said), (Some(9), ""), "{words:?}");
    }
}

/// A folder that is full: the status stays the program's, and the cause is no invented one.
#[test]
fn statistics_that_found_no_room_are_said_to_have_found_none() {
    let directory = tempfile::tempdir().expect("a directory");
    let ours = library("libcachewise_preload.so");
    let pool = library("libcachewise_pool_preload.so");
    let text = "#include <stdlib.h>\n#include <string.h>\n\
                int main(void) { for (int i = 0; i < 4; i++) {\n\
                char *block = malloc(4 << 20); memset(block, i, 4 << 20); free(block); } return 9; }";
    let program = compiled(text, directory.path(), "nine");
    let of_pool = ["--pool", "64M", "--pool-stats", "--pool-library", &pool];
    for (words, variable) in
        [(&["--stats"][..], "CACHEWISE_STATS="), (&of_pool, "CACHEWISE_POOL_STATS_FILE: ")]
    {
        let mut command = cachewise(&["exec", "--library", &ours]);
        command.args(words).args(["--", &program]).env("TMPDIR", directory.path());
        let ended = output(limited(&mut command, 0));
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(9), "{said}");
        assert_eq!(said.matches("arge").count(), 2, "{said}");
        assert!(said.contains(variable) && !said.contains("no process"), "{said}");
    }
}
