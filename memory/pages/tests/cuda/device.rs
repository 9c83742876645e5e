//! The engine of a GPU, without one: the test library in the driver's place (`driver.c`) zeroes late,
//! partly, wrongly or not at all. Each way is a process of its own, this program again.

use crate::common::{Asked, Made, Zero, eager};
use cachewise_pages::{EngineChoice, Note, Pool, Scrub};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const CHILD: &str = "CACHEWISE_TEST_CHILD";

/// A pool of a device's, dirty blocks for it, and what came of them.
#[test]
#[ignore = "a child: other tests start it"]
fn as_a_program() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let scrub = Scrub { unused_limit: u64::MAX, ..eager() };
    let pool = Pool::builder()
        .capacity(48 << 20)
        .max_order(9)
        .cache_blocks(0)
        .scrub(scrub)
        .engine(EngineChoice::Cuda)
        .engine_deadline(Duration::from_millis(200))
        .made();
    for note in pool.notes() {
        assert!(matches!(note, Note::NoDevice(_)), "{note:?}");
        println!("told: {note}");
    }
    let figures = || pool.figures();
    // Beyond what is read whole, unless the engine is caught before.
    for _ in 0..3 {
        let blocks: Vec<_> = (0..24).filter_map(|_| pool.alloc(9).ok()).collect();
        blocks.into_iter().for_each(|mut block| block.fill(0x77));
        let begun = Instant::now();
        while figures().dirty + figures().in_flight != 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", figures());
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let stats = figures();
    println!("faults {} lies {};", stats.engine_faults, stats.verify_failed);
    // It may be waiting for an engine that does not stop.
    while !pool.pause_scrubber() {
        std::thread::sleep(Duration::from_millis(2));
    }
    pool.check().expect("sound");
    for _ in 0..(48 - (stats.quarantined >> 20)) / 2 {
        let block = pool.zalloc(9).expect("a block");
        assert!(block.is_zero(), "a stale byte");
        std::mem::forget(block);
    }
    assert_eq!(pool.trim().expect("nothing to do"), 0);
    println!("end");
}

fn run(library: &Path, mode: &str) -> Output {
    let mut program = Command::new(std::env::current_exe().expect("a path"));
    program
        .args(["device::as_a_program", "--exact", "--include-ignored", "--nocapture"])
        .env(CHILD, "1");
    program.env("LD_LIBRARY_PATH", library).env("CACHEWISE_TEST_DRIVER", mode);
    program.env("CACHEWISE_TEST_DRIVER_LOG", library.join(mode));
    program.output().expect("it runs")
}

#[test]
fn a_device_that_works_late_wrongly_or_not_leaves_no_stale_byte() {
    let folder = std::env::temp_dir().join(format!("cachewise-cuda-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cuda/driver.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(folder.join("libcuda.so.1")).arg(source);
    assert!(compiler.status().expect("a C compiler").success());
    // The device's fault, the pool's finding, and the pieces registered and unregistered: of an
    // engine that cannot be stopped, and of a device that is lost, memory stays registered.
    let cases = [
        ("good", "faults 0 lies 0;", 1, 1),
        ("late", "faults 0 lies 0;", 1, 1),
        ("none", "(cuInit: no CUDA-capable device is detected (error 100))", 0, 0),
        ("hole", "faults 1 lies 1;", 1, 1),
        ("first", "faults 1 lies 1;", 1, 1),
        // After 64 MiB, which are 32 ranges, it is believed but for the last line of each.
        ("last@40", "faults 1 lies 1;", 1, 1),
        ("elsewhere@40", "faults 1 lies 1;", 1, 1),
        ("partial", "faults 3 lies 0;", 1, 1),
        ("fails", "faults 3 lies 0;", 1, 1),
        ("lost", "lies 0;", 1, 0),
        ("never", "lies 0;", 1, 0),
    ];
    std::thread::scope(|scope| {
        for (mode, told, registered, unregistered) in cases {
            let folder = &folder;
            scope.spawn(move || {
                let output = run(folder, mode);
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let (out, err) = (text(&output.stdout), text(&output.stderr));
                assert!(output.status.success() && out.contains("end"), "{mode}: {out}{err}");
                assert!(out.contains(told), "{mode}: {out}{err}");
                let log = std::fs::read_to_string(folder.join(mode)).unwrap_or_default();
                assert!(!log.contains("wrong"), "{mode}: {log}{err}");
                let count = |call: &str| log.lines().filter(|line| line.starts_with(call)).count();
                assert_eq!(count("register"), registered, "{mode}: {log}");
                assert_eq!(count("unregister"), unregistered, "{mode}: {log}");
            });
        }
    });
    let output = run(&folder.join("nowhere"), "good");
    let has_driver = ["/usr/lib", "/usr/lib64", "/usr/lib/x86_64-linux-gnu"]
        .iter()
        .any(|folder| Path::new(folder).join("libcuda.so.1").exists());
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(has_driver || out.contains("told: no device to zero with (no CUDA driver: "), "{out}");
    std::fs::remove_dir_all(&folder).expect("its own");
}
