//! One call site's trial. A single state machine, and so one long file: every transition
//! is read beside the others and against this diagram.
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
//!   what was decided. A pair is two blocks of successive calls, one each way, as long as each other,
//!   in an order that a coin decides; how many calls lie between pairs is random too, so that no
//!   period of the program keeps in step with a way.
//! - **What is counted.** A block's first intervals on each thread are not: they still hold what
//!   the way before left in the caches, and what its buffers cost to read.
//! - **The same work.** Intervals that hold more copying are longer, whatever the way: a site's calls
//!   have other sizes, and other sites' calls come between. How much longer per byte is learned
//!   from all intervals counted, blind to their ways, and taken from a pair's difference.
//! - **Screening** uses short blocks: of four lengths the one that has told most
//!   for its calls, by how much such differences usually come to. Where a machine drifts that is the
//!   shortest, where a program has a period a longer one. A reader who comes several calls late
//!   escapes them: he meets buffers that were copied the other way. So does what a cache keeps of the
//!   buffers themselves: a shared one takes several times its size to be as one way leaves it, and till
//!   then that way pays for the other. **Confirming** uses blocks of which the first [`LATE`] intervals
//!   do not count, or as many as copy the size of the last-level cache, and decides. Where these are
//!   many, there is no screening.
//! - **What it may cost.** [`Budget`]: a share of the site's time, which is as much of its intervals as of
//!   the bytes copied in them, and a number of calls.
//! - **Watching.** A decided site has a pair of long blocks now and then; it is opened again where they
//!   say the contrary, or where the intervals have become others.

use crate::Way;
use crate::evidence::{ERROR, Evidence, LENGTHS, Pair, Work};

/// Readers up to so many calls late are seen; later ones where calls are small.
pub const LATE: u32 = 8;
/// Intervals at most that blocks which confirm do not count: calls of 64 KiB beside a cache of 32 MiB.
const MOST_SETTLING: u32 = 512;
/// One in so many of these is what they count, but [`LATE`] at least.
const COUNTED_OF_SETTLING: u32 = 4;
/// From so many on, short blocks are about a cache that is never settled, and are not asked.
const SETTLES_LATE: u32 = 2 * LATE;

/// What a trial may cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The most of a site's part of the time that may be lost to calls done the dearer way, for the
    /// sake of learning.
    pub share: f64,
    /// The most calls of a trial that are done otherwise than they would have been; then pairs
    /// become rare.
    pub calls: u32,
    /// Bytes of the last-level cache, as far as one thread can use it; 0 where calls are as large. A
    /// cache takes so many bytes of calls to be as one way leaves it, and blocks that confirm count
    /// behind that only: their calls are more where calls are small, and so is what `calls` allows.
    pub cache: u64,
}

impl Budget {
    /// For a program in service: at most 2 % of the site's part of the time.
    pub const IN_SERVICE: Budget = Budget { share: 0.02, calls: 2048, cache: 0 };
    /// For a run that is there to learn: a number of calls only.
    pub const TRIAL_RUN: Budget = Budget { share: f64::INFINITY, calls: 2048, cache: 0 };

    /// The same on a machine with such a last-level cache.
    #[must_use]
    pub const fn with_cache(self, cache: u64) -> Budget {
        Budget { cache, ..self }
    }
}

/// A pair that nothing is known of is assumed to cost so many intervals more per call: the wrong
/// way takes up to three times as long (seed 001.3).
const UNKNOWN_LOSS: f64 = 2.0;
/// And one that something is known of, at least so many; more as long as only short blocks have
/// spoken, which a late reader's cost escapes.
const LEAST_LOSS: f64 = 0.02;
const LEAST_UNCONFIRMED_LOSS: f64 = 0.25;
/// All that of a site whose bytes are the interval's. Of one that shares it with others, in proportion;
/// but its bytes may be as much dearer than theirs as memory is dearer than a cache.
const DEARER_BYTES: f64 = 4.0;
/// Intervals that a screening block counts, behind one that it does not: with that one, blocks that
/// keep in step with a period of two, four, eight or sixteen calls.
const COUNTED: [u32; LENGTHS - 1] = [1, 3, 7, 15];
/// Where the length of confirming blocks has its usual difference.
const CONFIRMING: usize = LENGTHS - 1;
/// Each length is tried so often before one is preferred, the longest only where the others have
/// not told after so many pairs; and then one in so many pairs is of any length.
const TRIED: u32 = 2;
const LONGEST_AFTER: u32 = 24;
const ANY_LENGTH: u32 = 8;
/// The gap of a site that was decided before and has not been called yet.
const UNDRAWN: u32 = u32::MAX;
/// Calls between pairs where nothing holds them back: below this.
const GAP: u32 = 4;
/// Screening starts anew after so many pairs: what has not told by then is about other times.
const MOST_SCREENED: u32 = 512;
/// The error at which long blocks agree with short ones, and at which they decide by themselves.
const CONFIRMING_ERROR: f64 = 0.03;
const ALONE_ERROR: f64 = 0.000_5;
const MOST_CONFIRMED: u32 = 64;
/// A watched site's calls between pairs, per call of a pair: half of these are done otherwise.
const WATCH: u32 = 50;
/// Evidence to the contrary at which a decided site is opened again.
const REOPEN_ERROR: f64 = 0.01;
const MOST_WATCHED: u32 = 64;
/// A decided site's cost has become another: by more than this factor and so many usual differences,
/// in so many pairs running.
const DRIFT: f64 = 1.35;
const DRIFT_OF_USUAL: f64 = 3.0;
const DRIFTING_PAIRS: u32 = 3;
/// What a pair costs on the way that was decided is known after so many; the mean of about as many,
/// none of which counts for more than twice it.
const COST_KNOWN: u32 = 4;

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
    /// decided before, as long as the process lives.
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
    /// Bytes of the thread's calls when it began; 0 where that is not known.
    bytes: u64,
    block: u32,
    intervals: u32,
}

/// A call, as its thread sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its bytes.
    pub n: usize,
    /// Bytes of all large calls of the thread before it, at whatever site.
    pub before: u64,
}

/// A block's mean interval, and the mean work in one.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    time: f64,
    work: f64,
}

impl Clock {
    /// Not running.
    pub const STOPPED: Clock = Clock { began: 0, bytes: 0, block: 0, intervals: 0 };

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
    /// The pair's first block, once it is complete.
    first: Option<Block>,
    /// Calls before the next pair.
    gap: u32,
    /// Intervals a block counts, and on each thread does not count before.
    target: u32,
    skipped: u32,
    /// Which of the lengths that is.
    length: usize,
    /// Which one the next screening pair has, once that is drawn.
    drawn: Option<usize>,
    sum: u64,
    sum_bytes: u64,
    counted: u32,
    block_calls: u32,
    /// Bytes of the last call.
    bytes: f64,
    work: Work,

    screening: Evidence,
    confirming: Evidence,
    watching: Evidence,
    /// Everything since the trial was opened, for those who ask.
    all: Evidence,
    /// What a block of the incumbent's way usually costs, of so many.
    cost: f64,
    cost_count: u32,
    /// What it cost when that was decided.
    decided_cost: Option<f64>,
    drifting: u32,

    calls: u64,
    /// Of this process's calls, those whose thread's last call here is known; the site's part of the
    /// time since then, in intervals; and the bytes of all calls since then.
    timed: f64,
    time: f64,
    passed: f64,
    /// Intervals that blocks which confirm do not count.
    settling: u32,
    /// Calls of the running pair that were done otherwise.
    otherwise: u32,
    /// Calls of this trial, and of all, that were done otherwise than the incumbent says.
    explored: u32,
    explored_ever: u64,
    /// Intervals' worth of time lost so far.
    lost: f64,
    reopened: u32,
}

impl Trial {
    /// One that has not [begun](Trial::begin).
    pub const BLANK: Trial = Trial {
        random: 1,
        usual: Way::Temporal,
        stage: Stage::Screening,
        why: Why::TooFew,
        decided: None,
        block: 0,
        running: None,
        first: None,
        gap: 0,
        target: 0,
        skipped: 0,
        length: 0,
        drawn: None,
        sum: 0,
        sum_bytes: 0,
        counted: 0,
        block_calls: 0,
        bytes: 0.0,
        work: Work::NONE,
        screening: Evidence::NONE,
        confirming: Evidence::NONE,
        watching: Evidence::NONE,
        all: Evidence::NONE,
        cost: 0.0,
        cost_count: 0,
        decided_cost: None,
        drifting: 0,
        calls: 0,
        timed: 0.0,
        time: 0.0,
        passed: 0.0,
        settling: LATE,
        otherwise: 0,
        explored: 0,
        explored_ever: 0,
        lost: 0.0,
        reopened: 0,
    };

    /// A site nothing is known of. `usual` is the way the profile goes.
    #[must_use]
    pub fn new(usual: Way, seed: u64) -> Trial {
        let mut trial = Trial::BLANK;
        trial.begin(usual, seed);
        trial
    }

    /// Begins a blank one, where it lies: a signal handler's stack may have no room for another.
    pub fn begin(&mut self, usual: Way, seed: u64) {
        self.random = seed | 1;
        self.usual = usual;
        // The first calls find cold caches and pages that fault.
        self.gap = 2 + self.below(4);
    }

    /// A site that an earlier run has left like this.
    #[must_use]
    pub fn resume(usual: Way, seed: u64, left: &Left) -> Trial {
        let mut trial = Trial::new(usual, seed);
        trial.go_on_from(left);
        trial
    }

    /// Goes on where an earlier run has left it.
    pub fn go_on_from(&mut self, left: &Left) {
        self.calls = left.calls;
        self.explored_ever = left.explored;
        self.reopened = left.reopened;
        self.all = left.evidence;
        self.screening = left.screening;
        self.confirming = left.confirming;
        match left.outcome {
            Outcome::Decided(way) => {
                self.stage = Stage::Decided;
                self.decided = Some(way);
                self.gap = UNDRAWN;
            }
            Outcome::CannotTell(why) => {
                self.why = why;
                if left.confirming.pairs() > 0 {
                    self.stage = Stage::Confirming;
                }
            }
        }
    }

    /// Begins a call: closes the thread's interval, and says which way to go; `None` is the
    /// profile's own choice. `now` is asked for the time where it matters.
    pub fn call(
        &mut self,
        budget: &Budget,
        clock: &mut Clock,
        call: &Call,
        now: impl FnOnce() -> u64,
    ) -> Option<Way> {
        self.calls = self.calls.saturating_add(1);
        self.bytes = call.n as f64;
        let before = clock.bytes;
        clock.bytes = call.before;
        self.time_passes(before, call);
        if self.gap == UNDRAWN {
            // Somewhere between two pairs: a process may have fewer calls than lie between them.
            self.settle(budget);
            let mean = self.watch_mean();
            self.gap = self.below(mean);
        }
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
        self.take(clock, call.before.saturating_sub(before), now);
        self.go_on();
        if let Some(way) = self.running {
            let intervals = if clock.block == self.block { clock.intervals } else { 0 };
            *clock = Clock { began: now, bytes: call.before, block: self.block, intervals };
            self.block_calls += 1;
            if way != self.incumbent() {
                self.otherwise = self.otherwise.saturating_add(1);
                self.explored = self.explored.saturating_add(1);
                self.explored_ever = self.explored_ever.saturating_add(1);
            }
            return Some(way);
        }
        self.decided
    }

    /// The site's part of the thread's interval that ends now: as much of it as of the bytes that were
    /// copied in it. The intervals of the sites of a loop are the same time, which each may lose its
    /// share of only once.
    fn time_passes(&mut self, before: u64, call: &Call) {
        let bytes = call.before.saturating_sub(before);
        if before != 0 && bytes != 0 {
            self.timed += 1.0;
            self.passed += bytes as f64;
            self.time += (call.n as f64 / bytes as f64).min(1.0);
        }
    }

    /// The thread's interval that ends now, with so many bytes copied in it.
    fn take(&mut self, clock: &mut Clock, bytes: u64, now: u64) {
        if clock.block != self.block {
            return;
        }
        if clock.intervals < self.skipped {
            clock.intervals += 1;
        } else {
            let time = now.saturating_sub(clock.began);
            self.sum = self.sum.saturating_add(time);
            self.sum_bytes = self.sum_bytes.saturating_add(bytes);
            self.counted += 1;
            self.work.add(bytes as f64, time as f64);
        }
    }

    /// Ends the block, and the pair, where that is due.
    fn go_on(&mut self) {
        let Some(way) = self.running else { return };
        if self.counted < self.target {
            // Threads that come once and never again would keep a block open for ever.
            if self.block_calls > 64 + 16 * (self.target + self.skipped) {
                self.running = None;
                self.lost += self.likely_loss() * f64::from(self.otherwise);
                // Whatever keeps them from coming again is likely to go on.
                self.gap = self.watch_gap();
            }
            return;
        }
        let mean = |sum: u64| sum as f64 / f64::from(self.counted);
        let block = Block { time: mean(self.sum), work: mean(self.sum_bytes) };
        match self.first.take() {
            None => {
                self.first = Some(block);
                self.begin_block(way.other());
            }
            Some(first) => {
                self.running = None;
                // The block that ended is of the way `way`.
                let (temporal, non_temporal) = match way {
                    Way::Temporal => (block, first),
                    Way::NonTemporal => (first, block),
                };
                self.end_pair(&Pair {
                    temporal: temporal.time,
                    non_temporal: non_temporal.time,
                    other_work: self.work.per_byte() * (temporal.work - non_temporal.work),
                    bytes: self.bytes,
                    length: self.length,
                });
            }
        }
    }

    /// How long caches take to be as a way leaves them, in intervals.
    fn settle(&mut self, budget: &Budget) {
        let interval = if self.timed > 0.0 { self.passed / self.timed } else { self.bytes };
        let intervals = (budget.cache as f64 / interval.max(1.0)) as u32;
        self.settling = intervals.clamp(LATE, MOST_SETTLING);
    }

    /// Intervals that blocks which confirm count.
    fn counted_settled(&self) -> u32 {
        (self.settling / COUNTED_OF_SETTLING).max(LATE)
    }

    fn begin_pair(&mut self, budget: &Budget) -> bool {
        self.settle(budget);
        if self.stage == Stage::Screening && self.settling >= SETTLES_LATE {
            self.stage = Stage::Confirming;
            (self.screening, self.confirming) = (Evidence::NONE, Evidence::NONE);
        }
        (self.target, self.skipped, self.length) = match self.stage {
            // Short blocks would say of a late reader what the trial has refuted.
            Stage::Confirming | Stage::Decided => {
                (self.counted_settled(), self.settling, CONFIRMING)
            }
            Stage::Screening => {
                // Drawn once: redrawn at each call that cannot afford it, it would be the shortest.
                let length = self.drawn.unwrap_or_else(|| self.telling());
                self.drawn = Some(length);
                (COUNTED[length], 1, length)
            }
        };
        // However little: what is not limited is not limited from the start.
        let time = self.time.max(f64::MIN_POSITIVE);
        if self.lost + self.length() * self.likely_loss() > budget.share * time {
            return false;
        }
        self.drawn = None;
        let calls = budget.calls.saturating_mul(self.settling / LATE);
        if self.explored > calls && self.stage != Stage::Decided {
            // The trial has had its calls.
            self.give_up();
            return false;
        }
        let way = if self.below(2) == 0 { Way::Temporal } else { Way::NonTemporal };
        (self.first, self.otherwise) = (None, 0);
        self.begin_block(way);
        true
    }

    /// The length of a screening block.
    fn telling(&mut self) -> usize {
        let longest = self.screening.pairs() >= LONGEST_AFTER;
        let lengths = COUNTED.len() - usize::from(!longest);
        let usual = |length: &usize| self.screening.usual(*length);
        if let Some(untried) = (0..lengths).find(|length| usual(length).count < TRIED) {
            return untried;
        }
        let pays = |length: &usize| {
            let calls = 2 * (COUNTED[*length] + 1) + GAP / 2;
            usual(length).size * usual(length).size * f64::from(calls)
        };
        let best = (0..lengths).min_by(|a, b| pays(a).total_cmp(&pays(b)));
        match self.below(ANY_LENGTH) {
            0 => self.below(lengths as u32) as usize,
            _ => best.unwrap_or(0),
        }
    }

    /// Calls of a block that cost what its way costs, with one thread. The way back is paid too: the
    /// first calls after a block find the caches as it left them.
    fn length(&self) -> f64 {
        f64::from(self.target + self.skipped + 2)
    }

    fn begin_block(&mut self, way: Way) {
        self.block = self.block.wrapping_add(1).max(1);
        self.running = Some(way);
        (self.sum, self.sum_bytes, self.counted, self.block_calls) = (0, 0, 0, 0);
    }

    /// The way calls go between pairs.
    fn incumbent(&self) -> Way {
        self.decided.unwrap_or(self.usual)
    }

    /// How much dearer than the incumbent the other way is, by temporal less non-temporal.
    fn dearer(&self, difference: f64) -> f64 {
        match self.incumbent() {
            Way::Temporal => -difference,
            Way::NonTemporal => difference,
        }
    }

    /// What a call done the other way is likely to cost more, in intervals, with a margin for what
    /// is not known.
    fn likely_loss(&self) -> f64 {
        let known = match self.stage {
            Stage::Decided if self.all.pairs() >= 3 => &self.all,
            Stage::Confirming if self.screening.pairs() == 0 => &self.confirming,
            _ => &self.screening,
        };
        let unknown = UNKNOWN_LOSS * self.part();
        if known.pairs() < 3 {
            return unknown;
        }
        let dearer = self.dearer(known.difference.mean()) + 2.0 * known.difference.error();
        let mean = known.costs[self.incumbent() as usize].mean();
        let least = self.least_loss();
        if mean > 0.0 { (dearer / mean).clamp(least, UNKNOWN_LOSS) } else { unknown }
    }

    fn least_loss(&self) -> f64 {
        let least =
            if self.stage == Stage::Screening { LEAST_UNCONFIRMED_LOSS } else { LEAST_LOSS };
        least * self.part()
    }

    /// How much of an interval can be this site's.
    fn part(&self) -> f64 {
        if self.timed > 0.0 { (DEARER_BYTES * self.time / self.timed).min(1.0) } else { 1.0 }
    }

    fn end_pair(&mut self, pair: &Pair) {
        let cost = match self.incumbent() {
            Way::Temporal => pair.temporal,
            Way::NonTemporal => pair.non_temporal,
        };
        self.cost_count = (self.cost_count + 1).min(COST_KNOWN);
        let within = if self.cost_count == 1 { cost } else { cost.min(2.0 * self.cost) };
        self.cost += (within - self.cost) / f64::from(self.cost_count);
        if cost > 0.0 {
            let dearer = self.dearer(pair.difference());
            let lost = (dearer / cost).clamp(self.least_loss(), UNKNOWN_LOSS);
            // Each thread's first intervals are not counted, so that many threads make more calls.
            self.lost += lost * f64::from(self.otherwise.max(self.target + self.skipped) + 2);
        }
        if self.stage != Stage::Decided {
            self.all.add(pair);
        }
        match self.stage {
            Stage::Screening => self.screened(pair),
            Stage::Confirming => self.confirmed(pair),
            Stage::Decided => self.watched(pair, cost),
        }
        self.next_gap();
    }

    fn screened(&mut self, pair: &Pair) {
        self.screening.add(pair);
        if self.screening.cheaper(ERROR).is_some() {
            self.stage = Stage::Confirming;
            self.confirming = Evidence::NONE;
        } else if self.screening.pairs() >= MOST_SCREENED {
            self.give_up();
        }
    }

    fn confirmed(&mut self, pair: &Pair) {
        self.confirming.add(pair);
        let (short, long) = (&self.screening, &self.confirming);
        let screened = short.pairs() > 0;
        let agreed = long.cheaper(CONFIRMING_ERROR);
        let agreed = agreed.filter(|way| screened && *way == short.leaning());
        if let Some(way) = agreed.or_else(|| long.cheaper(ALONE_ERROR)) {
            self.decide(way);
        } else if long.pairs() >= MOST_CONFIRMED {
            self.give_up();
        }
    }

    fn decide(&mut self, way: Way) {
        self.stage = Stage::Decided;
        self.decided = Some(way);
        // Of what follows: in the trial the caches held what both ways had left.
        (self.cost, self.cost_count, self.decided_cost) = (0.0, 0, None);
        self.drifting = 0;
        self.watching = Evidence::NONE;
    }

    /// Starts anew, slowly.
    fn give_up(&mut self) {
        // Long blocks alone had nothing to confirm.
        let unconfirmed = self.stage == Stage::Confirming && self.screening.pairs() > 0;
        self.screen_again(if unconfirmed { Why::Unconfirmed } else { Why::NoDifference });
        (self.decided, self.drawn) = (None, None);
        self.gap = self.watch_gap();
    }

    fn screen_again(&mut self, why: Why) {
        (self.stage, self.why) = (Stage::Screening, why);
        (self.screening, self.confirming) = (Evidence::NONE, Evidence::NONE);
        (self.explored, self.work) = (0, Work::NONE);
    }

    fn watched(&mut self, pair: &Pair, cost: f64) {
        let Some(way) = self.decided else { return };
        self.watching.add(pair);
        let drifts = self.decided_cost.is_some_and(|decided| {
            let ratio = cost / decided.max(f64::MIN_POSITIVE);
            let apart = (cost - decided).abs();
            !(1.0 / DRIFT..=DRIFT).contains(&ratio)
                && apart > DRIFT_OF_USUAL * self.all.usual(pair.length).size
        });
        self.drifting = if drifts { self.drifting + 1 } else { 0 };
        if self.decided_cost.is_none() && self.cost_count >= COST_KNOWN {
            self.decided_cost = Some(self.cost);
        }
        let contrary = self.watching.for_way(way.other());
        if contrary >= -libm::log(REOPEN_ERROR) || self.drifting >= DRIFTING_PAIRS {
            self.screen_again(Why::Reopened);
            self.reopened += 1;
            self.all = Evidence::NONE;
        } else if contrary < -1.0 || self.watching.pairs() >= MOST_WATCHED {
            // Nothing contrary so far: begin again, so that a change is not outweighed by the past.
            self.watching = Evidence::NONE;
        }
    }

    fn next_gap(&mut self) {
        let slow = match self.stage {
            Stage::Decided => true,
            Stage::Confirming if self.screening.pairs() > 0 => false,
            _ => matches!(self.why, Why::NoDifference | Why::Unconfirmed),
        };
        self.gap = if slow { self.watch_gap() } else { self.below(GAP) };
    }

    fn watch_gap(&mut self) -> u32 {
        let mean = self.watch_mean();
        mean / 2 + self.below(mean)
    }

    /// Calls between the pairs of a watched site, on average.
    fn watch_mean(&self) -> u32 {
        let block = match self.stage {
            Stage::Decided => self.counted_settled() + self.settling,
            // Of the pair before; where there is none, as short as can be.
            _ => (self.target + self.skipped).max(COUNTED[0] + 1),
        };
        WATCH * 2 * block
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
