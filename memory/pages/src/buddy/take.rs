//! Taking blocks of one state, for a cache too, and cutting down what was taken.

use super::{Buddy, FreeError, State, TAIL, Tag, Use, cached};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

impl Buddy<'_> {
    /// Hands out a block of that order and state: the smallest that is large enough,
    /// among those the most recently freed; what is left over stays free.
    pub fn take(&mut self, order: u32, state: State) -> Option<u32> {
        let (index, found) = self.newest(order, state)?;
        self.unlink(index);
        self.carve(index, found, order, state);
        self.become_used(index, order, state, Use::Allocated);
        Some(index)
    }

    fn newest(&self, order: u32, state: State) -> Option<(u32, u32)> {
        if order > self.core.max_order {
            return None;
        }
        let large_enough = self.core.filled[state as usize] >> order << order;
        if large_enough == 0 {
            return None;
        }
        let found = large_enough.trailing_zeros();
        Some((self.core.lists[state as usize][found as usize].head, found))
    }

    /// Takes blocks of one order for a per-thread cache, zeroed or dirty, as many as there are places. Returns how many
    /// it found. Absent memory is not cached.
    pub fn take_cached(&mut self, order: u32, zero: bool, places: &mut [u32]) -> usize {
        let state = if zero { State::ZeroResident } else { State::Dirty };
        for (found, place) in places.iter_mut().enumerate() {
            let Some((index, free)) = self.newest(order, state) else { return found };
            self.unlink(index);
            self.carve(index, free, order, state);
            self.become_used(index, order, state, cached(zero));
            *place = index;
        }
        places.len()
    }

    /// Takes an aligned group of free blocks, one at least, as one block. The first tag stands for
    /// all of them.
    pub(super) fn take_group(&mut self, base: u32, order: u32, to: Use) {
        let (mut index, mut tag) = (base, Tag::new(to, order));
        while index < base + (1 << order) {
            let found = self.frames[index as usize].tag();
            if let Some(state) = found.free_state() {
                self.unlink(index);
                *self.core.counts.of(Use::Free(state)) -= 1 << found.order();
            }
            self.frames[index as usize].set_tag(tag);
            (index, tag) = (index + (1 << found.order()), TAIL);
        }
        *self.core.counts.of(to) += 1 << order;
    }

    /// Cuts an unlinked free block down to `order`, its front kept, the rest linked as free blocks. It is
    /// one block until the caller says in its tag what the front is used for.
    pub(super) fn carve(&mut self, index: u32, mut from: u32, order: u32, state: State) {
        let stamp = self.frames[index as usize].stamp.load(Ordering::Relaxed);
        while from > order {
            from -= 1;
            let upper = index + (1 << from);
            self.frames[upper as usize].stamp.store(stamp, Ordering::Relaxed);
            self.frames[upper as usize].set_tag(Tag::free(state, from));
            self.link(upper, from, state);
        }
    }

    /// Keeps the first `frames` frames of an allocated block as a run, and frees the rest: as zero and resident before
    /// its frame `there`, and in state `rest` behind it.
    ///
    /// # Errors
    /// Errors of [`free`](Buddy::free), and [`FreeError::WrongOrder`] if the run is empty, or `there` lies before its end or
    /// behind the block's.
    pub fn keep_front(
        &mut self,
        index: u32,
        order: u32,
        (frames, there): (u32, u32),
        (rest, now): (State, u32),
    ) -> Result<(), FreeError> {
        self.owned(index, order)?;
        if frames == 0 || frames > there || there > 1 << order {
            return Err(FreeError::WrongOrder { actual: order });
        }
        let (keep, there, end) = (index + frames, index + there, index + (1 << order));
        // The block's own tag is written last: until then all of it is one block.
        let mut first = order;
        for (from, to) in [(index, keep), (keep, there), (there, end)] {
            for (part, order) in self.parts(from, to - from) {
                if part == index {
                    first = order;
                } else {
                    self.frames[part as usize].set_tag(Tag::new(Use::Allocated, order));
                }
            }
        }
        self.frames[index as usize].set_tag(Tag::new(Use::Allocated, first));
        for (from, to, state) in [(keep, there, State::ZeroResident), (there, end, rest)] {
            for (part, order) in self.parts(from, to - from) {
                self.release(part, order, Use::Allocated, state, now);
            }
        }
        Ok(())
    }
}
