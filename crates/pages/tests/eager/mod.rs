//! What tests of a scrubber at work share.

use cachewise_pages::{Pool, Scrub};
use std::time::{Duration, Instant};

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

/// Waits for something that another thread will do, for as long as a busy machine may need.
pub fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "never came: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether nothing is left to zero, nor being zeroed: a block in flight is no longer dirty.
pub fn is_clean(pool: &Pool) -> bool {
    let stats = pool.stats().expect("figures");
    stats.dirty + stats.in_flight == 0
}
