//! Taking blocks of one state, for a cache too; and cutting down what was taken.

use super::{Buddy, FreeError, State, TAIL, Tag, Use, run_parts};
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

    /// Takes an absent block away to be made resident: of that order, or the largest below it.
    pub fn take_absent(&mut self, order: u32) -> Option<(u32, u32)> {
        let state = State::ZeroAbsent;
        let (index, found) = self.newest(order, state).or_else(|| {
            let found = self.core.filled[state as usize].checked_ilog2()?;
            Some((self.core.lists[state as usize][found as usize].head, found))
        })?;
        let part = found.min(order);
        self.unlink(index);
        self.carve(index, found, part, state);
        self.become_used(index, part, state, Use::InFlight);
        Some((index, part))
    }

    /// Checks that no frame of an aligned group is free and absent. The group's first frame has to
    /// begin a block that lies inside it.
    #[must_use]
    pub fn all_resident(&self, base: u32, order: u32) -> bool {
        let end = base.saturating_add(1 << order).min(self.core.managed);
        let mut index = base;
        while index < end {
            let tag = self.frames[index as usize].tag();
            if tag.free_state() == Some(State::ZeroAbsent) {
                return false;
            }
            index += 1 << tag.order();
        }
        true
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

    /// Takes resident memory for a per-thread cache, zero or dirty: up to `most` blocks of `order`,
    /// in as few pieces as can be and no more than `pieces` has places; `split_cached` and
    /// `halve_cached` make blocks of them. Returns how many pieces there are. None of absent memory
    /// and of what the system may take, of which a cache could not say that it is there.
    pub fn take_cached_of(
        &mut self,
        state: State,
        order: u32,
        most: u32,
        pieces: &mut [u32],
    ) -> usize {
        let used = match state {
            State::Dirty => Use::CachedDirty,
            State::ZeroResident => Use::CachedZero,
            State::ZeroAbsent => return 0,
        };
        let (mut found, mut left) = (0, most);
        while left > 0 && found < pieces.len() {
            let Some((index, free)) = self.newest(order, state) else { break };
            let part = free.min(order + left.ilog2());
            self.unlink(index);
            self.carve(index, free, part, state);
            self.become_used(index, part, state, used);
            pieces[found] = index;
            found += 1;
            left -= 1 << (part - order);
        }
        found
    }

    /// Takes an aligned group of free blocks, one at least, as one block. Its first tag says so of all
    /// of them.
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

    /// Gives the end of an absent block back, of which the first `resident` frames were made to be
    /// there: a run of `frames` frames is left, what follows it of those is zero and resident, and
    /// the rest absent as before.
    ///
    /// # Errors
    /// As [`free`](Buddy::free), and [`FreeError::WrongOrder`] if the run is empty or longer than
    /// what is there, or that than the block.
    pub fn shrink_resident(
        &mut self,
        index: u32,
        order: u32,
        (frames, resident): (u32, u32),
        now: u32,
    ) -> Result<(), FreeError> {
        self.owned(index, order)?;
        if frames == 0 || frames > resident || resident > 1 << order {
            return Err(FreeError::WrongOrder { actual: order });
        }
        let (keep, there, end) = (index + frames, index + resident, index + (1 << order));
        // The block's own tag comes last: until then all of it is one block.
        let mut first = order;
        for (from, to) in [(index, keep), (keep, there), (there, end)] {
            for (part, order) in run_parts(from, to - from) {
                if part == index {
                    first = order;
                } else {
                    self.frames[part as usize].set_tag(Tag::new(Use::Allocated, order));
                }
            }
        }
        self.frames[index as usize].set_tag(Tag::new(Use::Allocated, first));
        let rest = [(keep, there, State::ZeroResident), (there, end, State::ZeroAbsent)];
        for (from, to, state) in rest {
            for (part, order) in run_parts(from, to - from) {
                self.release(part, order, Use::Allocated, state, now);
            }
        }
        Ok(())
    }
}
