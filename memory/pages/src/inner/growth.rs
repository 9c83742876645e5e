//! How a pool grows: into its address space, and ahead of need, where free memory is made resident in the
//! background, before it is asked for.

use super::{Guard, Inner, Working, now};
use crate::buddy::{Buddy, Counts, State};
use crate::os;
use crate::stats::add;
use std::sync::atomic::Ordering;

impl Inner {
    /// The order in which absent memory is faulted in for a block of `order`: with huge pages the
    /// system brings a whole one anyway, and a few small ones cost little more than one.
    pub(crate) fn around(&self, order: u32) -> u32 {
        let unit = (self.settings.fault_around >> self.chunks.frame_shift).max(1).ilog2();
        order.max(unit.min(self.settings.max_order))
    }

    /// Takes more frames into use, so that a block of that order is among them. Returns how many.
    pub(crate) fn grow(&self, buddy: &mut Buddy<'_>, order: u32) -> u32 {
        let managed = buddy.core().managed();
        let size = 1u64 << order;
        let fitting = u64::from(managed).next_multiple_of(size) + size;
        let step = (self.settings.growth >> self.chunks.frame_shift) as u64;
        let end = fitting.max(u64::from(managed) + step).min(u64::from(self.chunks.capacity));
        let count = u32::try_from(end - u64::from(managed)).unwrap_or(0);
        buddy.extend(count, State::ZeroAbsent, now())
    }

    /// The frames of free resident memory that are wanted, by the number in use.
    fn mark(&self, counts: &Counts) -> u64 {
        let most = (self.settings.ahead >> self.chunks.frame_shift) as u64;
        // A sixteenth: of the quarter more than a program's own allocator that a pool may hold, the
        // most goes to what runs and blocks leave between them.
        let mark = most.min(counts.out / 16);
        // Less than the system brings at once is not worth a thread's while.
        if mark >> self.around(0) == 0 { 0 } else { mark }
    }

    /// Ends a hand-out: releases the lock, and wakes the scrubber if free resident memory has
    /// fallen below half its mark and nobody told it yet.
    pub(crate) fn release_after_hand_out(&self, mut guard: Guard<'_>) {
        let behind = self.falls_behind(&mut guard);
        drop(guard);
        if behind {
            self.wake_scrubber(true);
        }
    }

    fn falls_behind(&self, guard: &mut Guard<'_>) -> bool {
        if self.settings.ahead == 0 || self.is_behind() {
            return false;
        }
        let buddy = guard.buddy();
        let counts = buddy.core().counts();
        let more = counts.zero_absent != 0 || buddy.core().managed() < self.chunks.capacity;
        if !more || counts.free_resident() >= self.mark(&counts) / 2 {
            return false;
        }
        self.background.behind.store(1, Ordering::SeqCst);
        true
    }

    /// Checks whether [`grow_ahead`](Inner::grow_ahead) has something to do.
    pub(crate) fn is_behind(&self) -> bool {
        point!();
        self.background.behind.load(Ordering::SeqCst) != 0
    }

    /// Forgets that there is to be more, until the next hand-out finds too little again.
    pub(crate) fn stay_behind(&self) {
        point!();
        self.background.behind.store(0, Ordering::SeqCst);
    }

    /// Makes one portion of free memory resident, if there is to be more of it. False when that is
    /// done, or cannot be; then nothing is done before the next hand-out that finds too little.
    pub(crate) fn grow_ahead(&self) -> bool {
        if !self.is_behind() {
            return false;
        }
        match self.grow_portion() {
            Ok(()) => true,
            // Register while the lock is held (by the guard, where there is one), so that no wake-up is missed.
            Err(guard) => {
                self.stay_behind();
                drop(guard);
                false
            }
        }
    }

    /// As [`grow_ahead`](Inner::grow_ahead). The lock, held, where there is enough or no more to be
    /// had; no guard where a call failed.
    fn grow_portion(&self) -> Result<(), Option<Guard<'_>>> {
        let _working = Working::begin();
        let mut guard = self.lock().map_err(|_| None)?;
        let mut buddy = guard.buddy();
        let counts = buddy.core().counts();
        if counts.free_resident() >= self.mark(&counts) {
            return Err(Some(guard));
        }
        // Portion follows portion, so that larger blocks come of them.
        let order = self.around(0);
        let taken = buddy.take_absent(order).or_else(|| {
            self.grow(&mut buddy, order);
            buddy.take_absent(order)
        });
        let Some((index, order)) = taken else { return Err(Some(guard)) };
        // Memory in flight is open: a forked child finds it so.
        if self.open(index, index + (1 << order)).is_err() {
            let landed = guard.buddy().land(index, order, State::ZeroAbsent, now());
            debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
            return Err(Some(guard));
        }
        drop(guard);
        let length = self.bytes(order);
        // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
        let populated = unsafe { os::populate(self.address(index), length) };
        let state = if populated.is_ok() { State::ZeroResident } else { State::ZeroAbsent };
        let mut guard = self.lock_to_land().map_err(|_| None)?;
        let landed = guard.buddy().land(index, order, state, now());
        if populated.is_ok() {
            add(&self.control().events.grown_ahead, length as u64);
        }
        drop(guard);
        debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
        populated.map_err(|_| None)
    }
}
