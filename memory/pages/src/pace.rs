//! When background zeroing may go on: the one implementation of the rules of [`Scrub`], for the scrubber
//! of a pool and for other programs that zero in the background.
//!
//! The work gives way to threads that want to run, which it notices by its own thread: that waits for a CPU then. So
//! only those count that compete for the CPUs of this process, or for the quota of its control group, and not what
//! others do elsewhere on the machine. It does not rest for ever: a small share is always taken, or a promised rate.

use crate::config::Scrub;
use crate::os;
use std::time::{Duration, Instant};

/// The share of one CPU that is taken where threads wait for CPUs.
pub const FLOOR: f64 = 0.02;
/// The wait before or in one chunk from which on its CPU is taken for busy. An idle CPU takes a thread within some
/// 50 us; a busy one at its next clock tick, after 1 to 4 ms.
const CROWDED: Duration = Duration::from_micros(500);

/// The time by which a promised rate may be behind and is made up for.
const BEHIND: Duration = Duration::from_millis(500);

/// Why the next chunk has to wait, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// No CPU is idle, or the load average is above `load`.
    Load(Duration),
    /// `cpu_share`.
    Limits(Duration),
}

/// The rules and when the next chunk may begin by them. For one thread.
#[derive(Debug)]
pub struct Pace {
    scrub: Scrub,
    /// The first moment of the next chunk by the limits.
    next: Instant,
    /// First moment by the share that is taken where CPUs are busy.
    least: Instant,
    /// Bytes a second that are zeroed at least where CPUs are busy, and the first moment by that; 0 is no such promise.
    promised: f64,
    due: Instant,
    /// The time that the thread had waited for a CPU, at the last look.
    waited: Option<Duration>,
    /// True if it waited for the last chunk.
    crowded: bool,
}

impl Pace {
    /// Nothing has been zeroed yet.
    #[must_use]
    pub fn new(scrub: Scrub) -> Pace {
        let now = Instant::now();
        let (next, least, due) = (now, now, now);
        Pace { scrub, next, least, promised: 0.0, due, waited: None, crowded: false }
    }

    /// Zeroes so many bytes a second at least where threads wait for CPUs, within the limits, and the system gives it
    /// the time.
    #[must_use]
    pub fn at_least(self, bytes_per_second: f64) -> Pace {
        Pace { promised: bytes_per_second, ..self }
    }

    /// The rest that the next chunk has to wait for, if a CPU does it; `None` if it may begin.
    #[must_use]
    pub fn rest(&mut self, uses_cpu: bool) -> Option<Rest> {
        let now = Instant::now();
        let left =
            |then: Instant| Some(then.saturating_duration_since(now)).filter(|t| !t.is_zero());
        if uses_cpu && self.is_loaded() {
            return left(self.next.max(self.least)).map(Rest::Load);
        }
        if uses_cpu && self.crowded {
            return left(self.next.max(self.least.min(self.due))).map(Rest::Load);
        }
        left(self.next).map(Rest::Limits)
    }

    fn is_loaded(&self) -> bool {
        self.scrub.load < f64::INFINITY && os::load() > self.scrub.load
    }

    /// A chunk was begun then, used that CPU time and had so many bytes. In the thread that did it.
    pub fn spent(&mut self, begun: Instant, used: Duration, bytes: usize) {
        let least = used.div_f64(self.scrub.cpu_share);
        (self.next, self.least) = (begun + least, begun + used.div_f64(FLOOR));
        self.due = if self.promised == 0.0 {
            self.least
        } else {
            // Its waits for a CPU are made up for.
            let from = begun.checked_sub(BEHIND).map_or(begun, |first| self.due.max(first));
            from + Duration::from_secs_f64(bytes as f64 / self.promised)
        };
        let before = self.waited;
        self.waited = os::thread_wait();
        let waited = match (before, self.waited) {
            (Some(before), Some(now)) => now.saturating_sub(before),
            (None, Some(_)) => Duration::ZERO,
            // The system does not say: what the chunk took longer than its work.
            (_, None) => begun.elapsed().saturating_sub(used),
        };
        self.crowded = waited >= CROWDED;
    }

    /// Nothing may begin before that.
    pub(crate) fn rest_until(&mut self, then: Instant) {
        self.next = then;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds to rest after a chunk that used a second of CPU, of 1000 bytes, by a thread that had to wait for its CPU.
    fn rest(cpu_share: f64, load: f64, promised: f64, uses_cpu: bool) -> f64 {
        let scrub = Scrub { cpu_share, load, ..Scrub::default() };
        let mut pace = Pace::new(scrub).at_least(promised);
        pace.spent(Instant::now(), Duration::from_secs(1), 1000);
        pace.crowded = true;
        match pace.rest(uses_cpu) {
            Some(Rest::Load(time) | Rest::Limits(time)) => time.as_secs_f64(),
            None => 0.0,
        }
    }

    // Miri has no load average.
    #[cfg(not(miri))]
    #[test]
    fn rest_follows_the_smallest_share_and_a_promised_rate_below_the_load() {
        let idle = f64::INFINITY;
        for (cpu_share, load, promised, uses_cpu, seconds) in [
            // The smaller of two shares holds, and neither is nothing.
            (0.5, idle, 0.0, true, 1.0 / FLOOR),
            (0.01, idle, 0.0, true, 100.0),
            // A device does not rest.
            (1.0, idle, 0.0, false, 1.0),
            // A promised rate is kept where no CPU is idle, but above no limit, and not above a load that was set.
            (0.5, idle, 100.0, true, 10.0),
            (0.05, idle, 100.0, true, 20.0),
            (0.5, -1.0, 100.0, true, 1.0 / FLOOR),
        ] {
            let found = rest(cpu_share, load, promised, uses_cpu);
            let case = (cpu_share, load, promised, uses_cpu);
            assert!(found <= seconds && found > seconds - 1.0, "{case:?}: {found}");
        }
    }
}
