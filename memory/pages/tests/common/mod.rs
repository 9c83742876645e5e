//! Helpers for tests of pools: scrubbers with settings for tests, what is asked of a pool, waiting, and processes of
//! their own. Each test program uses its part of it.
#![allow(dead_code, reason = "shared by two test programs")]

use cachewise_pages::{Builder, Pool, Scrub, Stats};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// No scrubber: what is dirty stays dirty until the test says otherwise.
pub fn quiet() -> Builder {
    Pool::builder().scrub(Scrub { enabled: false, ..Scrub::default() })
}

/// A scrubber that begins at once and has no limits.
pub fn eager() -> Scrub {
    Scrub {
        start: 0,
        load: f64::INFINITY,
        cpu_share: 1.0,
        min_idle: Duration::ZERO,
        ..Scrub::default()
    }
}

/// A pool of settings that are accepted.
pub trait Made {
    fn made(self) -> Pool;
}

impl Made for Builder {
    fn made(self) -> Pool {
        self.build().expect("a pool")
    }
}

/// Requests that tests make of a working pool.
pub trait Asked {
    fn figures(&self) -> Stats;
    /// Bookkeeping is sound, and what is said to be zero is.
    fn is_sound(&self);
    /// Gives a block back that the test holds, and uses no more.
    fn put(&self, start: NonNull<u8>, order: u32);
    /// Gives a run back.
    fn put_run(&self, start: NonNull<u8>, frames: u32);
}

impl Asked for Pool {
    fn figures(&self) -> Stats {
        self.stats().expect("figures")
    }

    fn is_sound(&self) {
        self.check().expect("sound");
        self.check_zeros().expect("zero");
    }

    fn put(&self, start: NonNull<u8>, order: u32) {
        // SAFETY: held by the test, and used by nobody any more.
        unsafe { self.free_raw(start, order) }.expect("ours");
    }

    fn put_run(&self, start: NonNull<u8>, frames: u32) {
        // SAFETY: as above.
        unsafe { self.free_run_raw(start, frames) }.expect("ours");
    }
}

/// Test that all bytes are zero.
pub trait Zero {
    fn is_zero(&self) -> bool;
}

impl Zero for [u8] {
    fn is_zero(&self) -> bool {
        self.iter().all(|byte| *byte == 0)
    }
}

/// Waits for something that another thread will do, for as long as a busy machine may need.
pub fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never came: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Returns whether nothing is left to zero, nor being zeroed: a block in flight is no longer dirty.
pub fn is_clean(pool: &Pool) -> bool {
    let stats = pool.figures();
    stats.dirty + stats.in_flight == 0
}

/// Returns whether this is the process that one test has to itself: this very binary, told to run it. If not, it is run in one.
pub fn has_its_own_process(test: &str) -> bool {
    const OWN: &str = "CACHEWISE_TEST_ALONE";
    if std::env::var_os(OWN).is_some() {
        return true;
    }
    let this = std::env::current_exe().expect("this test");
    let mut command = std::process::Command::new(this);
    command.args(["--exact", test, "--test-threads=1", "--nocapture"]).env(OWN, "1");
    let output = command.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && told.contains("1 passed"), "{told}\n{errors}");
    false
}

/// Huge pages reserved for the test, if it may; they are the system's.
pub struct Reserved(Option<String>);

const RESERVE: &str = "/proc/sys/vm/nr_hugepages";

impl Reserved {
    pub fn more(pages: u64) -> Reserved {
        let before = std::fs::read_to_string(RESERVE).expect("Linux");
        let after = before.trim().parse::<u64>().expect("a number") + pages;
        let written = std::fs::write(RESERVE, after.to_string());
        Reserved(written.is_ok().then_some(before))
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = std::fs::write(RESERVE, before);
        }
    }
}

/// Runs `child` in a forked process. Returns its status; it succeeds by returning true.
pub fn forked(child: impl FnOnce() -> bool) -> i32 {
    // SAFETY: the child leaves without destructors.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: the default action, which ends a process that hangs.
        unsafe { libc::alarm(60) };
        let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
        // SAFETY: ends this process at once.
        unsafe { libc::_exit(i32::from(!well.unwrap_or(false))) };
    }
    assert!(pid > 0, "no process to be had");
    let mut status = -1;
    // SAFETY: waits for a child of this process.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    status
}
