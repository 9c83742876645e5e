//! Taking blocks back: from their users, and from per-thread caches.

use super::{Buddy, FreeError, State, Tag, Use, cached};

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

    /// Claims an allocated block in one exchange: of two callers that free it at one moment, one of them without the
    /// lock ([`Frame::cache`](super::tag::Frame::cache)), only one succeeds. Its frames still count as handed out.
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
        let end = index.checked_add(frames).filter(|end| *end <= self.core.managed);
        if frames == 0 || end.is_none() {
            return Err(FreeError::Foreign);
        }
        for (claimed, (part, order)) in self.parts(index, frames).enumerate() {
            let Err(why) = self.claim(part, order) else { continue };
            for (part, order) in self.parts(index, frames).take(claimed) {
                self.frames[part as usize].set_tag(Tag::new(Use::Allocated, order));
            }
            // What is as long as a block begins where one may.
            let misaligned = frames.is_power_of_two() && index & (frames - 1) != 0;
            let inside = why == FreeError::Interior;
            return Err(if misaligned && inside { FreeError::Misaligned } else { why });
        }
        let mut largest = 0;
        for (part, order) in self.parts(index, frames) {
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

    /// Takes blocks of one order back from a per-thread cache. Returns the order of the largest free block that came of
    /// it, and how many were not cached so and were left alone.
    pub fn free_cached(
        &mut self,
        blocks: &[u32],
        order: u32,
        zero: bool,
        now: u32,
    ) -> (u32, usize) {
        let used = cached(zero);
        let state = if zero { State::ZeroResident } else { State::Dirty };
        let (mut largest, mut refused) = (0, 0);
        for index in blocks {
            if self.is(*index, order, used).is_err() {
                refused += 1;
                continue;
            }
            largest = largest.max(self.release(*index, order, used, state, now));
        }
        (largest, refused)
    }
}
