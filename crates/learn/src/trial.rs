//! One call site's trial.
//!
//! ```text
//!            enough evidence          long blocks agree
//! screening ----------------> confirming ------------> decided --> watched, now and then
//!     ^  \                        |                                    |
//!     |   \  too many calls       | they do not                        | drifts
//!     |    `--> cannot tell <-----'                                    |
//!     `-- slowly, from there too ---------------------------------------
//! ```
//!
//! - **Pairs of blocks.** Between pairs, calls are done as the *incumbent* says: the profile, or
//!   what was decided. A pair is two blocks of successive calls, one each way, in random order, as
//!   long as each other; how long, and how many calls lie between pairs, is random, so that no
//!   period of the program keeps in step.
//! - **What is counted.** A block's first intervals on each thread are not: they still hold what
//!   the way before left in the caches, and what its buffers cost to read.
//! - **Screening** uses short blocks. A reader who comes several calls late escapes them: he meets
//!   buffers that were copied the other way. **Confirming** uses blocks of which the first
//!   [`LATE`] intervals do not count, and decides.
//! - **What it may cost.** [`Budget`]: a share of the site's time, and a number of calls.
//! - **Watching.** A decided site has a pair now and then; it is opened again where they say the
//!   contrary, or where the intervals have become others.

use crate::Way;
use crate::evidence::{ERROR, Evidence};

/// Readers up to so many calls late are seen.
pub const LATE: u32 = 8;

/// What a trial may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The most of a site's time that may be lost to calls done the dearer way, for the sake of
    /// learning.
    pub share: f64,
    /// The most calls of a trial that are done otherwise than they would have been; then pairs
    /// become rare.
    pub calls: u32,
}

impl Budget {
    /// For a program in service: at most 2 % of the site's time.
    pub const IN_SERVICE: Budget = Budget { share: 0.02, calls: 2048 };
    /// For a run that is there to learn: a number of calls only.
    pub const TRIAL_RUN: Budget = Budget { share: f64::INFINITY, calls: 2048 };
}

/// A pair that nothing is known of is assumed to cost so many intervals more per call: the wrong
/// way takes up to three times as long (seed 001.3).
const UNKNOWN_LOSS: f64 = 2.0;
/// And one that something is known of, at least so many; more as long as only short blocks have
/// spoken, which a late reader's cost escapes.
const LEAST_LOSS: f64 = 0.02;
const LEAST_UNCONFIRMED_LOSS: f64 = 0.25;
/// Screening starts anew after so many pairs: what has not told by then is about other times.
const MOST_SCREENED: u32 = 96;
/// The error at which long blocks, by themselves, agree with short ones.
const CONFIRMING_ERROR: f64 = 0.02;
const MOST_CONFIRMED: u32 = 32;
/// A watched site's calls between pairs, per call of a pair.
const WATCH: u32 = 100;
/// Evidence to the contrary at which a decided site is opened again.
const REOPEN_ERROR: f64 = 0.01;
const MOST_WATCHED: u32 = 64;
/// A decided site's cost has become another: by more than this factor, in so many pairs running.
const DRIFT: f64 = 1.35;
const DRIFTING_PAIRS: u32 = 3;

/// Where a trial stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// One way is cheaper.
    Decided(Way),
    /// Not decided, for this reason; calls are done as the profile says.
    CannotTell(Why),
}

/// Why a trial cannot tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// It has not ended: the site was called too seldom.
    TooFew = 0,
    /// The difference is too small for the noise, or none.
    NoDifference = 1,
    /// Long blocks did not confirm what short ones said.
    Unconfirmed = 2,
    /// It was decided, and is open again: the program does something else now. Calls are done as was
    /// decided before.
    Reopened = 3,
}

impl Why {
    /// All of them.
    pub const ALL: [Why; 4] = [Why::TooFew, Why::NoDifference, Why::Unconfirmed, Why::Reopened];

    /// One word for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Why::TooFew => "too-few-calls",
            Why::NoDifference => "no-difference",
            Why::Unconfirmed => "unconfirmed",
            Why::Reopened => "reopened",
        }
    }

    /// The reason of that [name](Why::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Why> {
        Why::ALL.into_iter().find(|why| why.name() == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Screening,
    Confirming,
    Decided,
}

/// One thread's clock for one site: when its last call began, in which block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    began: u64,
    block: u32,
    intervals: u32,
}

impl Clock {
    /// Not running.
    pub const STOPPED: Clock = Clock { began: 0, block: 0, intervals: 0 };

    /// The interval that is running will not count.
    pub fn stop(&mut self) {
        self.block = 0;
    }
}

/// One site's trial.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    random: u64,
    usual: Way,
    stage: Stage,
    why: Why,
    /// Decided, now or before a trial that was opened again.
    decided: Option<Way>,

    /// Number of the block, from 1; 0 is none.
    block: u32,
    /// The way of the running block; none between pairs.
    running: Option<Way>,
    /// The mean interval of the pair's first block, once it is complete.
    first: Option<f64>,
    /// Calls before the next pair.
    gap: u32,
    /// Intervals a block counts, and on each thread does not count before.
    target: u32,
    skipped: u32,
    sum: u64,
    counted: u32,
    block_calls: u32,

    screening: Evidence,
    confirming: Evidence,
    watching: Evidence,
    /// Everything since the trial was opened, for those who ask.
    all: Evidence,
    decided_cost: f64,
    drifting: u32,

    calls: u64,
    /// Calls of this trial, and of all, that were done otherwise than the incumbent says.
    explored: u32,
    explored_ever: u64,
    /// Intervals' worth of time lost so far.
    lost: f64,
    reopened: u32,
}

impl Trial {
    /// A site nothing is known of. `usual` is the way the profile goes.
    #[must_use]
    pub fn new(usual: Way, seed: u64) -> Trial {
        let mut trial = Trial {
            random: seed | 1,
            usual,
            stage: Stage::Screening,
            why: Why::TooFew,
            decided: None,
            block: 0,
            running: None,
            first: None,
            gap: 0,
            target: 0,
            skipped: 0,
            sum: 0,
            counted: 0,
            block_calls: 0,
            screening: Evidence::NONE,
            confirming: Evidence::NONE,
            watching: Evidence::NONE,
            all: Evidence::NONE,
            decided_cost: 0.0,
            drifting: 0,
            calls: 0,
            explored: 0,
            explored_ever: 0,
            lost: 0.0,
            reopened: 0,
        };
        // The first calls find cold caches and pages that fault.
        trial.gap = 2 + trial.below(4);
        trial
    }

    /// A site that an earlier run has left like this.
    #[must_use]
    pub fn resume(usual: Way, seed: u64, left: &Left) -> Trial {
        let mut trial = Trial::new(usual, seed);
        trial.calls = left.calls;
        trial.explored_ever = left.explored;
        trial.reopened = left.reopened;
        trial.all = left.evidence;
        trial.screening = left.screening;
        trial.confirming = left.confirming;
        match left.outcome {
            Outcome::Decided(way) => {
                trial.stage = Stage::Decided;
                trial.decided = Some(way);
                trial.decided_cost = left.evidence.costs[way as usize].mean();
                trial.gap = trial.watch_gap();
            }
            Outcome::CannotTell(why) => {
                trial.why = why;
                if left.confirming.pairs() > 0 {
                    trial.stage = Stage::Confirming;
                }
            }
        }
        trial
    }

    /// Begins a call: closes the thread's interval, and says which way to go; `None` is the
    /// profile's own choice. `now` is asked for the time where it matters.
    pub fn call(
        &mut self,
        budget: &Budget,
        clock: &mut Clock,
        now: impl FnOnce() -> u64,
    ) -> Option<Way> {
        self.calls += 1;
        if self.running.is_none() {
            if self.gap > 0 {
                self.gap -= 1;
                return self.decided;
            }
            if !self.begin_pair(budget) {
                return self.decided;
            }
        }
        let now = now();
        self.take(clock, now);
        self.go_on();
        if let Some(way) = self.running {
            if clock.block != self.block {
                *clock = Clock { began: now, block: self.block, intervals: 0 };
            }
            clock.began = now;
            self.block_calls += 1;
            if way != self.decided.unwrap_or(self.usual) {
                self.explored += 1;
                self.explored_ever += 1;
            }
            return Some(way);
        }
        self.decided
    }

    /// The thread's interval that ends now.
    fn take(&mut self, clock: &mut Clock, now: u64) {
        if clock.block != self.block {
            return;
        }
        if clock.intervals < self.skipped {
            clock.intervals += 1;
        } else {
            self.sum = self.sum.saturating_add(now.saturating_sub(clock.began));
            self.counted += 1;
        }
    }

    /// Ends the block, and the pair, where that is due.
    fn go_on(&mut self) {
        let Some(way) = self.running else { return };
        if self.counted < self.target {
            // Threads that come once and never again would keep a block open for ever.
            if self.block_calls > 64 + 16 * (self.target + self.skipped) {
                self.running = None;
                self.next_gap();
            }
            return;
        }
        let mean = self.sum as f64 / f64::from(self.counted);
        match self.first.take() {
            None => {
                self.first = Some(mean);
                self.begin_block(way.other());
            }
            Some(first) => {
                self.running = None;
                // The block that ended is of the way `way`.
                let (temporal, non_temporal) = match way {
                    Way::Temporal => (mean, first),
                    Way::NonTemporal => (first, mean),
                };
                self.end_pair(temporal, non_temporal);
            }
        }
    }

    fn begin_pair(&mut self, budget: &Budget) -> bool {
        let (target, skipped) = match self.stage {
            Stage::Confirming => (LATE + self.below(5), LATE),
            Stage::Decided => (1 + self.below(4), 1),
            // What short blocks do not tell apart, longer ones may: a period's work averages out.
            Stage::Screening => match self.screening.pairs() {
                0..32 => (1 + self.below(4), 1),
                32..64 => (4 + self.below(8), 2),
                _ => (8 + self.below(24), LATE),
            },
        };
        (self.target, self.skipped) = (target, skipped);
        let length = self.length();
        if self.lost + length * self.likely_loss() > budget.share * self.calls as f64 {
            return false;
        }
        if self.explored > budget.calls && self.stage != Stage::Decided {
            // The trial has had its calls.
            self.give_up(if self.stage == Stage::Confirming {
                Why::Unconfirmed
            } else {
                Why::NoDifference
            });
            return false;
        }
        let way = if self.below(2) == 0 { Way::Temporal } else { Way::NonTemporal };
        self.first = None;
        self.begin_block(way);
        true
    }

    /// Calls of a block that cost what its way costs. The way back is paid too: the first calls
    /// after a block find the caches as it left them.
    fn length(&self) -> f64 {
        f64::from(self.target + self.skipped + 2)
    }

    fn begin_block(&mut self, way: Way) {
        self.block = self.block.wrapping_add(1).max(1);
        self.running = Some(way);
        (self.sum, self.counted, self.block_calls) = (0, 0, 0);
    }

    /// What a call done the other way is likely to cost more, in intervals, with a margin for what
    /// is not known.
    fn likely_loss(&self) -> f64 {
        let known = match self.stage {
            Stage::Decided if self.all.pairs() >= 3 => &self.all,
            _ => &self.screening,
        };
        if known.pairs() < 3 {
            return UNKNOWN_LOSS;
        }
        let incumbent = self.decided.unwrap_or(self.usual);
        let dearer = match incumbent {
            Way::Temporal => -known.difference.mean(),
            Way::NonTemporal => known.difference.mean(),
        };
        let dearer = dearer + 2.0 * known.difference.error();
        let mean = known.costs[incumbent as usize].mean();
        let least = self.least_loss();
        if mean > 0.0 { (dearer / mean).clamp(least, UNKNOWN_LOSS) } else { UNKNOWN_LOSS }
    }

    fn least_loss(&self) -> f64 {
        if self.stage == Stage::Screening { LEAST_UNCONFIRMED_LOSS } else { LEAST_LOSS }
    }

    fn end_pair(&mut self, temporal: f64, non_temporal: f64) {
        let (cost, other) = match self.decided.unwrap_or(self.usual) {
            Way::Temporal => (temporal, non_temporal),
            Way::NonTemporal => (non_temporal, temporal),
        };
        if cost > 0.0 {
            let lost = ((other - cost) / cost).clamp(self.least_loss(), UNKNOWN_LOSS);
            self.lost += lost * self.length();
        }
        match self.stage {
            Stage::Screening => {
                self.all.add(temporal, non_temporal);
                self.screened(temporal, non_temporal);
            }
            Stage::Confirming => {
                self.all.add(temporal, non_temporal);
                self.confirmed(temporal, non_temporal);
            }
            Stage::Decided => self.watched(temporal, non_temporal, cost),
        }
        self.next_gap();
    }

    fn screened(&mut self, temporal: f64, non_temporal: f64) {
        self.screening.add(temporal, non_temporal);
        if self.screening.cheaper(ERROR).is_some() {
            self.stage = Stage::Confirming;
            self.confirming = Evidence::NONE;
        } else if self.screening.pairs() >= MOST_SCREENED {
            self.give_up(Why::NoDifference);
        }
    }

    fn confirmed(&mut self, temporal: f64, non_temporal: f64) {
        self.confirming.add(temporal, non_temporal);
        let (short, long) = (&self.screening, &self.confirming);
        let agreed = long.cheaper(CONFIRMING_ERROR).filter(|way| *way == short.leaning());
        if let Some(way) = agreed.or_else(|| long.cheaper(ERROR)) {
            self.decide(way);
        } else if long.pairs() >= MOST_CONFIRMED {
            self.give_up(Why::Unconfirmed);
        }
    }

    fn decide(&mut self, way: Way) {
        self.stage = Stage::Decided;
        self.decided = Some(way);
        self.decided_cost = self.all.costs[way as usize].mean();
        self.drifting = 0;
        self.watching = Evidence::NONE;
    }

    /// Starts anew, slowly.
    fn give_up(&mut self, why: Why) {
        self.stage = Stage::Screening;
        self.why = why;
        self.decided = None;
        self.screening = Evidence::NONE;
        self.confirming = Evidence::NONE;
        self.explored = 0;
        self.gap = self.watch_gap();
    }

    fn watched(&mut self, temporal: f64, non_temporal: f64, cost: f64) {
        let Some(way) = self.decided else { return };
        self.watching.add(temporal, non_temporal);
        let ratio = if self.decided_cost > 0.0 { cost / self.decided_cost } else { 1.0 };
        let drifts = !(1.0 / DRIFT..=DRIFT).contains(&ratio);
        self.drifting = if drifts { self.drifting + 1 } else { 0 };
        let contrary = self.watching.for_way(way.other());
        if contrary >= -libm::log(REOPEN_ERROR) || self.drifting >= DRIFTING_PAIRS {
            self.stage = Stage::Screening;
            self.why = Why::Reopened;
            self.reopened += 1;
            self.explored = 0;
            self.screening = Evidence::NONE;
            self.confirming = Evidence::NONE;
            self.all = Evidence::NONE;
        } else if contrary < -1.0 || self.watching.pairs() >= MOST_WATCHED {
            // Nothing contrary so far: begin again, so that a change is not outweighed by the past.
            self.watching = Evidence::NONE;
        }
    }

    fn next_gap(&mut self) {
        let slow = match self.stage {
            Stage::Decided => true,
            Stage::Confirming => false,
            Stage::Screening => matches!(self.why, Why::NoDifference | Why::Unconfirmed),
        };
        self.gap = if slow { self.watch_gap() } else { self.below(4) };
    }

    fn watch_gap(&mut self) -> u32 {
        // A pair of the short kind is 7 calls on average.
        let mean = WATCH * 7;
        mean / 2 + self.below(mean)
    }

    /// A random number below `n`: xorshift64* (Vigna 2016).
    fn below(&mut self, n: u32) -> u32 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        let high = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        ((high * u64::from(n)) >> 32) as u32
    }

    /// How it stands.
    #[must_use]
    pub fn left(&self) -> Left {
        let outcome = match (self.stage, self.decided) {
            (Stage::Decided, Some(way)) => Outcome::Decided(way),
            _ => Outcome::CannotTell(self.why),
        };
        Left {
            outcome,
            calls: self.calls,
            explored: self.explored_ever,
            reopened: self.reopened,
            evidence: self.all,
            screening: self.screening,
            confirming: self.confirming,
        }
    }

    /// The way calls go between pairs; `None` is the profile's own choice.
    #[must_use]
    pub fn way(&self) -> Option<Way> {
        self.running.or(self.decided)
    }
}

/// What a trial has found so far, and what its next run needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Left {
    /// Where it stands.
    pub outcome: Outcome,
    /// Calls of the site.
    pub calls: u64,
    /// Calls that were done otherwise than they would have been.
    pub explored: u64,
    /// How often it was opened again.
    pub reopened: u32,
    /// All pairs since it was opened.
    pub evidence: Evidence,
    /// Those of the running trial with short blocks, and with long ones.
    pub screening: Evidence,
    /// See there.
    pub confirming: Evidence,
}
