//! Taking blocks and runs: of one state, of buddies in different states, for a cache; and cutting
//! down what was taken.

use super::{
    Buddy, FreeError, LOOKS, NONE, ORDERS, State, TAIL, Tag, Use, later, order_for, run_alignment,
};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

/// Blocks that are looked at for a mixed run: some microseconds' worth, as long as a fault takes
/// that it may spare.
const WALKS: u32 = 128;

/// A run of blocks that were free in different states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MixedRun {
    /// Its first frame.
    pub first: u32,
    /// The worst state among its blocks: dirty before absent before resident.
    pub state: State,
    /// From its first absent frame to behind its last: frames between them may be resident.
    pub absent: (u32, u32),
}

impl MixedRun {
    /// Frames to be faulted in at most.
    const fn faults(self) -> u32 {
        self.absent.1 - self.absent.0
    }
}

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

    /// Hands out a run that is made of free blocks of one state side by side, where no block of its
    /// rounded-up size is free: three quarters of a large block whose last quarter is in use, say.
    /// Its parts are as `run_parts` has them. It looks at so many blocks that no lock is held for
    /// long.
    pub fn take_run(&mut self, frames: u32, state: State, owner: u16) -> Option<u32> {
        let largest = frames.checked_ilog2().filter(|order| *order <= self.core.max_order)?;
        if frames.is_power_of_two() {
            return None;
        }
        let mut first = self.core.lists[state as usize][largest as usize].head;
        for _ in 0..LOOKS {
            if first == NONE {
                return None;
            }
            if self.is_free_run(first, frames, state) {
                self.take_parts(first, frames, state, owner);
                return Some(first);
            }
            first = self.frames[first as usize].next.load(Ordering::Relaxed);
        }
        None
    }

    fn is_free_run(&self, first: u32, frames: u32, state: State) -> bool {
        let (mut at, mut left) = (first, frames);
        loop {
            if at >= self.core.managed {
                return false;
            }
            let tag = self.frames[at as usize].tag();
            // Of one state, a part that is free is one block, or lies in one.
            if tag.free_state() != Some(state) || 1 << tag.order() < run_alignment(left) {
                return false;
            }
            let size = 1 << tag.order();
            if size >= left {
                return true;
            }
            (at, left) = (at + size, left - size);
        }
    }

    fn take_parts(&mut self, first: u32, frames: u32, state: State, owner: u16) {
        let (mut at, mut left) = (first, frames);
        while left > 0 {
            let order = self.frames[at as usize].tag().order();
            let stamp = self.frames[at as usize].stamp.load(Ordering::Relaxed);
            self.unlink(at);
            self.become_used(at, order, state, Use::Allocated, owner);
            let size = 1 << order;
            if size > left {
                let cut = self.shrink_from(at, order, left, state, owner, stamp);
                debug_assert!(cut.is_ok(), "just taken: {cut:?}");
                return;
            }
            (at, left) = (at + size, left - size);
        }
    }

    /// Hands out a run of free blocks side by side whatever their states, of which at most a
    /// quarter is absent: where the alternative is to make all of a run resident, what is there
    /// already need not be. (With more than a quarter, places for large runs are cut up for few
    /// faults spared.) Of the blocks looked at, so few that no lock is held for long, those that
    /// need the fewest faults. What is zero and becomes part of a dirty block is counted as wasted.
    ///
    /// The caller faults in what is absent. Where the system then brings `around` frames at a time
    /// (a power of two), what comes with the run and lies behind its end is free, zero and resident
    /// from now on.
    pub fn take_mixed_run(&mut self, frames: u32, around: u32, owner: u16) -> Option<MixedRun> {
        let best = self.find_mixed(frames, (frames / 4, 0), WALKS)?;
        self.take_mixed_parts(best.first, frames, around, owner);
        Some(best)
    }

    /// [`take_mixed_run`](Buddy::take_mixed_run) whatever part of it is absent, and however many
    /// blocks have to be looked at: the first run found, from the largest free blocks down. For
    /// when no state by itself has one that large.
    pub fn take_any_run(&mut self, frames: u32, around: u32, owner: u16) -> Option<MixedRun> {
        let first = self.find_mixed(frames, (frames, frames), u32::MAX)?;
        self.take_mixed_parts(first.first, frames, around, owner);
        Some(first)
    }

    /// A run with at most so many frames to be faulted in; nothing better is looked for than one
    /// with the second number of them.
    fn find_mixed(&self, frames: u32, faults: (u32, u32), mut looks: u32) -> Option<MixedRun> {
        let (most, enough) = faults;
        let largest = frames.checked_ilog2().filter(|order| *order <= self.core.max_order)?;
        let mut best: Option<MixedRun> = None;
        for order in (0..=largest).rev() {
            for state in State::ALL {
                // All that is absent spares nothing, unless anything will do.
                if state == State::ZeroAbsent && most < frames {
                    continue;
                }
                let mut index = self.core.lists[state as usize][order as usize].head;
                while index != NONE && looks > 0 {
                    let first = index >> largest << largest;
                    if let Some(run) = self.mixed_run(first, frames, &mut looks)
                        && run.faults() <= most
                        && best.is_none_or(|best| run.faults() < best.faults())
                    {
                        if run.faults() <= enough {
                            return Some(run);
                        }
                        best = Some(run);
                    }
                    index = self.frames[index as usize].next.load(Ordering::Relaxed);
                }
            }
        }
        best
    }

    fn mixed_run(&self, first: u32, frames: u32, looks: &mut u32) -> Option<MixedRun> {
        let end = first.checked_add(frames).filter(|end| *end <= self.core.managed)?;
        let mut run = MixedRun { first, state: State::ZeroResident, absent: (end, end) };
        let mut at = first;
        while at < end {
            *looks = looks.checked_sub(1)?;
            let tag = self.frames[at as usize].tag();
            let next = at + (1 << tag.order());
            match tag.free_state()? {
                State::Dirty => run.state = State::Dirty,
                State::ZeroResident => {}
                State::ZeroAbsent => {
                    if run.state == State::ZeroResident {
                        run.state = State::ZeroAbsent;
                    }
                    run.absent = (run.absent.0.min(at), next.min(end));
                }
            }
            at = next;
        }
        Some(run)
    }

    /// Takes a run all of whose blocks are free.
    fn take_mixed_parts(&mut self, first: u32, frames: u32, around: u32, owner: u16) {
        let (mut at, mut left) = (first, frames);
        while let Some(part) = left.checked_ilog2() {
            let tag = self.frames[at as usize].tag();
            if tag.order() < part {
                let Some(worst) = self.group(at, part) else { return };
                self.merge_group(at, part, worst);
                self.become_used(at, part, worst, Use::Allocated, owner);
            } else {
                let Some(state) = tag.free_state() else { return };
                let (order, end) = (tag.order(), at + (1 << tag.order()));
                let stamp = self.frames[at as usize].stamp.load(Ordering::Relaxed);
                self.unlink(at);
                self.become_used(at, order, state, Use::Allocated, owner);
                if end - at > left {
                    let cut = if state == State::ZeroAbsent {
                        let there = (at + left).next_multiple_of(around).min(end) - at;
                        self.shrink_resident(at, order, (left, there), owner, stamp)
                    } else {
                        self.shrink_from(at, order, left, state, owner, stamp)
                    };
                    debug_assert!(cut.is_ok(), "just taken: {cut:?}");
                    return;
                }
            }
            at += 1 << part;
            left -= 1 << part;
        }
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
                if state == State::ZeroResident && into == State::Dirty {
                    self.core.wasted += size;
                }
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
