//! Taking blocks back: from their users, and from per-thread caches.

use super::{Buddy, FreeError, State, TAIL, Tag, Use, cached, order_for, run_parts};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

impl Buddy<'_> {
    /// Takes a block back. Returns the order of the free block that it became part of.
    ///
    /// # Errors
    /// [`FreeError`]; nothing is changed then.
    pub fn free(
        &mut self,
        index: u32,
        order: u32,
        state: State,
        now: u32,
    ) -> Result<u32, FreeError> {
        self.claim(index, order)?;
        Ok(self.release(index, order, Use::Allocated, state, now))
    }

    /// Takes an allocated block back, in one exchange: whoever frees it at the
    /// same moment without the lock ([`Frame::cache`](super::tag::Frame::cache)) finds it gone, or this one does. Its frames
    /// still count as handed out.
    pub(super) fn claim(&self, index: u32, order: u32) -> Result<(), FreeError> {
        self.owned(index, order)?;
        let gone = Tag::new(Use::InFlight, order);
        let swapped = self.frames[index as usize].swap(Tag::new(Use::Allocated, order), gone);
        swapped.map_err(|_| FreeError::DoubleFree)
    }

    /// Takes a run back. Returns the order of the largest free block that came of it.
    ///
    /// # Errors
    /// [`FreeError`]; nothing is changed then.
    pub fn free_run(
        &mut self,
        index: u32,
        frames: u32,
        state: State,
        now: u32,
    ) -> Result<u32, FreeError> {
        if frames == 0 || order_for(frames) > self.core.max_order {
            return Err(FreeError::Misaligned);
        }
        for (claimed, (part, order)) in run_parts(index, frames).enumerate() {
            let Err(why) = self.claim(part, order) else { continue };
            for (part, order) in run_parts(index, frames).take(claimed) {
                self.frames[part as usize].set_tag(Tag::new(Use::Allocated, order));
            }
            // A run of a power of two is one block, unless it became as long where it was.
            let misaligned = frames.is_power_of_two() && index & (frames - 1) != 0;
            return Err(if misaligned { FreeError::Misaligned } else { why });
        }
        let mut largest = 0;
        for (part, order) in run_parts(index, frames) {
            let merged = self.release(part, order, Use::Allocated, state, now);
            largest = largest.max(merged);
        }
        Ok(largest)
    }

    /// Checks that a block of that order is allocated there; the error says what is there instead.
    pub(super) fn owned(&self, index: u32, order: u32) -> Result<(), FreeError> {
        if index >= self.core.managed {
            return Err(FreeError::Foreign);
        }
        if order > self.core.max_order || index & ((1 << order) - 1) != 0 {
            return Err(FreeError::Misaligned);
        }
        let tag = self.frames[index as usize].tag();
        match tag.used() {
            Some(Use::Allocated) if tag.order() != order => {
                Err(FreeError::WrongOrder { actual: tag.order() })
            }
            Some(Use::Allocated) => Ok(()),
            Some(_) => Err(FreeError::DoubleFree),
            None => Err(match self.block_at(index).and_then(|(_, tag)| tag.used()) {
                Some(Use::Allocated) => FreeError::Interior,
                _ => FreeError::DoubleFree,
            }),
        }
    }

    /// Takes a block back from a per-thread cache.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is cached so there.
    pub fn free_cached(
        &mut self,
        index: u32,
        order: u32,
        zero: bool,
        now: u32,
    ) -> Result<u32, FreeError> {
        let (used, state) = if zero {
            (Use::CachedZero, State::ZeroResident)
        } else {
            (Use::CachedDirty, State::Dirty)
        };
        self.is(index, order, used)?;
        Ok(self.release(index, order, used, state, now))
    }

    /// Takes blocks of one order back from a per-thread cache; neighbours among them are merged
    /// before they meet the lists. Returns the order of the largest free block that came of it, and
    /// how many were not cached so and were left alone.
    pub fn free_cached_all(
        &mut self,
        blocks: &mut [u32],
        order: u32,
        zero: bool,
        now: u32,
    ) -> (u32, usize) {
        let used = cached(zero);
        let state = if zero { State::ZeroResident } else { State::Dirty };
        blocks.sort_unstable();
        let (mut largest, mut refused, mut at) = (0, 0, 0);
        while let Some(first) = blocks.get(at).copied() {
            // Cached blocks side by side, up to where no larger block goes on.
            let mut end = first;
            while blocks.get(at) == Some(&end) && self.is(end, order, used).is_ok() {
                (at, end) = (at + 1, end + (1 << order));
                if end.trailing_zeros() >= self.core.max_order {
                    break;
                }
            }
            if end == first {
                (at, refused) = (at + 1, refused + 1);
            }
            for (part, whole) in run_parts(first, end - first) {
                let merged = self.release_cached(part, whole, order, used, state, now);
                largest = largest.max(merged);
            }
        }
        (largest, refused)
    }

    /// Releases cached blocks of `order` that together are the block of order `whole` at `first`.
    fn release_cached(
        &mut self,
        first: u32,
        whole: u32,
        order: u32,
        used: Use,
        state: State,
        now: u32,
    ) -> u32 {
        *self.core.counts.of(used) -= 1 << whole;
        *self.core.counts.of(Use::Free(state)) += 1 << whole;
        self.frames[first as usize].stamp.store(now, Ordering::Relaxed);
        self.frames[first as usize].set_tag(Tag::free(state, whole));
        for place in 1..1u32 << (whole - order) {
            self.frames[(first + (place << order)) as usize].set_tag(TAIL);
        }
        self.coalesce_and_link(first, whole, state)
    }
}
