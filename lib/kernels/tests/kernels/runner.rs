//! Kernels to run, how hard they are tried, and the number of threads.
//!
//! Three variables steer it, for a slow (emulated) CPU and for chasing one failure:
//! - `CACHEWISE_TEST_KERNELS`: comma-separated; a kernel runs when its name contains one of them.
//! - `CACHEWISE_TEST_EFFORT`: `small` (the default), `normal` (CI) or `thorough`.
//! - `CACHEWISE_TEST_SEED`: the seed of everything random; fixed by default.

use crate::support::arena::{Arena, MARGIN};
use crate::support::{Checked, watch};
use cachewise_kernels::{Features, Kernel, Operation, TABLE};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// How much of the case space a run visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// A sample that an emulator at some 50 million instructions a second gets through.
    Small,
    Normal,
    /// All alignment pairs at all short lengths: minutes to hours.
    Thorough,
}

impl Effort {
    pub fn chosen() -> Effort {
        match std::env::var("CACHEWISE_TEST_EFFORT").as_deref() {
            Err(_) | Ok("" | "small") => Effort::Small,
            Ok("normal") => Effort::Normal,
            Ok("thorough") => Effort::Thorough,
            Ok(other) => {
                panic!("CACHEWISE_TEST_EFFORT={other}: accepted are small, normal, thorough")
            }
        }
    }

    /// One of three, by effort.
    pub fn pick<T>(self, small: T, normal: T, thorough: T) -> T {
        match self {
            Effort::Small => small,
            Effort::Normal => normal,
            Effort::Thorough => thorough,
        }
    }

    /// The longest random length.
    pub fn longest(self) -> usize {
        self.pick(64 << 10, 8 << 20, 8 << 20)
    }
}

/// The seed of everything random in this run.
pub fn seed() -> u64 {
    match std::env::var("CACHEWISE_TEST_SEED") {
        Err(_) => 0x0005_EED0_FCAC_4E15,
        Ok(text) => text.parse().expect("CACHEWISE_TEST_SEED is a decimal number"),
    }
}

/// Random numbers that depend on the kernel, not on the thread it happens to run on.
pub fn random_for(kernel: &Kernel) -> fastrand::Rng {
    let hash = kernel.name.bytes().fold(seed(), |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3) // FNV-1a
    });
    fastrand::Rng::with_seed(hash)
}

/// The kernels of an operation that were asked for and that this CPU can run.
pub fn runnable(operation: Operation) -> Vec<&'static Kernel> {
    let available = Features::detect();
    asked_for(operation).filter(|kernel| kernel.runs_on(available)).collect()
}

/// Returns whether `CACHEWISE_TEST_KERNELS` asks for this kernel.
pub fn is_asked_for(kernel: &Kernel) -> bool {
    let wanted = std::env::var("CACHEWISE_TEST_KERNELS").unwrap_or_default();
    wanted.is_empty() || wanted.split(',').any(|part| kernel.name.contains(part.trim()))
}

fn asked_for(operation: Operation) -> impl Iterator<Item = &'static Kernel> {
    TABLE.iter().filter(move |kernel| kernel.operation() == operation && is_asked_for(kernel))
}

/// Says something past libtest's capture: what was not tested has to be visible in a green run.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Names, once per set of missing features, the kernels that this CPU cannot run.
fn say_skipped(operation: Operation) -> usize {
    let available = Features::detect();
    let mut skipped = BTreeMap::<String, Vec<&str>>::new();
    for kernel in asked_for(operation).filter(|kernel| !kernel.runs_on(available)) {
        let missing = kernel.requires.missing_from(available).to_string();
        skipped.entry(missing).or_default().push(kernel.name);
    }
    for (missing, names) in &skipped {
        say(&format!(
            "{operation}: skipped {}, this CPU lacks {missing}: {}",
            names.len(),
            names.join(" ")
        ));
    }
    skipped.values().map(Vec::len).sum()
}

/// Runs `body` for every kernel of the operation, on as many threads as there are CPUs, and fails
/// with the first complaint of each kernel that has one.
pub fn each_kernel(
    operation: Operation,
    body: impl Fn(&'static Kernel, &mut Arena, Effort) -> Checked + Sync,
) {
    watch::explain_crashes();
    let effort = Effort::chosen();
    let kernels = runnable(operation);
    let skipped = say_skipped(operation);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(kernels.len());
    let started = Instant::now();
    let (next, calls) = (AtomicUsize::new(0), AtomicU64::new(0));
    let under_test = Mutex::new(vec!["nothing"; threads]);
    let failures = Mutex::new(Vec::<Box<str>>::new());
    let (done, finished) = mpsc::channel();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (done, next, calls) = (done.clone(), &next, &calls);
            let (kernels, under_test, failures, body) = (&kernels, &under_test, &failures, &body);
            scope.spawn(move || {
                // The longest length, a margin on both sides and room to shift it.
                let mut arena = Arena::new(effort.longest() + 2 * MARGIN + 8192, seed());
                while let Some(kernel) = kernels.get(next.fetch_add(1, Relaxed)) {
                    under_test.lock().expect("no panic holds this lock")[thread] = kernel.name;
                    if let Err(complaint) = body(kernel, &mut arena, effort) {
                        failures.lock().expect("no panic holds this lock").push(complaint);
                        // The kernel's wrong bytes may still be in the buffers.
                        calls.fetch_add(arena.calls, Relaxed);
                        arena = Arena::new(arena.room(), seed());
                    }
                    done.send(()).expect("the receiver outlives the threads");
                }
                calls.fetch_add(arena.calls, Relaxed);
            });
        }
        drop(done);
        let patience = Duration::from_secs(effort.pick(1800, 300, 7200));
        loop {
            match finished.recv_timeout(patience) {
                Ok(()) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let names = under_test.lock().expect("no panic holds this lock").join(", ");
                    say(&format!("{operation}: no kernel finished for {patience:?}: {names}"));
                    std::process::exit(101);
                }
            }
        }
    });
    let failures = failures.into_inner().expect("no panic held this lock");
    say(&format!(
        "{operation}: {} kernels, {} calls checked in {:.1} s, {} failed, {skipped} skipped",
        kernels.len(),
        calls.into_inner(),
        started.elapsed().as_secs_f64(),
        failures.len(),
    ));
    assert!(
        failures.is_empty(),
        "CACHEWISE_TEST_SEED={}; the first failure of each kernel:\n{}",
        seed(),
        failures.join("\n")
    );
}
