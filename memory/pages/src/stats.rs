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
    /// It rests, but for a small share of a CPU: no CPU is idle, or the load is above its limit.
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

/// The figures of a pool that are one number, in the order of `cw_pool_stats`, where new ones come last.
macro_rules! figures {
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $text:literal) => { $text };
    ($($(#[$about:meta])+ $name:ident $($text:literal)?: $Type:ty = $unit:ident,)+) => {
        /// A pool's figures at one moment. Bytes unless the name says otherwise. `allocated`, `cached`,
        /// `dirty`, `in_flight`, `zero_resident`, `zero_absent` and `quarantined` add up to `managed`.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$about])+ pub $name: $Type,)+
            /// State of the scrubber.
            pub scrubber: ScrubberState,
            /// By order.
            pub orders: [OrderStats; ORDERS],
        }

        /// Number of figures, without those by order and the scrubber's state.
        pub const FIGURES: usize = [$(stringify!($name)),+].len();

        impl Stats {
            /// Every figure with its name, in the order of `cw_pool_stats`.
            #[must_use]
            pub fn figures(&self) -> [(&'static str, Unit, u64); FIGURES] {
                [$((figures!(@name $name $($text)?), Unit::$unit, self.$name.number()),)+]
            }
        }
    };
}

/// The unit of a figure.
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

trait Number {
    fn number(self) -> u64;
}

impl Number for u64 {
    fn number(self) -> u64 {
        self
    }
}

impl Number for Duration {
    fn number(self) -> u64 {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX)
    }
}

figures! {
    /// Size that the pool may grow to.
    capacity: u64 = Bytes,
    /// Size that it has grown to.
    managed: u64 = Bytes,
    /// Allocated by the program.
    allocated: u64 = Bytes,
    /// In per-thread caches.
    cached: u64 = Bytes,
    /// Free, contents unknown.
    dirty: u64 = Bytes,
    /// Being zeroed or returned to the system.
    in_flight: u64 = Bytes,
    /// Free, zero, resident.
    zero_resident: u64 = Bytes,
    /// Free, zero, not resident: will fault.
    zero_absent: u64 = Bytes,
    /// Quarantined at the moment.
    quarantined: u64 = Bytes,
    /// Not known to be absent: the most that the pool holds of the machine's memory.
    resident: u64 = Bytes,
    /// Zeroed requests served by a block that was zero and resident.
    zero_hits: u64 = TimesSoFar,
    /// Zeroed requests that had to be zeroed or faulted in.
    zero_misses: u64 = TimesSoFar,
    /// Dirty requests served.
    dirty_allocations: u64 = TimesSoFar,
    /// Blocks taken back.
    frees: u64 = TimesSoFar,
    /// Zeroed at hand-out.
    hot_zeroed: u64 = BytesSoFar,
    /// Faulted in at hand-out.
    populated: u64 = BytesSoFar,
    /// Zeroed in the background or by `scrub_now`.
    scrubbed: u64 = BytesSoFar,
    /// CPU time of that, including the scrubber's own bookkeeping.
    scrub_cpu "scrub_cpu_ns": Duration = NanosecondsSoFar,
    /// Zeroed for nothing: handed out as dirty, or merged into a dirty block.
    wasted: u64 = BytesSoFar,
    /// Returned to the system.
    trimmed: u64 = BytesSoFar,
    /// Blocks read by `verify`.
    verified: u64 = TimesSoFar,
    /// Blocks that were not zero when they should have been.
    verify_failed: u64 = TimesSoFar,
    /// Quarantined since the start.
    quarantined_ever: u64 = BytesSoFar,
    /// Batches that an engine failed to zero: errors, deadlines, blocks reported as zero that were not.
    engine_faults: u64 = TimesSoFar,
    /// Number of times that the scrubber rested because no CPU was idle, or the load was above its limit.
    load_rests: u64 = TimesSoFar,
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
