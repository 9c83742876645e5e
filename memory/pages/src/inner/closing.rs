//! The part of a pool that is address space alone: not used yet, or given back. That is in no core
//! dump, and counts for nothing under `vm.overcommit_memory=2`.

use super::Inner;
use crate::buddy::{Buddy, State};
use crate::engine::{Method, Range};
use crate::os;

impl Inner {
    /// The units of these frames.
    fn units(&self, from: u32, end: u32) -> std::ops::Range<u32> {
        let order = self.chunks.closed.order();
        from >> order..if from == end { from >> order } else { ((end - 1) >> order) + 1 }
    }

    /// The frames of these units.
    fn frames_of(&self, units: &std::ops::Range<u32>) -> (u32, u32) {
        let end = u64::from(units.end) << self.chunks.closed.order();
        (units.start << self.chunks.closed.order(), end.min(u64::from(self.chunks.capacity)) as u32)
    }

    fn place(&self, from: u32, end: u32) -> (*mut u8, usize) {
        (self.address(from), ((end - from) as usize) << self.chunks.frame_shift)
    }

    /// The ranges of these frames that can be read, and written.
    pub(crate) fn readable(&self, from: u32, end: u32) -> impl Iterator<Item = (u32, u32)> {
        self.chunks.closed.pieces(self.units(from, end), false).map(move |units| {
            let (first, behind) = self.frames_of(&units);
            (first.max(from), behind.min(end))
        })
    }

    /// Opens what is closed of absent frames: those that the caller has taken, or any under the lock.
    pub(crate) fn open(&self, from: u32, end: u32) -> rustix::io::Result<()> {
        for units in self.chunks.closed.pieces(self.units(from, end), true) {
            let (first, behind) = self.frames_of(&units);
            let (start, length) = self.place(first, behind);
            // SAFETY: whole pages of this mapping. Nobody closes it: the caller has part of each unit, or the lock.
            unsafe { os::open(start, length) }?;
            if self.settings.locks {
                // SAFETY: as above.
                unsafe { os::lock_as_the_process_does(start, length) }?;
            }
            self.chunks.closed.set(units, false);
        }
        Ok(())
    }

    /// Closes what units there are in the free block that a frame is in, if it is absent. Only under the lock.
    pub(crate) fn close_absent(&self, buddy: &Buddy<'_>, index: u32) {
        if !self.settings.closes {
            return;
        }
        let Some((first, State::ZeroAbsent, order)) = buddy.free_block_at(index) else { return };
        if order < self.chunks.closed.order() {
            return;
        }
        let units = self.units(first, first + (1 << order));
        for units in self.chunks.closed.pieces(units, false) {
            let (from, end) = self.frames_of(&units);
            let (start, length) = self.place(from, end);
            // SAFETY: free and absent, and the lock is held: nobody uses it or takes it meanwhile.
            if unsafe { os::close(start, length) }.is_err() {
                return;
            }
            self.advise(from, end);
            self.chunks.closed.set(units, true);
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

    /// Zeroes frames just taken, through the caches.
    pub(crate) fn hot_zero(&self, index: u32, frames: u32) {
        let length = (frames as usize) << self.chunks.frame_shift;
        let range = Range { start: self.address(index), length };
        point!();
        // SAFETY: the run was just taken: mapped, and nobody else's.
        let zeroed = unsafe { Method::Through.zero(range) };
        debug_assert!(zeroed.is_ok(), "stores cannot be refused");
    }

    /// Frames that were taken, and cannot be had after all: the state to free them in.
    pub(crate) fn vacate(&self, from: u32, end: u32, state: State) -> State {
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
