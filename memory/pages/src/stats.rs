//! A pool's statistics.

use crate::buddy::ORDERS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// State of the scrubber.
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
    /// Resting, but for a small share of a CPU: no CPU is idle, or the load is above its limit.
    Load = 3,
    /// Resting: there was no request for zeroed memory for long.
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
    /// Size that the pool may grow to.
    pub capacity: u64,
    /// Size that it has grown to.
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
    /// Quarantined at the moment.
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
    /// Zeroed in the background or by `scrub_now`.
    pub scrubbed: u64,
    /// CPU time of that, including the scrubber's own bookkeeping.
    pub scrub_cpu: Duration,
    /// Zeroed for nothing: handed out as dirty, or merged into a dirty block.
    pub wasted: u64,
    /// Returned to the system.
    pub trimmed: u64,
    /// Blocks read by `verify`.
    pub verified: u64,
    /// Blocks that were not zero when they should have been.
    pub verify_failed: u64,
    /// Quarantined since the start.
    pub quarantined_ever: u64,
    /// Batches that an engine failed to zero: errors, deadlines, blocks reported as zero that were not.
    pub engine_faults: u64,
    /// Number of times that the scrubber rested because no CPU was idle, or the load was above its limit.
    pub load_rests: u64,
    /// State of the scrubber.
    pub scrubber: ScrubberState,
    /// By order.
    pub orders: [OrderStats; ORDERS],
}

/// Counters of what happened.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) zero_hits: [AtomicU64; ORDERS],
    pub(crate) zero_misses: [AtomicU64; ORDERS],
    pub(crate) dirty_allocations: AtomicU64,
    pub(crate) frees: AtomicU64,
    pub(crate) hot_zeroed: AtomicU64,
    pub(crate) populated: AtomicU64,
    pub(crate) scrubbed: AtomicU64,
    pub(crate) scrub_cpu_ns: AtomicU64,
    pub(crate) wasted: AtomicU64,
    pub(crate) trimmed: AtomicU64,
    pub(crate) quarantined_ever: AtomicU64,
    pub(crate) engine_faults: AtomicU64,
    pub(crate) verified: AtomicU64,
    pub(crate) verify_failed: AtomicU64,
    pub(crate) load_rests: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

pub(crate) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
