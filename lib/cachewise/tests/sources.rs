//! Sources of decisions, seen from outside: each case is a process of its own, because a
//! process decides once.
//!
//! The children are this very test binary, run with one of the `child_` tests. These are ignored in an ordinary run,
//! and say when they were run (`has_passed`).
#![cfg(all(feature = "std", target_os = "linux"))]

use crate::is_child;
use cachewise::cpu::Signature;
use cachewise::profile::{Decision, MAX_SIZE, Profile, machine_path, user_path};
use cachewise::{Reuse, Source, decision, entry, profile_source, raw};
use cachewise_kernels::{Features, Operation};
use std::ffi::{OsStr, c_int, c_void};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Barrier;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const SIZE: usize = 100_000;

/// One of this module's tests in a process of its own.
fn child(test: &str) -> Command {
    crate::child(&format!("sources::{test}"))
}

/// Runs a child that must succeed, and returns what it printed and its lines on stderr.
fn run(command: &mut Command) -> (String, Vec<String>) {
    let output = command.output().expect("the child runs");
    let passed = crate::has_passed(&output);
    let Output { status, stdout, stderr } = output;
    let (out, err) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(passed, "{status}\n{out}\n{err}");
    (out.into_owned(), err.lines().map(str::to_owned).collect())
}

/// Uses every operation, and panics on a wrong byte.
fn work() {
    let source: Vec<u8> = (0..SIZE).map(|i| (i % 251) as u8 + 1).collect();
    let mut destination = vec![0; SIZE];
    cachewise::copy(&mut destination, &source);
    assert!(destination == source);
    assert!(cachewise::equal(&destination, &source));
    assert!(cachewise::compare(&destination, &source).is_eq());
    for reuse in Reuse::ALL {
        cachewise::copy_within_with(reuse, &mut destination, 1.., 0);
        assert!(destination[..SIZE - 1] == source[1..]);
        cachewise::fill_with(reuse, &mut destination, 3);
        assert!(destination.iter().all(|byte| *byte == 3));
        cachewise::zero_with(reuse, &mut destination);
        assert!(destination.iter().all(|byte| *byte == 0));
        cachewise::copy_with(reuse, &mut destination, &source);
        assert!(destination == source);
    }
}

/// `copy` of every size is done by bytes; nothing else is decided.
fn profile_by_bytes() -> Profile {
    let by_bytes = Decision::new(Operation::Copy, Reuse::Unknown, (256, MAX_SIZE), "copy.bytes");
    let written = "2026-11-21T09:00:00Z by a test".into();
    Profile { written, decisions: vec![by_bytes], ..Profile::here() }
}

/// Writes a profile, and its folder.
fn write(profile: &Profile, path: &Path) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(path, profile.to_text()).expect("written");
}

#[test]
#[ignore = "a child: other tests start it"]
fn child_works() {
    if is_child() {
        // SAFETY: always callable.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: libc's promise.
        unsafe { *place = 12345 };
        let (mut to, from) = ([0; 300], [1; 300]);
        cachewise::copy(&mut to, &from);
        // SAFETY: libc's promise.
        assert_eq!(unsafe { *place }, 12345, "errno is left alone");
        assert_eq!(to, from);
        work();
        println!("source: {:?}", profile_source());
        let decided = decision(Operation::Copy, Reuse::Unknown, 1000);
        println!("decided: {} {}", decided.name(), decided.source);
    }
}

/// One line that names the file and contains `what`; and none under `CACHEWISE_QUIET=1`.
fn assert_passed_over(path: &Path, what: &str) {
    let (out, lines) = run(child("child_works").env("CACHEWISE_PROFILE", path));
    assert!(without_a_profile(&out), "{out}");
    let [line] = lines.as_slice() else { panic!("one line, not {lines:?}") };
    let expected = format!("cachewise: {}: {what}", path.display());
    assert!(line.starts_with(&expected), "{line}\nis not\n{expected}");
    let end = "; profile ignored (CACHEWISE_QUIET=1 silences this)";
    assert!(line.ends_with(end), "{line}");

    let mut quiet = child("child_works");
    let (_, lines) = run(quiet.env("CACHEWISE_PROFILE", path).env("CACHEWISE_QUIET", "1"));
    assert!(lines.is_empty(), "{lines:?}");
}

#[test]
fn a_bad_profile_costs_one_line() {
    let root = tempfile::tempdir().expect("a directory");
    let good = profile_by_bytes().to_text();
    let written = |name: &str, text: &[u8]| {
        let path = root.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let cases: [(&str, Vec<u8>, &str); 4] = [
        ("empty", vec![], "line 1, first line: "),
        ("damaged", good.replace(" by ", " bY ").into(), "line 6, checksum: "),
        ("large", vec![b'x'; 65_537], "size of the file: "),
        ("binary", vec![0, 159, 146, 150], "line 1, first line: "),
    ];
    for (name, text, what) in cases {
        assert_passed_over(&written(name, &text), what);
    }
    let mut foreign = profile_by_bytes();
    foreign.cpu.signature = Signature::new("CyrixInstead", 5, 4, 2);
    assert_passed_over(&written("foreign", foreign.to_text().as_bytes()), "line 2, cpu: ");
    let mut unknown = profile_by_bytes();
    unknown.decisions[0].kernel = "copy.warp".into();
    assert_passed_over(&written("unknown", unknown.to_text().as_bytes()), "line 5, kernel: ");
    let pipe = root.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs");
    assert!(made.success());
    assert_passed_over(&pipe, "line 1, first line: ");
    for unreadable in [&root.path().join("missing"), root.path()] {
        assert_passed_over(unreadable, "file: ");
    }
}

#[test]
fn two_bad_profiles_cost_one_line() {
    let root = tempfile::tempdir().expect("a directory");
    let name = user_path().expect("a path").file_name().expect("a name").to_owned();
    std::fs::create_dir(root.path().join("cachewise")).expect("made");
    std::fs::write(root.path().join("cachewise").join(name), "bad\n").expect("written");
    let mut command = child("child_works");
    let (_, lines) = run(command.env("XDG_CONFIG_HOME", root.path()));
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (_, lines) = run(command.env("CACHEWISE_PROFILE", "/nonexistent"));
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("cachewise: /nonexistent: file: "), "{lines:?}");
}

#[test]
fn a_good_profile_is_followed_and_a_missing_one_of_the_user_is_normal() {
    let (out, lines) = run(&mut child("child_works"));
    assert!(without_a_profile(&out) && lines.is_empty(), "{out} {lines:?}");

    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("a profile, with spaces");
    write(&profile_by_bytes(), &path);
    let (out, lines) = run(child("child_works").env("CACHEWISE_PROFILE", &path));
    assert!(lines.is_empty(), "{lines:?}");
    let expected = format!("decided: copy.bytes {} (CACHEWISE_PROFILE)\n", path.display());
    assert!(out.contains(&expected), "{out}");

    let name = user_path().expect("a path").file_name().expect("a name").to_owned();
    for below in ["cachewise", ".config/cachewise"] {
        let path = root.path().join(below).join(&name);
        write(&profile_by_bytes(), &path);
        let mut command = child("child_works");
        if below == "cachewise" {
            command.env("XDG_CONFIG_HOME", root.path());
        } else {
            command.env_remove("XDG_CONFIG_HOME").env("HOME", root.path());
        }
        let (out, lines) = run(&mut command);
        assert!(lines.is_empty(), "{lines:?}");
        let expected = format!("decided: copy.bytes {} (this user's profile)\n", path.display());
        assert!(out.contains(&expected), "{out}");
        // A bad one in the environment falls back to the user's.
        let (out, lines) = run(command.env("CACHEWISE_PROFILE", "/nonexistent"));
        assert!(out.contains(&expected) && lines.len() == 1, "{out} {lines:?}");
    }
    let mut relative = child("child_works");
    relative.env("XDG_CONFIG_HOME", ".").env_remove("HOME").current_dir(root.path());
    let (out, lines) = run(&mut relative);
    assert!(without_a_profile(&out) && lines.is_empty(), "{out} {lines:?}");
}

/// Around the length that is written on the stack, and the longest that can be opened.
#[test]
fn the_users_profile_is_found_however_long_its_path_is() {
    let root = tempfile::tempdir().expect("a directory");
    let name = user_path().expect("a path").file_name().expect("a name").to_owned();
    let below = Path::new("cachewise").join(&name);
    for length in (180..200).chain([4095]) {
        let mut directory = root.path().to_owned();
        let rest = |directory: &Path| length - directory.join(&below).as_os_str().len();
        // A component has at most 255 bytes; the last slash is one.
        while rest(&directory) > 200 {
            directory.push("d".repeat(100));
        }
        directory.push("e".repeat(rest(&directory) - 1));
        let path = directory.join(&below);
        assert_eq!(path.as_os_str().len(), length);
        write(&profile_by_bytes(), &path);
        let (out, lines) = run(child("child_works").env("XDG_CONFIG_HOME", &directory));
        let expected = format!("decided: copy.bytes {} (this user's profile)\n", path.display());
        assert!(lines.is_empty() && out.contains(&expected), "{length}: {out} {lines:?}");
    }
}

#[test]
fn a_program_may_bring_its_own_profile() {
    if !crate::alone("sources::a_program_may_bring_its_own_profile") {
        return;
    }
    let mut profile = profile_by_bytes();
    profile.decisions[0].to = 4095;
    let above = Decision::new(Operation::Copy, Reuse::Unknown, (4096, MAX_SIZE), "copy.sse2");
    profile.decisions.push(above);
    cachewise::load(&profile).expect("installed");
    assert_eq!(profile_source(), Source::Installed);
    let decided = |operation, size| {
        let decided = decision(operation, Reuse::Unknown, size);
        (decided.name(), decided.from, decided.to, decided.source)
    };
    let installed = Source::Installed;
    // The library's own paths end at 128 bytes, or at 256 where the CPU has AVX2.
    let (name, from, own, source) = decided(Operation::Copy, 128);
    assert_eq!((name, from, source), ("inlined", 0, Source::Computed));
    assert!(own == 128 || own == 256, "{own}");
    let first = 256.max(own + 1);
    assert_eq!(decided(Operation::Copy, 257), ("copy.bytes", first, 4095, installed));
    assert_eq!(decided(Operation::CopyPages, 4095), ("copy.bytes", first, 4095, installed));
    assert_eq!(decision(Operation::Copy, Reuse::Never, 128).to, 128);
    assert_eq!(decided(Operation::Copy, 4096), ("copy.sse2", 4096, u64::MAX, installed));
    assert_eq!(decision(Operation::Copy, Reuse::Soon, 1000).source, Source::Computed);
    assert_eq!(decided(Operation::Copy, 200).3, Source::Computed);
    let hinted = decision(Operation::Copy, Reuse::Never, 200);
    assert_eq!((hinted.from, hinted.to), (129, 255));
    work();

    // A refused one changes nothing; another one replaces it, rows it does not decide included.
    profile.decisions[1].kernel = "copy.warp".into();
    cachewise::load(&profile).expect_err("no such kernel");
    assert_eq!(decided(Operation::Copy, 4096).0, "copy.sse2");
    profile.decisions.clear();
    cachewise::load(&profile).expect("installed");
    assert_eq!(decided(Operation::Copy, 4096).3, Source::Computed);
    work();
}

/// A profile that leaves every operation and hint to the C library.
fn profile_of_libc() -> cachewise::profile::Profile {
    let mut profile = profile_by_bytes();
    let first = profile.decisions.remove(0);
    for operation in cachewise::profile::OPERATIONS {
        for &reuse in cachewise::profile::hints(operation) {
            let nearest = Some(format!("{operation}.bytes"));
            let kernel = "libc".to_owned();
            profile.decisions.push(Decision { operation, reuse, kernel, nearest, ..first.clone() });
        }
    }
    profile
}

#[test]
fn a_profile_may_leave_all_to_libc() {
    if !crate::alone("sources::a_profile_may_leave_all_to_libc") {
        return;
    }
    work();
    cachewise::load(&profile_of_libc()).expect("installed");
    for operation in cachewise::profile::OPERATIONS {
        let decided = decision(operation, Reuse::Unknown, 5000);
        assert_eq!((decided.name(), decided.libc, decided.to), ("libc", true, u64::MAX));
        // As the profile says, of sizes that the library's own loop does for libc, too.
        let small = decision(operation, Reuse::Unknown, 1000);
        assert_eq!((small.name(), small.to, small.source), ("libc", u64::MAX, Source::Installed));
        assert_eq!(small.from, decided.from);
    }
    // The entry serves calls up to the last size at which glibc's routine is the same loop.
    let stores = [
        (Operation::Copy, entry::COPY_ROW),
        (Operation::Move, entry::MOVE_ROW),
        (Operation::Fill, entry::FILL_ROW),
        (Operation::Zero, entry::ZERO_ROW),
    ];
    for (operation, row) in stores {
        let direct = entry::DIRECT[row].load(Ordering::Relaxed);
        let last = cachewise::profile::libc_from(operation) as usize;
        assert!(direct <= 256 || direct == last, "{operation}: {direct}");
    }
    work();
    // And back.
    cachewise::load(&profile_by_bytes()).expect("installed");
    assert_eq!(decision(Operation::Copy, Reuse::Unknown, 5000).name(), "copy.bytes");
    // Without a decision of the profile, fills are what they are without one.
    assert!(decision(Operation::Fill, Reuse::Unknown, 5000).libc);
    assert!(!decision(Operation::Fill, Reuse::Unknown, 1000).libc);
    work();
}

#[test]
fn a_profile_may_look_at_the_operands() {
    if !crate::alone("sources::a_profile_may_look_at_the_operands") {
        return;
    }
    for technique in ["sse2", "avx.ends", "avx512"] {
        let line = |of: Operation| {
            let kernel = format!("{of}.{technique}.or-libc");
            Decision::new(of, Reuse::Unknown, (256, MAX_SIZE), &kernel)
        };
        let decisions = [Operation::Copy, Operation::Move].map(line);
        let profile = Profile { decisions: decisions.to_vec(), ..Profile::here() };
        cachewise::load(&profile).expect("installed");
        let name = decision(Operation::Copy, Reuse::Unknown, 9000).name();
        let runs = cachewise_kernels::find(&format!("copy.{technique}"))
            .is_some_and(|kernel| kernel.runs_on(Features::detect()));
        assert_eq!(name == decisions[0].kernel, runs, "{name}");
        // Aligned, misaligned and aliased; apart, and one over the other either way.
        let mut memory: Vec<u8> = (0..60_000u32).map(|i| (i % 251) as u8).collect();
        for (to, from) in
            [(20_480, 512), (20_481, 512), (20_490, 10), (20_736, 256), (64, 0), (1, 0), (0, 33)]
        {
            for n in [300, 5_000, 20_000] {
                let expected = memory[from..from + n].to_vec();
                let start = memory.as_mut_ptr();
                // SAFETY: both are in the vector for n bytes.
                unsafe { raw::copy(start.wrapping_add(to), start.wrapping_add(from), n) };
                assert!(memory[to..to + n] == expected, "{technique} {to} {from} {n}");
            }
        }
        work();
    }
}

/// Stays in the dynamic linker, with its lock, until told to leave it.
unsafe extern "C" fn stay(_: *mut libc::dl_phdr_info, _: usize, ends: *mut c_void) -> c_int {
    // SAFETY: `another_thread_may_be_in_the_dynamic_linker` passes one, and waits.
    let (inside, end) = unsafe { &*ends.cast::<(Sender<()>, Receiver<()>)>() };
    inside.send(()).expect("somebody waits");
    i32::from(end.recv_timeout(Duration::from_secs(60)).is_ok()) + 1
}

/// The first use of the C library's routines waits for no other thread: in a process that was forked while
/// one was in the dynamic linker, the linker's lock stays taken for ever.
#[test]
fn another_thread_may_be_in_the_dynamic_linker() {
    if !crate::alone("sources::another_thread_may_be_in_the_dynamic_linker") {
        return;
    }
    let (inside, is_inside) = channel::<()>();
    let (end, ended) = channel::<()>();
    let other = std::thread::spawn(move || {
        let mut ends = (inside, ended);
        // SAFETY: `stay` gets what it expects.
        unsafe { libc::dl_iterate_phdr(Some(stay), (&raw mut ends).cast()) }
    });
    is_inside.recv().expect("it is inside");
    cachewise::load(&profile_of_libc()).expect("installed");
    assert!(decision(Operation::Copy, Reuse::Unknown, 5000).libc);
    work();
    assert!(end.send(()).is_ok(), "the linker's lock was waited for");
    assert_eq!(other.join().expect("no panic"), 2);
}

#[test]
#[ignore = "a child: other tests start it"]
fn child_races() {
    if is_child() {
        let barrier = Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    barrier.wait();
                    work();
                });
            }
        });
    }
}

#[test]
fn eight_threads_may_be_first() {
    for _ in 0..20 {
        let (_, lines) = run(child("child_races").env("CACHEWISE_PROFILE", "/nonexistent"));
        assert_eq!(lines.len(), 1, "{lines:?}");
    }
}

#[test]
#[ignore = "a child: other tests start it"]
fn child_forks() {
    if !is_child() {
        return;
    }
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            barrier.wait();
            work();
        });
        barrier.wait();
        // SAFETY: the child only computes and leaves by `_exit`.
        let process = unsafe { libc::fork() };
        if process == 0 {
            let right = std::panic::catch_unwind(|| {
                let (mut to, from) = ([0; 5000], [7; 5000]);
                for _ in 0..1000 {
                    cachewise::copy(&mut to, &from);
                }
                // The parent's claim, if it was caught in the middle, is not waited for.
                assert!(matches!(profile_source(), Source::Computed | Source::Shipped(_)));
                assert_eq!(to, from);
            });
            // SAFETY: leaves at once.
            unsafe { libc::_exit(i32::from(right.is_err())) };
        }
        let mut status = 0;
        // SAFETY: `status` is writable.
        let waited = unsafe { libc::waitpid(process, &raw mut status, 0) };
        assert_eq!((waited, status), (process, 0));
    });
}

#[test]
fn a_forked_child_may_be_first() {
    for _ in 0..20 {
        run(&mut child("child_forks"));
    }
}

/// Returns whether nobody's own profile was followed: at most the one that is shipped for this CPU.
fn without_a_profile(out: &str) -> bool {
    out.contains("source: Computed") || out.contains("source: Shipped")
}

#[test]
#[ignore = "a child: other tests start it"]
fn child_is_privileged() {
    if is_child() {
        // SAFETY: always callable.
        println!("secure: {}", unsafe { libc::getauxval(libc::AT_SECURE) });
        work();
        println!("source: {:?}", profile_source());
    }
}

/// Needs to be root, to make a set-user-id program and to run it as somebody else.
#[test]
fn a_set_user_id_program_ignores_the_environment() {
    // SAFETY: always callable.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("set-user-id: SKIPPED, only root can make such a program");
        return;
    }
    let root = tempfile::tempdir().expect("a directory");
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permitted");
    };
    open(root.path(), 0o755);
    let program = root.path().join("program");
    // By another process: a child that a test beside this one forks meanwhile would inherit a file
    // open for writing, and a program that somebody may write cannot be run (ETXTBSY).
    let this = std::env::current_exe().expect("this binary");
    let copied = Command::new("cp").arg(this).arg(&program).status().expect("cp runs");
    assert!(copied.success());
    open(&program, 0o4755);
    let profile = root.path().join("profile");
    write(&profile_by_bytes(), &profile);
    open(&profile, 0o644);
    // The machine's profile is root's word, and holds for such programs too; what their caller's environment says does not.
    let etc = etc_with_a_profile();
    let mut command = with_etc(etc.path(), "setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    command.args(child("child_is_privileged").get_args()).env("CACHEWISE_TEST_CHILD", "1");
    let (out, lines) = run(command.env("CACHEWISE_PROFILE", &profile).current_dir("/"));
    if !out.contains("secure: 1") {
        eprintln!("set-user-id: SKIPPED, it has no effect on this file system");
        return;
    }
    assert!(out.contains("source: Machine") && lines.is_empty(), "{out} {lines:?}");
}

/// A directory to stand for `/etc`, with the machine's profile in it.
fn etc_with_a_profile() -> tempfile::TempDir {
    let etc = tempfile::tempdir().expect("a directory");
    let name = machine_path().expect("a path");
    let path = etc.path().join(name.strip_prefix("/etc").expect("below /etc"));
    write(&profile_by_bytes(), &path);
    for (path, mode) in [(etc.path(), 0o755), (&path, 0o644)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("permitted");
    }
    etc
}

/// A program that sees that directory as its `/etc`, in a mount namespace of its own.
fn with_etc(etc: &Path, program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("unshare");
    // SAFETY: always callable.
    let root = unsafe { libc::geteuid() } == 0;
    command.arg(if root { "-m" } else { "-rm" });
    command.args(["sh", "-c", "mount --bind \"$0\" /etc && exec \"$@\""]).arg(etc).arg(program);
    command
}

#[test]
fn the_machines_profile_is_followed_where_the_user_has_none() {
    let etc = etc_with_a_profile();
    let can = with_etc(etc.path(), "true").output().is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("the machine's profile: SKIPPED, mount namespaces are not allowed");
        return;
    }
    let inside = |settings: &[(&str, &Path)]| {
        let inner = child("child_works");
        let mut command = with_etc(etc.path(), inner.get_program());
        command.args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        run(command.envs(settings.iter().copied()))
    };
    let path = machine_path().expect("a path");
    let machine = format!("decided: copy.bytes {} (this machine's profile)\n", path.display());
    let (out, lines) = inside(&[]);
    assert!(out.contains(&machine) && lines.is_empty(), "{out} {lines:?}");
    // A bad one that the user names costs its line; a good one of the user goes first.
    let (out, lines) = inside(&[("CACHEWISE_PROFILE", Path::new("/nonexistent"))]);
    assert!(out.contains(&machine) && lines.len() == 1, "{out} {lines:?}");
    let home = tempfile::tempdir().expect("a directory");
    let users = home.path().join("cachewise").join(path.file_name().expect("a name"));
    write(&profile_by_bytes(), &users);
    let (out, lines) = inside(&[("XDG_CONFIG_HOME", home.path())]);
    assert!(out.contains("(this user's profile)") && lines.is_empty(), "{out} {lines:?}");
    // A damaged one of the machine is told like any other, and the next source decides.
    let damaged = etc.path().join(path.strip_prefix("/etc").expect("below /etc"));
    std::fs::write(damaged, "bad\n").expect("written");
    let (out, lines) = inside(&[]);
    assert!(without_a_profile(&out) && lines.len() == 1, "{out} {lines:?}");
    assert!(lines[0].starts_with(&format!("cachewise: {}: line 1", path.display())), "{lines:?}");
}
