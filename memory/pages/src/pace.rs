//! When background zeroing may go on: the one implementation of the rules of [`Scrub`], for the scrubber
//! of a pool and for other programs that zero in the background.

use crate::config::Scrub;
use crate::os;
use std::time::{Duration, Instant};

/// How long it rests when the load is too high before it looks again.
pub(crate) const LOAD_REST: Duration = Duration::from_millis(250);
/// And when too many threads want to run just now, at first; twice as long each time, up to the above.
const CROWD_REST: Duration = Duration::from_millis(4);
/// How often it looks how many do.
const CROWD_LOOK: Duration = Duration::from_millis(1);

/// Why the next chunk has to wait, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// The load average is above `load`, or so many threads want to run.
    Load(Duration),
    /// `cpu_share` or `bytes_per_second`.
    Limits(Duration),
}

/// The rules and when the next chunk may begin by them.
#[derive(Debug)]
pub struct Pace {
    scrub: Scrub,
    next: Instant,
    /// When it may look again whether others want to run.
    look: Instant,
    /// How long it rests if they do.
    crowd_rest: Duration,
}

impl Pace {
    /// Nothing has been zeroed yet.
    #[must_use]
    pub fn new(scrub: Scrub) -> Pace {
        let now = Instant::now();
        Pace { scrub, next: now, look: now, crowd_rest: CROWD_REST }
    }

    /// What the next chunk has to wait for, if a CPU does it; `None` if it may begin.
    #[must_use]
    pub fn rest(&mut self, uses_cpu: bool) -> Option<Rest> {
        if uses_cpu && os::load() > self.scrub.load {
            return Some(Rest::Load(LOAD_REST));
        }
        let now = Instant::now();
        if uses_cpu && now >= self.look {
            self.look = now + CROWD_LOOK;
            // This thread is among them.
            if os::runnable().is_some_and(|running| running > self.scrub.load) {
                let rest = self.crowd_rest;
                self.crowd_rest = (rest * 2).min(LOAD_REST);
                return Some(Rest::Load(rest));
            }
            self.crowd_rest = CROWD_REST;
        }
        let wait = self.next.saturating_duration_since(now);
        (!wait.is_zero()).then_some(Rest::Limits(wait))
    }

    /// A chunk was begun then, used that CPU time and had so many bytes.
    pub fn spent(&mut self, begun: Instant, used: Duration, bytes: usize) {
        let mut least = used.div_f64(self.scrub.cpu_share);
        if self.scrub.bytes_per_second != 0 {
            let seconds = bytes as f64 / self.scrub.bytes_per_second as f64;
            least = least.max(Duration::from_secs_f64(seconds));
        }
        self.next = begun + least;
    }

    /// Nothing may begin before that.
    pub(crate) fn rest_until(&mut self, then: Instant) {
        self.next = then;
    }
}
