//! Programs whose memory is known are asked, and are as they were.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

#[path = "../../preload/tests/preload/built.rs"]
mod built;

use built::{built, run};
use cachewise_advise::parts::Parts;
use cachewise_advise::probe::Probe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MIB: f64 = 1048576.0;

/// The library as it ships, built once.
fn library() -> PathBuf {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    BUILT.get_or_init(|| built(&["cachewise-probe"]).join("libcachewise_probe.so")).clone()
}

/// A C program of this folder or of `xtask programs`.
fn compiled(folder: &Path, source: &str, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let program = folder.join(source.file_stem().expect("a name"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-pthread", "-o"]).arg(&program).arg(source);
    run(compiler.args(more));
    program
}

/// A program that is ended with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

/// Debian's folder for other allocators.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
const HELD: &str = "../../xtask/programs/held/held.c";

/// A mode of `held.c` after so many loads: the parts, and what the program says is live.
fn after(
    mode: &str,
    more: &[&str],
    loads: usize,
) -> (Parts, f64, Running, Probe, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), HELD, more);
    let mut probe = Probe::new(folder.path()).expect("a probe");
    let socket = folder.path().join("s");
    let mut command = Command::new(&program);
    command
        .arg(mode)
        .arg(&socket)
        .current_dir(folder.path())
        .envs(probe.variables(&library()))
        .stdin(Stdio::null());
    let running = Running(command.spawn().expect("started"));
    for _ in 0..loads {
        let load = || Command::new(&program).arg("load").arg(&socket).status().expect("a load");
        let is_done = |_: &u32| {
            std::thread::sleep(Duration::from_millis(10));
            load().success()
        };
        (0..500u32).find(is_done).expect("a server");
    }
    let said = std::fs::read_to_string(folder.path().join("live-1")).expect("written");
    let live = said.split_whitespace().last().and_then(|word| word.parse().ok()).expect("bytes");
    let parts = Parts::of_all(&[running.pid()], &mut probe);
    eprintln!("{mode}: live {:.1} MiB by itself\n{}", live / MIB, parts.lines().join("\n"));
    (parts, live, running, probe, folder)
}

#[test]
fn the_parts_are_those_that_the_program_knows() {
    let [jemalloc, mimalloc, tcmalloc] =
        ["libjemalloc.so.2", "libmimalloc.so.2", "libtcmalloc_minimal.so.4"];
    for (mode, library, held, lazy) in [
        ("arenas", "", 4.0..300.0, 0.0),
        ("top", "", 60.0..70.0, 0.0),
        ("thresholds", "", 70.0..80.0, 0.0),
        ("leak", "", 18.0..22.0, 0.0),
        ("cache", "", 0.0..4.0, 0.0),
        ("lazy", "", 0.0..1.0, 64.0),
        ("idle", jemalloc, 10.0..120.0, 0.0),
        ("idle", mimalloc, 0.0..120.0, 0.0),
        ("idle", tcmalloc, 10.0..120.0, 0.0),
        ("two", jemalloc, 60.0..120.0, 0.0),
    ] {
        if !library.is_empty() && !Path::new(LIBRARIES).join(library).exists() {
            eprintln!("{mode}: {library} is not installed");
            continue;
        }
        let file = format!("{LIBRARIES}/{library}");
        let link = ["-Wl,--no-as-needed", &file];
        let (parts, live, ..) = after(mode, if library.is_empty() { &[] } else { &link }, 1);
        let level = parts.level();
        assert!((parts.live - live).abs() < 0.05 * level, "{mode}: {live} {parts:?}");
        assert!(held.contains(&(parts.all_held() / MIB)), "{mode}: {parts:?}");
        assert!((parts.lazy / MIB - lazy).abs() < 1.0, "{mode}: {parts:?}");
        assert!(parts.unknown.values().sum::<f64>() < 0.05 * level, "{mode}: {parts:?}");
    }
}

/// A program of `attacked.c` with the probe; what it is asked through is in its folder.
fn attacked(folder: &Path, mode: &str, flags: &[&str]) -> (Running, Probe) {
    let program = compiled(folder, "tests/c/attacked.c", flags);
    let probe = Probe::new(folder).expect("a probe");
    let mut command = Command::new(&program);
    command.arg(mode).envs(probe.variables(&library())).stdin(Stdio::null());
    let running = Running(command.spawn().expect("started"));
    std::thread::sleep(Duration::from_millis(150));
    (running, probe)
}

fn terminated(process: i32) {
    Command::new("kill").arg(process.to_string()).status().expect("kill");
}

#[test]
fn a_program_that_waits_is_asked_and_trimmed_and_waits_on() {
    for mode in [
        "poll",
        "epoll",
        "epoll-timeout",
        "select",
        "nanosleep",
        "read",
        "pause",
        "semaphore",
        "timed-semaphore",
        "sigwait",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut running, mut probe) = attacked(folder.path(), mode, &[]);
        let before = Parts::of_all(&[running.pid()], &mut probe);
        for _ in 0..20 {
            probe.ask(running.pid()).unwrap_or_else(|why| panic!("{mode}: {why}"));
            let trimmed = probe.trim(running.pid()).unwrap_or_else(|why| panic!("{mode}: {why}"));
            assert_eq!(trimmed.len(), 1, "{mode}");
        }
        let after = Parts::of_all(&[running.pid()], &mut probe);
        assert!(before.all_held() > 25.0 * MIB, "{mode}: {before:?}");
        assert!(after.all_held() < 2.0 * MIB, "{mode}: {after:?}");
        assert_eq!(running.0.try_wait().expect("waited"), None, "{mode} returned");
        terminated(running.pid());
        assert_eq!(running.0.wait().expect("waited").code(), Some(7), "{mode}");
    }
}

#[test]
fn programs_in_dangerous_states_are_as_they_were() {
    let folder = || tempfile::tempdir().expect("a folder");
    let at = folder();
    let (mut running, mut probe) = attacked(at.path(), "busy", &[]);
    // Locks are held most of the time: whether it answers or not, it goes on.
    while running.0.try_wait().expect("waited").is_none() {
        let _ = probe.ask(running.pid());
        let _ = probe.trim(running.pid());
    }
    assert!(running.0.wait().expect("waited").success());
    let at = folder();
    let (running, mut probe) = attacked(at.path(), "computes", &[]);
    probe.ask(running.pid()).expect("a program at work is asked in copies");
    probe.trim(running.pid()).expect_err("none of its threads waits");
    drop(running);
    for (mode, flags, why) in [
        ("blocked", &[][..], "block"),
        ("seccomp", &[], "seccomp"),
        ("pause", &["-static"], "static"),
    ] {
        let at = folder();
        let (running, mut probe) = attacked(at.path(), mode, flags);
        let said = probe.ask(running.pid()).expect_err(mode);
        assert!(said.contains(why), "{mode}: {said}");
    }
    // Children that do not exec are asked as their parents are.
    let at = folder();
    let (mut running, mut probe) = attacked(at.path(), "child", &[]);
    probe.ask(running.pid()).expect("a parent");
    let children = format!("/proc/{0}/task/{0}/children", running.pid());
    let children = std::fs::read_to_string(children).expect("a list");
    let child: i32 = children.trim().parse().expect("one child");
    probe.ask(child).expect("a child");
    assert_eq!(probe.trim(child).expect("trimmed").len(), 1);
    assert_eq!(running.0.try_wait().expect("waited"), None, "it saw a copy end");
    terminated(child);
    assert_eq!(running.0.wait().expect("waited").code(), Some(3));
}

/// The levels of a program with the probe and without it are the same.
#[test]
fn the_probe_takes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), "tests/c/attacked.c", &[]);
    let probe = Probe::new(folder.path()).expect("a probe");
    let level = |probed: bool| {
        let mut command = Command::new(&program);
        command.arg("pause").stdin(Stdio::null());
        if probed {
            command.envs(probe.variables(&library()));
        }
        let running = Running(command.spawn().expect("started"));
        std::thread::sleep(Duration::from_millis(200));
        let mut sampler = cachewise_measure::held::Sampler::new();
        sampler.look(rustix::process::Pid::from_raw(running.pid()).expect("a number"), false);
        let tasks = std::fs::read_dir(format!("/proc/{}/task", running.pid())).expect("tasks");
        assert_eq!(tasks.count(), 1);
        sampler.held(None).expect("a level").level
    };
    let [plain, probed] = [level(false), level(true)];
    assert!((probed / plain - 1.0).abs() < 0.01, "{plain} {probed}");
}
