//! Taking blocks of one state, for a cache too; and cutting down what was taken.

use super::{Buddy, FreeError, ORDERS, State, TAIL, Tag, Use, later, order_for};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

impl Buddy<'_> {
    /// Hands out a block of that order and state for `owner`: the smallest that is large enough,
    /// among those the most recently freed; what is left over stays free.
    pub fn take(&mut self, order: u32, state: State, owner: u16) -> Option<u32> {
        let (index, found) = self.newest(order, state)?;
        self.unlink(index);
        self.carve(index, found, order, state);
        self.become_used(index, order, state, Use::Allocated, owner);
        Some(index)
    }

    /// Takes an absent block away to be made resident: of that order, or the largest below it.
    pub fn take_absent(&mut self, order: u32, owner: u16) -> Option<(u32, u32)> {
        let state = State::ZeroAbsent;
        let (index, found) = self.newest(order, state).or_else(|| {
            let smaller = self.core.filled[state as usize] & ((1 << order) - 1);
            let found = smaller.checked_ilog2()?;
            Some((self.core.lists[state as usize][found as usize].head, found))
        })?;
        let part = found.min(order);
        self.unlink(index);
        self.carve(index, found, part, state);
        self.become_used(index, part, state, Use::InFlight, owner);
        Some((index, part))
    }

    /// Whether no frame of an aligned group is free and absent. The group's first frame has to
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
            index += if tag.used().is_some() { 1 << tag.order() } else { 1 };
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

    /// Takes zero and resident memory for a per-thread cache: up to `most` blocks of `order`, in as
    /// few pieces as can be and no more than `pieces` has places; `split_cached` and
    /// `halve_cached` make blocks of them. Returns how many pieces there are.
    pub fn take_cached(&mut self, order: u32, most: u32, owner: u16, pieces: &mut [u32]) -> usize {
        self.take_cached_of(State::ZeroResident, order, most, owner, pieces)
    }

    /// [`take_cached`](Buddy::take_cached) of dirty memory, too: never of absent memory, of which a
    /// cache could not say that it is there.
    pub fn take_cached_of(
        &mut self,
        state: State,
        order: u32,
        most: u32,
        owner: u16,
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
            self.become_used(index, part, state, used, owner);
            pieces[found] = index;
            found += 1;
            left -= 1 << (part - order);
        }
        found
    }

    /// The worst state among the blocks of an aligned group, if all of it is free.
    pub(super) fn group(&self, base: u32, order: u32) -> Option<State> {
        let end = base.checked_add(1 << order).filter(|end| *end <= self.core.managed)?;
        let mut worst = State::ZeroResident;
        let mut index = base;
        while index < end {
            let tag = self.frames[index as usize].tag();
            match tag.free_state()? {
                State::Dirty => worst = State::Dirty,
                State::ZeroAbsent if worst == State::ZeroResident => worst = State::ZeroAbsent,
                State::ZeroAbsent | State::ZeroResident => {}
            }
            index += 1 << tag.order();
        }
        Some(worst)
    }

    pub(super) fn merge_group(&mut self, base: u32, order: u32, into: State) {
        let end = base + (1 << order);
        let mut stamp = self.frames[base as usize].stamp.load(Ordering::Relaxed);
        let mut index = base;
        while index < end {
            let tag = self.frames[index as usize].tag();
            let size = 1u64 << tag.order();
            if let Some(state) = tag.free_state() {
                self.unlink(index);
                *self.core.counts.of(Use::Free(state)) -= size;
                *self.core.counts.of(Use::Free(into)) += size;
            }
            let own = self.frames[index as usize].stamp.load(Ordering::Relaxed);
            if later(own, stamp) {
                stamp = own;
            }
            index += 1 << tag.order();
        }
        let mut index = base + (1 << self.frames[base as usize].tag().order());
        self.frames[base as usize].set_tag(Tag::free(into, order));
        self.frames[base as usize].stamp.store(stamp, Ordering::Relaxed);
        while index < end {
            let size = 1 << self.frames[index as usize].tag().order();
            self.frames[index as usize].set_tag(TAIL);
            index += size;
        }
    }

    /// Cuts an unlinked free block down to `order`, its front kept, the rest linked as free blocks.
    pub(super) fn carve(&mut self, index: u32, mut from: u32, order: u32, state: State) {
        let stamp = self.frames[index as usize].stamp.load(Ordering::Relaxed);
        while from > order {
            from -= 1;
            let upper = index + (1 << from);
            self.frames[upper as usize].stamp.store(stamp, Ordering::Relaxed);
            self.frames[upper as usize].set_tag(Tag::free(state, from));
            self.frames[index as usize].set_tag(Tag::free(state, from));
            self.link(upper, from, state);
        }
    }

    /// Gives the end of a block just taken back, so that a run of `frames` frames is left: a
    /// sequence of blocks as `run_parts` has them. `state` is what the block was taken as.
    ///
    /// # Errors
    /// As [`free`](Buddy::free), and [`FreeError::WrongOrder`] if the run is empty or longer than
    /// the block.
    pub fn shrink(
        &mut self,
        index: u32,
        frames: u32,
        state: State,
        owner: u16,
        now: u32,
    ) -> Result<(), FreeError> {
        self.shrink_from(index, order_for(frames), frames, state, owner, now)
    }

    /// [`shrink`](Buddy::shrink) of a block that may be larger than the run needs.
    ///
    /// # Errors
    /// As [`shrink`](Buddy::shrink).
    pub fn shrink_from(
        &mut self,
        index: u32,
        order: u32,
        frames: u32,
        state: State,
        owner: u16,
        now: u32,
    ) -> Result<(), FreeError> {
        self.owned(index, order, owner)?;
        if frames == 0 || frames > 1 << order {
            return Err(FreeError::WrongOrder { actual: order });
        }
        let mut covered = order;
        let mut at = index;
        let mut left = frames;
        // Halve from the front: a half that is wholly kept is a part, one that is wholly given back
        // is freed, one that is neither is halved again.
        while left != 0 && left != 1 << covered {
            covered -= 1;
            let upper = at + (1 << covered);
            self.frames[upper as usize].set_tag(Tag::new(Use::Allocated, covered, owner));
            self.frames[at as usize].set_tag(Tag::new(Use::Allocated, covered, owner));
            if left > 1 << covered {
                left -= 1 << covered;
                at = upper;
            } else {
                self.release(upper, covered, Use::Allocated, state, now);
                if left == 1 << covered {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Gives the end of an absent block back, of which the first `resident` frames were made to be
    /// there: a run of `frames` frames is left, what follows it of those is zero and resident, and
    /// the rest absent as before.
    ///
    /// # Errors
    /// As [`shrink`](Buddy::shrink).
    pub fn shrink_resident(
        &mut self,
        index: u32,
        order: u32,
        (frames, resident): (u32, u32),
        owner: u16,
        now: u32,
    ) -> Result<(), FreeError> {
        self.owned(index, order, owner)?;
        if frames == 0 || frames > resident || resident > 1 << order {
            return Err(FreeError::WrongOrder { actual: order });
        }
        let (keep, there) = (index + frames, index + resident);
        let mut left = [(0u32, 0u32); ORDERS + 1];
        (left[0], left[1]) = ((index, order), (0, 0));
        let mut depth = 1usize;
        while let Some(top) = depth.checked_sub(1) {
            let (at, order) = left[top];
            let end = at + (1 << order);
            depth = top;
            if end <= keep {
                continue;
            }
            let state = match () {
                () if at >= there => State::ZeroAbsent,
                () if at >= keep && end <= there => State::ZeroResident,
                () => {
                    // A border lies inside: the upper half is tagged first, as in `carve`.
                    let half = order - 1;
                    let upper = at + (1 << half);
                    let tag = Tag::new(Use::Allocated, half, owner);
                    self.frames[upper as usize].set_tag(tag);
                    self.frames[at as usize].set_tag(tag);
                    (left[depth], left[depth + 1]) = ((at, half), (upper, half));
                    depth += 2;
                    continue;
                }
            };
            self.release(at, order, Use::Allocated, state, now);
        }
        Ok(())
    }
}
