//! A pool's statistics.

use crate::buddy::ORDERS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What the scrubber is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ScrubberState {
    /// There is none.
    #[default]
    Off = 0,
    /// Nothing is dirty and large enough; it waits without using the CPU.
    Idle = 1,
    /// Zeroing, or waiting its turn by the limits set.
    Working = 2,
    /// It rests: the load is above its limit.
    Load = 3,
    /// It rests: there was no request for zeroed memory for long.
    Unused = 4,
    /// Told to pause.
    Paused = 5,
}

impl ScrubberState {
    pub(crate) fn from_code(code: u8) -> ScrubberState {
        match code {
            1 => ScrubberState::Idle,
            2 => ScrubberState::Working,
            3 => ScrubberState::Load,
            4 => ScrubberState::Unused,
            5 => ScrubberState::Paused,
            _ => ScrubberState::Off,
        }
    }
}

/// One order's share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderStats {
    /// Free dirty blocks.
    pub dirty: u64,
    /// Free blocks that are zero and resident.
    pub zero_resident: u64,
    /// Free blocks that are zero and will fault.
    pub zero_absent: u64,
    /// Zeroed requests served by a block that was zero and resident.
    pub zero_hits: u64,
    /// Zeroed requests that had to be zeroed or faulted in.
    pub zero_misses: u64,
}

/// A pool's figures at one moment. Bytes unless the name says otherwise. `allocated`, `cached`,
/// `dirty`, `in_flight`, `zero_resident`, `zero_absent` and `quarantined` add up to `managed`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// What the pool may grow to.
    pub capacity: u64,
    /// What it has grown to.
    pub managed: u64,
    /// Allocated by the program.
    pub allocated: u64,
    /// In per-thread caches.
    pub cached: u64,
    /// Free, contents unknown.
    pub dirty: u64,
    /// Being zeroed or returned to the system.
    pub in_flight: u64,
    /// Free, zero, resident.
    pub zero_resident: u64,
    /// Free, zero, not resident: will fault.
    pub zero_absent: u64,
    /// Withdrawn at the moment.
    pub quarantined: u64,
    /// Not known to be absent: the most that the pool holds of the machine's memory.
    pub resident: u64,
    /// Zeroed requests served by a block that was zero and resident.
    pub zero_hits: u64,
    /// Zeroed requests that had to be zeroed or faulted in.
    pub zero_misses: u64,
    /// Dirty requests served.
    pub dirty_allocations: u64,
    /// Blocks taken back.
    pub frees: u64,
    /// Zeroed at hand-out.
    pub hot_zeroed: u64,
    /// Faulted in at hand-out.
    pub populated: u64,
    /// Made resident in the background before it was asked for.
    pub grown_ahead: u64,
    /// Zeroed in the background or by `scrub_now`.
    pub scrubbed: u64,
    /// CPU time of that, including the scrubber's own bookkeeping.
    pub scrub_cpu: Duration,
    /// Zeroed for nothing: handed out as dirty, or merged into a dirty block.
    pub wasted: u64,
    /// Returned to the system.
    pub trimmed: u64,
    /// Number of huge pages of which a part was returned to the system; the rest of each is small
    /// pages. Without huge pages, areas of that size are counted.
    pub huge_broken: u64,
    /// Withdrawn since the start.
    pub quarantined_ever: u64,
    /// Batches that an engine failed to zero: errors, deadlines, blocks reported as zero that were not.
    pub engine_faults: u64,
    /// Blocks read by `verify`.
    pub verified: u64,
    /// Blocks that were not zero when they should have been.
    pub verify_failed: u64,
    /// How often the pool's lock was taken.
    pub lock_holds: u64,
    /// What the scrubber is doing.
    pub scrubber: ScrubberState,
    /// How often this process's scrubber found the load too high to work.
    pub load_rests: u64,
    /// By order.
    pub orders: [OrderStats; ORDERS],
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes at this moment.
    Bytes,
    /// Bytes so far.
    BytesSoFar,
    /// Events or blocks so far.
    TimesSoFar,
    /// Nanoseconds so far.
    NanosecondsSoFar,
}

/// How many figures there are but for those by order and the scrubber's state.
pub const FIGURES: usize = 28;

impl Stats {
    /// Every figure with its name, in the order of `cw_pool_stats`, where new ones come last.
    #[must_use]
    pub fn figures(&self) -> [(&'static str, Unit, u64); FIGURES] {
        let scrub_cpu_ns = u64::try_from(self.scrub_cpu.as_nanos()).unwrap_or(u64::MAX);
        // Named without a rest: a new one does not compile before it is here.
        let Stats {
            capacity,
            managed,
            allocated,
            cached,
            dirty,
            in_flight,
            zero_resident,
            zero_absent,
            quarantined,
            resident,
            zero_hits,
            zero_misses,
            dirty_allocations,
            frees,
            hot_zeroed,
            populated,
            grown_ahead,
            scrubbed,
            scrub_cpu: _,
            wasted,
            trimmed,
            huge_broken,
            quarantined_ever,
            engine_faults,
            verified,
            verify_failed,
            lock_holds,
            scrubber: _,
            load_rests,
            orders: _,
        } = *self;
        use Unit::{Bytes, BytesSoFar, NanosecondsSoFar, TimesSoFar};
        [
            ("capacity", Bytes, capacity),
            ("managed", Bytes, managed),
            ("allocated", Bytes, allocated),
            ("cached", Bytes, cached),
            ("dirty", Bytes, dirty),
            ("in_flight", Bytes, in_flight),
            ("zero_resident", Bytes, zero_resident),
            ("zero_absent", Bytes, zero_absent),
            ("quarantined", Bytes, quarantined),
            ("resident", Bytes, resident),
            ("zero_hits", TimesSoFar, zero_hits),
            ("zero_misses", TimesSoFar, zero_misses),
            ("dirty_allocations", TimesSoFar, dirty_allocations),
            ("frees", TimesSoFar, frees),
            ("hot_zeroed", BytesSoFar, hot_zeroed),
            ("populated", BytesSoFar, populated),
            ("scrubbed", BytesSoFar, scrubbed),
            ("scrub_cpu_ns", NanosecondsSoFar, scrub_cpu_ns),
            ("wasted", BytesSoFar, wasted),
            ("trimmed", BytesSoFar, trimmed),
            ("verified", TimesSoFar, verified),
            ("verify_failed", TimesSoFar, verify_failed),
            ("grown_ahead", BytesSoFar, grown_ahead),
            ("huge_broken", TimesSoFar, huge_broken),
            ("quarantined_ever", BytesSoFar, quarantined_ever),
            ("engine_faults", TimesSoFar, engine_faults),
            ("lock_holds", TimesSoFar, lock_holds),
            ("load_rests", TimesSoFar, load_rests),
        ]
    }

    /// Adds those of another pool. The state of the scrubber is that of the busier one.
    pub(crate) fn add(&mut self, other: &Stats) {
        // The other's fields are named without a rest: a new one does not compile before it is
        // added.
        macro_rules! sum {
            ($Type:ident, $of:expr, $other:expr, $($field:ident),+; $($apart:ident),*) => {
                let $Type { $($field,)+ $($apart),* } = $other;
                $($of.$field += *$field;)+
            };
        }
        sum!(
            Stats,
            self,
            other,
            capacity,
            managed,
            allocated,
            cached,
            dirty,
            in_flight,
            zero_resident,
            zero_absent,
            quarantined,
            resident,
            zero_hits,
            zero_misses,
            dirty_allocations,
            frees,
            hot_zeroed,
            populated,
            grown_ahead,
            scrubbed,
            scrub_cpu,
            wasted,
            trimmed,
            huge_broken,
            quarantined_ever,
            engine_faults,
            verified,
            verify_failed,
            lock_holds,
            load_rests;
            scrubber,
            orders
        );
        if *scrubber == ScrubberState::Working || self.scrubber == ScrubberState::Off {
            self.scrubber = *scrubber;
        }
        for (own, other) in self.orders.iter_mut().zip(orders) {
            sum!(OrderStats, own, other, dirty, zero_resident, zero_absent, zero_hits, zero_misses;);
        }
    }
}

/// Counters of what happened, in memory that processes may share.
#[repr(C)]
pub(crate) struct Events {
    pub(crate) zero_hits: [AtomicU64; ORDERS],
    pub(crate) zero_misses: [AtomicU64; ORDERS],
    pub(crate) dirty_allocations: AtomicU64,
    pub(crate) frees: AtomicU64,
    pub(crate) hot_zeroed: AtomicU64,
    pub(crate) populated: AtomicU64,
    pub(crate) grown_ahead: AtomicU64,
    pub(crate) huge_broken: AtomicU64,
    pub(crate) scrubbed: AtomicU64,
    pub(crate) scrub_cpu_ns: AtomicU64,
    pub(crate) wasted: AtomicU64,
    pub(crate) trimmed: AtomicU64,
    pub(crate) quarantined_ever: AtomicU64,
    pub(crate) engine_faults: AtomicU64,
    pub(crate) verified: AtomicU64,
    pub(crate) verify_failed: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

pub(crate) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
