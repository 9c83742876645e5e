//! Programs whose memory is known are asked, and are as they were.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use cachewise_advise::parts::Parts;
use cachewise_advise::probe::Probe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const MIB: f64 = 1048576.0;

/// The library as it ships, built once.
fn library() -> PathBuf {
    static BUILT: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    let built = || {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target/tmp");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "-p", "cachewise-probe", "--target-dir"]).arg(target);
        let said = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo runs");
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        target.join("release/libcachewise_probe.so")
    };
    BUILT.get_or_init(built).clone()
}

/// A C program of this folder or of `xtask programs`.
fn compiled(folder: &Path, source: &str, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(source);
    let program = folder.join(source.file_stem().expect("a name"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O1", "-pthread", "-o"]).arg(&program).arg(source).args(more);
    let said = compiler.output().expect("a C compiler: Rust links with it");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
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

/// Where Debian has other allocators.
const LIBRARIES: &str = "/usr/lib/x86_64-linux-gnu";
const HELD: &str = "../../xtask/programs/held/held.c";

/// A mode of `held.c` after so many loads: the parts, and what the program says is live.
fn after(mode: &str, more: &[&str], loads: usize) -> (Parts, f64, Running, Probe, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compiled(folder.path(), HELD, more);
    let mut probe = Probe::new(folder.path()).expect("a probe");
    let socket = folder.path().join("s");
    let mut command = Command::new(&program);
    command.arg(mode).arg(&socket).envs(probe.variables(&library())).stdin(Stdio::null());
    let running = Running(command.spawn().expect("started"));
    for _ in 0..loads {
        let load = || Command::new(&program).arg("load").arg(&socket).status().expect("a load");
        let is_done = |_: &u32| {
            std::thread::sleep(Duration::from_millis(10));
            load().success()
        };
        (0..500u32).find(is_done).expect("a server");
    }
    let said = std::fs::read_to_string(folder.path().join("s.live")).expect("written");
    let live = said.split_whitespace().next().and_then(|word| word.parse().ok()).expect("bytes");
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
