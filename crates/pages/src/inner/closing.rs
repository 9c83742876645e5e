//! What of a pool is address space alone: what nobody used yet, and what was given back. That is in no core
//! dump, and counts for nothing under `vm.overcommit_memory=2`. Memory is opened and closed in units,
//! so few that the system's limit on mappings is not in the way.

use super::{Inner, Settings};
use crate::buddy::{Buddy, State};
use crate::os;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a bit for each unit.
const WORDS: usize = 64;

/// Which units are closed. A bit is set under the lock, where all of its unit is free and absent; it is cleared
/// under the lock, or by whoever has taken part of the unit: until that is free again nobody sets it.
#[derive(Debug)]
pub(super) struct Closed {
    /// Frames of a unit, as a power of two.
    order: u32,
    bits: [AtomicU64; WORDS],
}

impl Closed {
    /// For so many frames, in units of a huge page or larger: all, or none where nothing ever closes.
    pub(super) fn new(capacity: u32, huge: u32, settings: &Settings) -> Closed {
        let least = capacity.div_ceil(WORDS as u32 * u64::BITS).next_power_of_two();
        let all = if settings.closes { u64::MAX } else { 0 };
        Closed { order: least.ilog2().max(huge), bits: [(); WORDS].map(|()| AtomicU64::new(all)) }
    }

    fn bit(&self, unit: u32) -> (&AtomicU64, u64) {
        (&self.bits[(unit / u64::BITS) as usize], 1 << (unit % u64::BITS))
    }

    fn has(&self, unit: u32) -> bool {
        let (word, bit) = self.bit(unit);
        word.load(Ordering::Acquire) & bit != 0
    }

    fn set(&self, units: std::ops::Range<u32>, closed: bool) {
        for (word, bit) in units.map(|unit| self.bit(unit)) {
            match closed {
                true => word.fetch_or(bit, Ordering::Release),
                false => word.fetch_and(!bit, Ordering::Release),
            };
        }
    }

    /// Of those units the ones that are closed or are not, in as few pieces as there are.
    fn pieces(
        &self,
        units: std::ops::Range<u32>,
        closed: bool,
    ) -> impl Iterator<Item = std::ops::Range<u32>> {
        let mut at = units.start;
        std::iter::from_fn(move || {
            let first = (at..units.end).find(|unit| self.has(*unit) == closed)?;
            let end = (first..units.end).find(|unit| self.has(*unit) != closed);
            at = end.unwrap_or(units.end);
            Some(first..at)
        })
    }
}

impl Inner {
    /// The units of these frames.
    fn units(&self, from: u32, end: u32) -> std::ops::Range<u32> {
        let order = self.closed.order;
        from >> order..if from == end { from >> order } else { ((end - 1) >> order) + 1 }
    }

    /// The frames of these units.
    fn frames_of(&self, units: &std::ops::Range<u32>) -> (u32, u32) {
        let end = u64::from(units.end) << self.closed.order;
        (units.start << self.closed.order, end.min(u64::from(self.capacity)) as u32)
    }

    fn place(&self, from: u32, end: u32) -> (*mut u8, usize) {
        (self.address(from), ((end - from) as usize) << self.frame_shift)
    }

    /// What of these frames can be read, and written.
    pub(crate) fn readable(&self, from: u32, end: u32) -> impl Iterator<Item = (u32, u32)> {
        self.closed.pieces(self.units(from, end), false).map(move |units| {
            let (first, behind) = self.frames_of(&units);
            (first.max(from), behind.min(end))
        })
    }

    /// Opens what is closed of absent frames: those that the caller has taken, or any under the lock.
    pub(crate) fn open(&self, from: u32, end: u32) -> rustix::io::Result<()> {
        for units in self.closed.pieces(self.units(from, end), true) {
            let (first, behind) = self.frames_of(&units);
            let (start, length) = self.place(first, behind);
            // SAFETY: whole pages of this mapping. Nobody closes it: the caller has part of each unit, or the lock.
            unsafe { os::open(start, length) }?;
            self.closed.set(units, false);
        }
        Ok(())
    }

    /// Closes what units there are in the free block that a frame is in, if it is absent. Only under the lock.
    pub(crate) fn close_absent(&self, buddy: &Buddy<'_>, index: u32) {
        if !self.settings.closes {
            return;
        }
        let Some((first, State::ZeroAbsent, order)) = buddy.free_block_at(index) else { return };
        if order < self.closed.order {
            return;
        }
        let units = self.units(first, first + (1 << order));
        for units in self.closed.pieces(units, false) {
            let (from, end) = self.frames_of(&units);
            let (start, length) = self.place(from, end);
            // SAFETY: free and absent, and the lock is held: nobody uses it or takes it meanwhile.
            if unsafe { os::close(start, length) }.is_err() {
                return;
            }
            self.advise(from, end);
            self.closed.set(units, true);
        }
    }

    /// Says again of a new mapping what was said of the pool's.
    fn advise(&self, from: u32, end: u32) {
        let small = self.settings.small.clamp(from, end);
        for (from, end, huge) in [(from, small, false), (small, end, self.settings.huge_order > 0)]
        {
            let (start, length) = self.place(from, end);
            // SAFETY: whole pages of this mapping; this advice changes no contents.
            let _ = unsafe { os::advise_huge(start, length, huge) };
            if let Some(node) = self.settings.numa_node {
                // SAFETY: as above.
                let _ = unsafe { os::bind(start, length, node) };
            }
        }
    }

    /// Frames that were taken, and cannot be had after all: the state to free them in.
    pub(super) fn vacate(&self, from: u32, end: u32, state: State) -> State {
        if !self.settings.closes {
            return state;
        }
        for (first, behind) in self.readable(from, end) {
            let (start, length) = self.place(first, behind);
            // SAFETY: taken, so nobody else uses it, and whole pages of this mapping.
            if unsafe { os::discard(start, length) }.is_err() {
                // Locked, for example.
                self.hot_zero(first, behind - first);
            }
        }
        State::ZeroAbsent
    }
}
