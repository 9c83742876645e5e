//! Blocks away to be zeroed or returned to the system: which, when they are idle long enough, and
//! how they come back, if they do.

use super::{Buddy, FreeError, NONE, State, Tag, Use, later};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

/// The states that can be returned to the system, the worse first.
const RESIDENT: [State; 2] = [State::Dirty, State::ZeroResident];

fn sooner(one: Option<u32>, other: u32) -> Option<u32> {
    Some(one.map_or(other, |one| one.min(other)))
}

impl Buddy<'_> {
    /// Takes a dirty block away to be zeroed: from the highest order down to `lowest`, among one
    /// order the least recently freed, if nobody used it for `min_idle` ticks. Of a block larger
    /// than `chunk` only its first part of that order is taken.
    pub fn take_to_zero(
        &mut self,
        lowest: u32,
        chunk: u32,
        min_idle: u32,
        now: u32,
    ) -> Option<(u32, u32)> {
        let taken = self.take_away(&[State::Dirty], (lowest, chunk), min_idle, now);
        taken.map(|(index, order, _)| (index, order)).ok()
    }

    /// In how many ticks [`take_to_zero`](Buddy::take_to_zero) may find a block; 0 is now, `None`
    /// is not before another block is freed.
    #[must_use]
    pub fn next_to_zero(&self, lowest: u32, min_idle: u32, now: u32) -> Option<u32> {
        match self.idle(&[State::Dirty], lowest, min_idle, now) {
            Ok(_) => Some(0),
            Err(left) => left,
        }
    }

    /// The block that was used longest ago among those of the highest order, if nobody used it for
    /// `min_idle` ticks; or in how many ticks there will be one.
    fn idle(
        &self,
        states: &[State],
        lowest: u32,
        min_idle: u32,
        now: u32,
    ) -> Result<(u32, u32, State), Option<u32>> {
        let mut soonest = None;
        for order in (lowest..=self.core.max_order).rev() {
            for state in states {
                let index = self.core.lists[*state as usize][order as usize].tail;
                if index == NONE {
                    continue;
                }
                let age = self.age(index, now);
                if age >= min_idle {
                    return Ok((index, order, *state));
                }
                soonest = sooner(soonest, min_idle - age);
            }
        }
        Err(soonest)
    }

    /// Takes what is [`idle`](Buddy::idle), at most its first 2^`highest` frames.
    fn take_away(
        &mut self,
        states: &[State],
        (lowest, highest): (u32, u32),
        min_idle: u32,
        now: u32,
    ) -> Result<(u32, u32, State), Option<u32>> {
        let (index, order, state) = self.idle(states, lowest, min_idle, now)?;
        let part = order.min(highest.max(lowest));
        self.unlink(index);
        self.carve(index, order, part, state);
        self.become_used(index, part, state, Use::InFlight);
        Ok((index, part, state))
    }

    /// Takes any block away that is zero and resident.
    pub fn take_zeroed_away(&mut self) -> Option<(u32, u32)> {
        let orders = (0, self.core.max_order);
        let taken = self.take_away(&[State::ZeroResident], orders, 0, 0);
        taken.map(|(index, order, _)| (index, order)).ok()
    }

    fn age(&self, index: u32, now: u32) -> u32 {
        let stamp = self.frames[index as usize].stamp.load(Ordering::Relaxed);
        if later(stamp, now) { 0 } else { now.wrapping_sub(stamp) }
    }

    /// Takes the largest free resident block away to be returned to the system, dirty before zero, if nobody used it
    /// for `min_idle` ticks; at least of order `lowest`, at most its first 2^`highest` frames.
    ///
    /// # Errors
    /// In how many ticks there will be one; `None` where no block is large enough.
    pub fn take_to_trim(
        &mut self,
        (lowest, highest): (u32, u32),
        min_idle: u32,
        now: u32,
    ) -> Result<(u32, u32), Option<u32>> {
        let taken = self.take_away(&RESIDENT, (lowest, highest), min_idle, now);
        taken.map(|(index, order, _)| (index, order))
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

    /// Quarantines a block in flight.
    ///
    /// # Errors
    /// [`FreeError`] if no block of that order is in flight there.
    pub fn quarantine(&mut self, index: u32, order: u32) -> Result<(), FreeError> {
        self.is(index, order, Use::InFlight)?;
        let frame = &self.frames[index as usize];
        self.core.counts.in_flight -= 1 << order;
        self.core.counts.quarantined += 1 << order;
        frame.set_tag(Tag::new(Use::Quarantined, order));
        Ok(())
    }

    /// Quarantines an allocated block, for good.
    ///
    /// # Errors
    /// [`FreeError`] as [`free`](Buddy::free).
    pub fn quarantine_allocated(&mut self, index: u32, order: u32) -> Result<(), FreeError> {
        self.claim(index, order)?;
        self.core.counts.out -= 1 << order;
        self.core.counts.quarantined += 1 << order;
        self.frames[index as usize].set_tag(Tag::new(Use::Quarantined, order));
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
