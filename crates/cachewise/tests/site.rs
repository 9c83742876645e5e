//! Named sites: bytes stay right whatever is tried, what is learned is read, saved and followed,
//! and what cannot be used is told. Which way is found better is not asked: that depends on the
//! machine.
//!
//! The children are this very test binary, run with one of the `child_` tests, which do nothing in
//! an ordinary run: a process reads its section once.
#![cfg(all(feature = "std", target_os = "linux"))]

use cachewise::{Site, SiteOutcome, site};
use cachewise_kernels::Operation;
use cachewise_learn::section::{Section, write_end};
use std::os::unix::thread::JoinHandleExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

const SIZE: usize = 24 << 20;

fn child(test: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env("CACHEWISE_TEST_CHILD", "1").env("XDG_CONFIG_HOME", "/nonexistent");
    command.env("CACHEWISE_PROGRAM", file);
    for variable in ["CACHEWISE_PROFILE", "CACHEWISE_QUIET", "CACHEWISE_LEARN"] {
        command.env_remove(variable);
    }
    command
}

fn is_child() -> bool {
    std::env::var_os("CACHEWISE_TEST_CHILD").is_some()
}

/// What a child that must succeed wrote to stderr.
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().expect("the child runs");
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success() && out.contains("1 passed"), "{status}\n{out}\n{err}");
    err.into_owned()
}

/// Name, operation, octave and calls of each site.
fn saved(file: &Path) -> Vec<(String, &'static str, u32, u64)> {
    let bytes = std::fs::read(file).expect("a section was saved");
    let section = Section::parse(&bytes).expect("a section");
    let mut numbers: Vec<_> = section.modules().map(|module| module.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), section.modules().count(), "a number for each name");
    let name = |number| {
        let module = section.modules().find(|module| module.number == number).expect("a module");
        assert_eq!(module.id, "site");
        module.path.to_owned()
    };
    let mut sites: Vec<_> = section
        .sites()
        .map(|site| (name(site.module), site.operation.name(), site.octave, site.left.calls))
        .collect();
    sites.sort();
    sites
}

fn pattern(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + (i >> 12)) as u8).collect()
}

/// Every operation, every byte looked at; a byte at each end is not ours.
fn all_operations(site: &Site, n: usize, source: &[u8], target: &mut [u8]) {
    let target = &mut target[..n + 2];
    target.fill(0xEE);
    site.copy(&mut target[1..=n], &source[..n]);
    assert!(target[1..=n] == source[..n] && (target[0], target[n + 1]) == (0xEE, 0xEE), "copy {n}");
    if n > 0 {
        site.copy_within(&mut target[1..=n], 1..n, 0);
        assert!(target[1..n] == source[1..n] && target[n] == source[n - 1], "move {n}");
    }
    site.fill(&mut target[1..=n], 0x5A);
    assert!(target[1..=n].iter().all(|byte| *byte == 0x5A), "fill {n}");
    site.zero(&mut target[1..=n]);
    assert!(target[1..=n].iter().all(|byte| *byte == 0), "zero {n}");
    assert_eq!((target[0], target[n + 1]), (0xEE, 0xEE), "{n}");
}

#[test]
fn child_all_operations() {
    if !is_child() {
        return;
    }
    let (source, mut target) = (pattern(SIZE), vec![0; SIZE + 2]);
    let site = site!("all operations");
    for n in [0, 1, 64, 129, 4096, 65_535] {
        all_operations(site, n, &source, &mut target);
        for operation in cachewise::profile::OPERATIONS {
            assert!(site.state(operation, n).is_none(), "{n} bytes are nobody's business");
        }
    }
    for n in [65_536, (1 << 20) + 13, SIZE] {
        all_operations(site, n, &source, &mut target);
    }
    for _ in 0..60 {
        all_operations(site, SIZE, &source, &mut target);
    }
    let all = [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero];
    for operation in all {
        let state = site.state(operation, SIZE).expect("61 calls");
        assert_eq!(state.calls, 61);
        assert!((1..=61).contains(&state.tried), "{state:?}");
        assert!(state.temporal_ns > 0.0 && state.non_temporal_ns > 0.0, "{state:?}");
    }
    assert!(site.state(Operation::Compare, SIZE).is_none());
    assert_eq!(site.name(), "all operations");
    cachewise::save_sites().expect("saved");
}

#[test]
fn every_operation_is_tried_and_right_and_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("p.program");
    let told = run(child("child_all_operations", &file).env("CACHEWISE_LEARN", "trial"));
    assert_eq!(told, "");
    let of_octave: Vec<_> =
        saved(&file).into_iter().filter(|(.., octave, _)| *octave == 24).collect();
    let name = || "all operations".to_owned();
    let expected = ["copy", "fill", "move", "zero"].map(|operation| (name(), operation, 24, 61));
    assert_eq!(of_octave, expected);
    let left = std::fs::read_dir(directory.path()).expect("listed").count();
    assert_eq!(left, 2, "the section and its lock");
}

/// So many copies at a site whose name the parent chose.
#[test]
fn child_copies() {
    if !is_child() {
        return;
    }
    static NAMED: [Site; 2] = [Site::new("first name"), Site::new("second name")];
    let site = NAMED[usize::from(std::env::var_os("SECOND").is_some())];
    let (source, mut target) = (pattern(8 << 20), vec![0; 8 << 20]);
    let calls: u64 = std::env::var("CALLS").expect("set").parse().expect("a number");
    for call in 0..calls {
        site.copy(&mut target, &source);
        assert!(call % 16 > 0 || target == source);
        target[..4096].fill(call as u8);
    }
    if let Ok(wanted) = std::env::var("OUTCOME") {
        let state = site.state(Operation::Copy, 8 << 20).expect("was called");
        assert_eq!(state.outcome.name(), wanted, "{state:?}");
    }
    match cachewise::save_sites() {
        Ok(()) => {}
        Err(error) => eprintln!("{error}"),
    }
}

fn copies(file: &Path, calls: &str) -> Command {
    let mut command = child("child_copies", file);
    command.env("CALLS", calls);
    command
}

#[test]
fn the_next_process_goes_on_and_names_do_not_mix() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("p.program");
    run(copies(&file, "30").env("CACHEWISE_LEARN", "trial"));
    run(copies(&file, "20").env("CACHEWISE_LEARN", "trial").env("SECOND", "1"));
    run(&mut copies(&file, "12"));
    let expected = [("first name", 42), ("second name", 20)];
    let expected = expected.map(|(name, calls)| (name.to_owned(), "copy", 23, calls));
    assert_eq!(saved(&file), expected);
}

#[test]
fn what_was_decided_is_followed_from_the_first_call() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("p.program");
    run(copies(&file, "30").env("CACHEWISE_LEARN", "trial"));
    let learned = std::fs::read_to_string(&file).expect("saved");
    for way in ["nt", "temporal"] {
        let mut decided = String::new();
        for line in learned.lines().filter(|line| !line.starts_with("end ")) {
            let mut words: Vec<_> = line.split(' ').collect();
            if words[0] == "site" {
                words[8] = way;
            }
            decided += &(words.join(" ") + "\n");
        }
        let body = decided.clone();
        write_end(&mut decided, body.as_bytes()).expect("written");
        std::fs::write(&file, &decided).expect("written");
        run(copies(&file, "1").env("CACHEWISE_LEARN", "0").env("OUTCOME", way));
        let kept = std::fs::read_to_string(&file).expect("there");
        assert_eq!(kept, decided, "following saves nothing");
        run(copies(&file, "1").env("OUTCOME", way));
        assert_eq!(saved(&file), [("first name".to_owned(), "copy", 23, 31)]);
    }
}

#[test]
fn a_user_without_a_directory_gets_one_and_only_when_something_is_saved() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config");
    let mut command = copies(&config, "0");
    run(command.env_remove("CACHEWISE_PROGRAM").env("XDG_CONFIG_HOME", &config));
    assert!(!config.exists());
    let mut command = copies(&config, "3");
    run(command.env_remove("CACHEWISE_PROGRAM").env("XDG_CONFIG_HOME", &config));
    let programs = std::fs::read_dir(config.join("cachewise")).expect("made").next();
    let programs = programs.expect("a directory").expect("an entry").path();
    assert!(programs.to_string_lossy().ends_with(".programs"), "{programs:?}");
    let own = std::env::current_exe().expect("this binary");
    let own = own.file_name().expect("a name").to_string_lossy().into_owned();
    assert_eq!(saved(&programs.join(own + ".program")).len(), 1);
}

/// A section cut short, one with a byte changed, one of an earlier version, nothing at all: what
/// nobody can use any more is told once and does not keep the program from learning.
#[test]
fn a_damaged_section_is_set_aside_and_learning_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("p.program");
    let aside = directory.path().join("p.program.damaged");
    let learned = [("first name".to_owned(), "copy", 23, 3)];
    run(&mut copies(&file, "3"));
    let whole = std::fs::read_to_string(&file).expect("saved");
    let shown = file.display();
    let end = "; now FILE.damaged, and nothing is known of the program (CACHEWISE_QUIET=1 silences \
               this)\n";
    for (content, why) in [
        (whole[..whole.len() / 2].to_owned(), "found no end line: cut short"),
        (whole.replace("first name", "furst name"), "end: the checksum is another: damaged"),
        ("cachewise-program 1\n".to_owned(), "line 1: found version 1, accepted 2: learned anew"),
    ] {
        for learn in ["1", "0"] {
            std::fs::write(&file, &content).expect("written");
            let told = run(copies(&file, "3").env("CACHEWISE_LEARN", learn));
            assert_eq!(told, format!("cachewise: {shown}: {why}{end}"), "once, and by name");
            assert_eq!(std::fs::read_to_string(&aside).expect("kept"), content);
            assert_eq!(run(copies(&file, "3").env("CACHEWISE_LEARN", "0")), "", "not again");
        }
        assert_eq!(run(&mut copies(&file, "3")), "");
        assert_eq!(saved(&file), learned);
    }
    for nothing in ["", "\0\0\0\0"] {
        std::fs::write(&file, nothing).expect("written");
        assert_eq!(run(&mut copies(&file, "3")), "");
        assert_eq!(saved(&file), learned);
    }
}

#[test]
fn what_cannot_be_used_is_told_in_one_line_and_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("p.program");
    let told = |learn: &str, content: &str| {
        std::fs::write(&file, content).expect("written");
        let told = run(copies(&file, "3").env("CACHEWISE_LEARN", learn));
        assert_eq!(std::fs::read_to_string(&file).expect("there"), content, "left alone");
        told
    };
    let foreign = "line 1: accepted \"cachewise-program 2\"";
    let shown = file.display();
    assert_eq!(
        told("1", "something else\n"),
        format!(
            "cachewise: {shown}: {foreign} (CACHEWISE_QUIET=1 silences this)\n\
             sites not saved: {foreign}\n"
        )
    );
    assert_eq!(
        told("perhaps", ""),
        "cachewise: CACHEWISE_LEARN: accepted 0, 1 or trial; sites do as the profile says \
         (CACHEWISE_QUIET=1 silences this)\n"
    );
    let quiet = run(copies(&file, "3").env("CACHEWISE_LEARN", "2").env("CACHEWISE_QUIET", "1"));
    assert_eq!(quiet, "");
    // A directory that is not there is not made for a file that was named.
    let nowhere = directory.path().join("missing/p.program");
    let told = run(&mut copies(&nowhere, "3"));
    assert!(told.starts_with("sites not saved: found no such file or directory"), "{told}");
}

/// Threads of all kinds share sites; so does a forked child, and a handler that copies in a copy.
#[test]
fn child_threads_forks_and_handlers() {
    if !is_child() {
        return;
    }
    const N: usize = 2 << 20;
    let work = |calls: u64| {
        let (source, mut target) = (pattern(N), vec![0; N]);
        for _ in 0..calls {
            site!("shared").copy(&mut target, &source);
            assert!(target == source);
            target.fill(1);
        }
    };
    static mut FROM: [u8; N] = [7; N];
    static mut TO: [u8; N] = [0; N];
    static SIGNALS: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn handler(_: i32) {
        SIGNALS.fetch_add(1, Ordering::SeqCst);
        let (to, from) = (&raw mut TO, &raw const FROM);
        // SAFETY: the handler is the only one to use these arrays, and does not interrupt itself.
        unsafe { site!("shared").copy_nonoverlapping(to.cast(), from.cast(), N) };
    }
    // SAFETY: the handler calls nothing that may not be called in one.
    unsafe { libc::signal(libc::SIGALRM, handler as *const () as usize) };
    // To one thread, so that no handler is under way when they have ended.
    let threads = [(); 4].map(|()| std::thread::spawn(move || work(100)));
    while threads.iter().any(|thread| !thread.is_finished()) {
        // SAFETY: it was not waited for yet.
        unsafe { libc::pthread_kill(threads[0].as_pthread_t(), libc::SIGALRM) };
        std::thread::sleep(std::time::Duration::from_millis(4));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert!(SIGNALS.load(Ordering::SeqCst) > 0);
    let calls = || site!("shared").state(Operation::Copy, N).expect("free").calls;
    let before = calls();
    assert!(before > 100, "{before} of 400");
    // SAFETY: the child does nothing but copy and leave.
    let child = unsafe { libc::fork() };
    if child == 0 {
        work(40);
        // SAFETY: always callable.
        unsafe { libc::_exit(i32::from(calls() != before + 40)) };
    }
    let mut status = -1;
    // SAFETY: `status` is writable.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    work(10);
    assert_eq!(calls(), before + 10, "the child's calls are its own");
}

#[test]
fn threads_forks_and_signal_handlers_are_right() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("p.program");
    for learn in ["1", "trial"] {
        run(child("child_threads_forks_and_handlers", &file).env("CACHEWISE_LEARN", learn));
    }
}

#[test]
fn bad_names_and_lengths_are_refused() {
    for name in ["", " a", "a ", "a\n", "é", &"x".repeat(65)] {
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        let refused = std::panic::catch_unwind(|| Site::new(name));
        assert!(refused.is_err(), "{name:?}");
    }
    let site = Site::new("lengths");
    let refused = std::panic::catch_unwind(|| site.copy(&mut [0; 3], &[0; 4]));
    assert!(refused.is_err());
    let bad: [(std::ops::Range<usize>, usize); 3] = [(0..9, 0), (2..8, 3), (9..9, 0)];
    for (range, dest) in bad {
        let refused = std::panic::catch_unwind(|| site.copy_within(&mut [0; 8], range, dest));
        assert!(refused.is_err());
    }
    assert_eq!(SiteOutcome::Reopened.to_string(), "reopened");
}
