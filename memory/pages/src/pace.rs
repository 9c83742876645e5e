//! When background zeroing may go on: the one implementation of the rules of [`Scrub`], for the scrubber
//! of a pool and for other programs that zero in the background.
//!
//! It gives way to threads that want to run, which it notices by its own thread: that waits for a CPU then. So
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
    /// The same by the share that is taken where CPUs are busy.
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

    /// A chunk that used so much of a CPU a moment ago, by a thread that had to wait for it.
    fn crowded(scrub: Scrub) -> Pace {
        of(Pace::new(scrub), 1)
    }

    fn of(mut pace: Pace, bytes: usize) -> Pace {
        pace.spent(Instant::now(), Duration::from_secs(1), bytes);
        pace.crowded = true;
        pace
    }

    fn limited(cpu_share: f64, load: f64) -> Scrub {
        Scrub { cpu_share, load, ..Scrub::default() }
    }

    /// The rest after a chunk of a second of CPU, of what is promised in 10 s.
    fn rest_of_promised(scrub: Scrub) -> f64 {
        let pace = Pace::new(scrub).at_least(100.0);
        let Some(Rest::Load(time)) = of(pace, 1000).rest(true) else { panic!("it rests") };
        time.as_secs_f64()
    }

    // Miri has no load average.
    #[cfg(not(miri))]
    #[test]
    fn no_rate_is_promised_above_a_load_that_somebody_has_set() {
        assert!((49.0..=50.0).contains(&rest_of_promised(limited(0.5, -1.0))));
    }

    #[test]
    fn a_promised_rate_is_kept_where_no_cpu_is_idle_but_above_no_limit() {
        // Half a CPU, and 5 %.
        assert!((9.0..=10.0).contains(&rest_of_promised(limited(0.5, f64::INFINITY))));
        assert!((19.0..=20.0).contains(&rest_of_promised(limited(0.05, f64::INFINITY))));
        // A chunk that is late is made up for: the next one may begin sooner.
        let mut late = Pace::new(limited(0.5, f64::INFINITY)).at_least(100.0);
        late.due = Instant::now().checked_sub(Duration::from_secs(60)).expect("a moment before");
        let Some(Rest::Load(time)) = of(late, 1000).rest(true) else { panic!("it rests") };
        assert!((8.5..=9.5).contains(&time.as_secs_f64()));
    }

    #[test]
    fn a_device_does_not_rest() {
        let scrub = Scrub { cpu_share: 1.0, ..Scrub::default() };
        let most = Duration::from_secs(1);
        assert!(
            matches!(crowded(scrub.clone()).rest(false), Some(Rest::Limits(time)) if time <= most)
        );
        assert!(matches!(crowded(scrub).rest(true), Some(Rest::Load(time)) if time > most));
    }

    #[test]
    fn the_smaller_of_two_shares_holds_and_neither_is_nothing() {
        let share = |cpu_share| Scrub { cpu_share, ..Scrub::default() };
        for (scrub, seconds) in [(share(0.5), 50), (share(0.01), 100)] {
            let Some(Rest::Load(time)) = crowded(scrub).rest(true) else { panic!("it rests") };
            assert!(
                time <= Duration::from_secs(seconds) && time > Duration::from_secs(seconds - 20)
            );
        }
    }
}
