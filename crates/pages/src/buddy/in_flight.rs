//! Blocks away to be zeroed or returned to the system: which, when they are idle long enough, and
//! how they come back, if they do.

use super::{Buddy, FreeError, LOOKS, NONE, State, Tag, Use, later};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

impl Buddy<'_> {
    /// Takes a dirty block away to be zeroed: from the highest order down to `lowest`, among one
    /// order the least recently freed, if nobody used it for `min_idle` ticks. Of a block larger
    /// than `chunk` only its first part of that order is taken.
    pub fn take_to_zero(
        &mut self,
        lowest: u32,
        chunk: u32,
        min_idle: u32,
        owner: u16,
        now: u32,
    ) -> Option<(u32, u32)> {
        for order in (lowest..=self.core.max_order).rev() {
            let index = self.core.lists[State::Dirty as usize][order as usize].tail;
            if index == NONE || self.age(index, now) < min_idle {
                continue;
            }
            let part = order.min(chunk.max(lowest));
            self.unlink(index);
            self.carve(index, order, part, State::Dirty);
            self.become_used(index, part, State::Dirty, Use::InFlight, owner);
            return Some((index, part));
        }
        None
    }

    /// In how many ticks [`take_to_zero`](Buddy::take_to_zero) may find a block; 0 is now, `None`
    /// is not before another block is freed.
    #[must_use]
    pub fn next_to_zero(&self, lowest: u32, min_idle: u32, now: u32) -> Option<u32> {
        (lowest..=self.core.max_order)
            .map(|order| self.core.lists[State::Dirty as usize][order as usize].tail)
            .filter(|index| *index != NONE)
            .map(|index| min_idle.saturating_sub(self.age(index, now)))
            .min()
    }

    fn age(&self, index: u32, now: u32) -> u32 {
        let stamp = self.frames[index as usize].stamp.load(Ordering::Relaxed);
        if later(stamp, now) { 0 } else { now.wrapping_sub(stamp) }
    }

    /// Takes the largest free resident block away to be returned to the system, dirty before zero;
    /// at least of order `lowest`, at most its first 2^`highest` frames.
    pub fn take_to_trim(
        &mut self,
        lowest: u32,
        highest: u32,
        owner: u16,
    ) -> Option<(u32, u32, State)> {
        for order in (lowest..=self.core.max_order).rev() {
            for state in [State::Dirty, State::ZeroResident] {
                let index = self.core.lists[state as usize][order as usize].tail;
                if index == NONE {
                    continue;
                }
                let part = order.min(highest.max(lowest));
                self.unlink(index);
                self.carve(index, order, part, state);
                self.become_used(index, part, state, Use::InFlight, owner);
                return Some((index, part, state));
            }
        }
        None
    }

    /// [`take_to_trim`](Buddy::take_to_trim) of a block that nobody used for `min_idle` ticks, or
    /// when there will be one: 0 where the answer is a block, `None` where there is none large
    /// enough.
    pub fn take_idle(
        &mut self,
        (lowest, highest): (u32, u32),
        min_idle: u32,
        owner: u16,
        now: u32,
    ) -> Result<(u32, u32), Option<u32>> {
        let mut soonest: Option<u32> = None;
        for order in (lowest..=self.core.max_order).rev() {
            for state in [State::Dirty, State::ZeroResident] {
                let index = self.core.lists[state as usize][order as usize].tail;
                if index == NONE {
                    continue;
                }
                let left = min_idle.saturating_sub(self.age(index, now));
                if left > 0 {
                    soonest = Some(soonest.map_or(left, |other| other.min(left)));
                    continue;
                }
                let part = order.min(highest.max(lowest));
                self.unlink(index);
                self.carve(index, order, part, state);
                self.become_used(index, part, state, Use::InFlight, owner);
                return Ok((index, part));
            }
        }
        self.take_idle_group(lowest, min_idle, owner, now)
            .map_err(|left| soonest.into_iter().chain(left).min())
    }

    /// A group of that order whose blocks are all free, in different states, and idle: what a run
    /// and the rest of the block that it was cut from leave. As [`take_idle`](Buddy::take_idle).
    fn take_idle_group(
        &mut self,
        order: u32,
        min_idle: u32,
        owner: u16,
        now: u32,
    ) -> Result<(u32, u32), Option<u32>> {
        let mut soonest: Option<u32> = None;
        for below in (0..order).rev() {
            for state in [State::Dirty, State::ZeroResident] {
                let mut index = self.core.lists[state as usize][below as usize].tail;
                for _ in 0..LOOKS {
                    if index == NONE {
                        break;
                    }
                    let base = index >> order << order;
                    if self.group(base, order).is_some() {
                        let left = min_idle.saturating_sub(self.group_age(base, order, now));
                        if left == 0 {
                            self.merge_group(base, order, State::Dirty);
                            self.become_used(base, order, State::Dirty, Use::InFlight, owner);
                            return Ok((base, order));
                        }
                        soonest = Some(soonest.map_or(left, |other| other.min(left)));
                    }
                    index = self.frames[index as usize].prev.load(Ordering::Relaxed);
                }
            }
        }
        Err(soonest)
    }

    /// The age of the block of a group that was used last.
    fn group_age(&self, base: u32, order: u32, now: u32) -> u32 {
        let (mut index, mut youngest) = (base, u32::MAX);
        while index < base + (1 << order) {
            youngest = youngest.min(self.age(index, now));
            index += 1 << self.frames[index as usize].tag().order();
        }
        youngest
    }

    /// Brings a block back that was in flight, in the state it has now. Returns the order of the
    /// free block that it became part of.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is in flight there.
    pub fn land(
        &mut self,
        index: u32,
        order: u32,
        state: State,
        now: u32,
    ) -> Result<u32, FreeError> {
        self.is(index, order, Use::InFlight)?;
        Ok(self.release(index, order, Use::InFlight, state, now))
    }

    /// Withdraws a block in flight from use.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is in flight there.
    pub fn quarantine(&mut self, index: u32, order: u32) -> Result<(), FreeError> {
        self.is(index, order, Use::InFlight)?;
        let frame = &self.frames[index as usize];
        self.core.counts.in_flight -= 1 << order;
        self.core.counts.quarantined += 1 << order;
        frame.set_tag(Tag::new(Use::Quarantined, order, frame.tag().owner()));
        Ok(())
    }

    /// Withdraws an allocated block from use.
    ///
    /// # Errors
    /// [`FreeError`] as [`free`](Buddy::free).
    pub fn quarantine_allocated(
        &mut self,
        index: u32,
        order: u32,
        owner: u16,
    ) -> Result<(), FreeError> {
        self.claim(index, order, owner)?;
        self.core.counts.out -= 1 << order;
        self.core.counts.quarantined += 1 << order;
        self.frames[index as usize].set_tag(Tag::new(Use::Quarantined, order, owner));
        Ok(())
    }

    /// Ends the quarantine of a block: it is dirty.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is quarantined there.
    pub fn end_quarantine(&mut self, index: u32, order: u32, now: u32) -> Result<u32, FreeError> {
        self.is(index, order, Use::Quarantined)?;
        Ok(self.release(index, order, Use::Quarantined, State::Dirty, now))
    }
}
