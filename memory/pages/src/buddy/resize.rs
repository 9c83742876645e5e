//! Runs that become longer or shorter where they are.

use super::{Buddy, FreeError, State, TAIL, Tag, Use, run_parts};

impl Buddy<'_> {
    /// Makes an allocated run shorter: what is behind its first `keep` frames is free, in that state.
    ///
    /// # Errors
    /// [`FreeError`] as [`free_run`](Buddy::free_run), and [`FreeError::WrongOrder`] if `keep` is 0 or more
    /// than there is; nothing is changed then.
    pub fn shorten(
        &mut self,
        index: u32,
        (frames, keep): (u32, u32),
        state: State,
        now: u32,
    ) -> Result<(), FreeError> {
        self.owned_run(index, frames)?;
        if keep == 0 || keep > frames {
            return Err(FreeError::WrongOrder { actual: super::order_for(frames) });
        }
        if keep == frames {
            return Ok(());
        }
        self.tag_parts(index, keep);
        for (part, order) in run_parts(index + keep, frames - keep) {
            // The tag of a block that was cut, or as it was.
            self.frames[part as usize].set_tag(Tag::new(Use::Allocated, order));
            self.release(part, order, Use::Allocated, state, now);
        }
        Ok(())
    }

    /// Makes an allocated run longer, if all that it takes behind it is free. From its first absent frame to
    /// behind its last one: those that the caller faults in. `None`, and nothing is changed, where something
    /// else is behind it.
    ///
    /// # Errors
    /// [`FreeError`] as [`free_run`](Buddy::free_run); nothing is changed then.
    pub fn lengthen(
        &mut self,
        index: u32,
        (frames, wanted): (u32, u32),
    ) -> Result<Option<(u32, u32)>, FreeError> {
        self.owned_run(index, frames)?;
        let from = index + frames;
        let Some(end) = index.checked_add(wanted).filter(|end| *end <= self.core.managed) else {
            return Ok(None);
        };
        let (mut at, mut absent) = (from, (end, end));
        while at < end {
            let Some((first, tag)) = self.block_at(at) else { return Ok(None) };
            let Some(state) = tag.free_state() else { return Ok(None) };
            let next = first + (1 << tag.order());
            if state == State::ZeroAbsent {
                absent = (absent.0.min(at), next.min(end));
            }
            at = next;
        }
        if from < end {
            self.core.wasted += self.wasted_in((from, end));
            self.split_at(from);
            self.split_at(end);
            for (part, order) in run_parts(from, end - from) {
                self.take_group(part, order, Use::Allocated);
            }
            self.tag_parts(index, wanted);
        }
        Ok(Some(absent))
    }

    /// Checks whether that frame is free and not resident, or not managed yet.
    pub fn is_absent(&self, index: u32) -> bool {
        index >= self.core.managed
            || matches!(self.free_block_at(index), Some((_, State::ZeroAbsent, _)))
    }

    /// Checks whether a block begins at that frame that is in a thread's cache.
    pub fn is_cached(&self, index: u32) -> bool {
        index < self.core.managed
            && matches!(
                self.frames[index as usize].tag().used(),
                Some(Use::CachedDirty | Use::CachedZero)
            )
    }

    /// Checks whether a resident block of at least so many frames is free.
    pub fn has_resident(&self, frames: u32) -> bool {
        let mut orders = super::order_for(frames)..=self.core.max_order();
        let has =
            |order| State::resident(false).iter().any(|state| self.core.blocks(*state, order) != 0);
        orders.any(has)
    }

    /// Checks that a run of so many frames is allocated there.
    fn owned_run(&self, index: u32, frames: u32) -> Result<(), FreeError> {
        run_parts(index, frames).try_for_each(|(part, order)| self.owned(part, order))
    }

    /// Tags the blocks of a run that is allocated already, in parts that are each inside one of these
    /// or the other way round.
    fn tag_parts(&self, index: u32, frames: u32) {
        for (part, order) in run_parts(index, frames) {
            let end = part + (1 << order);
            let mut at = part;
            while at < end {
                let found = self.frames[at as usize].tag();
                let tag = if at == part { Tag::new(Use::Allocated, order) } else { TAIL };
                self.frames[at as usize].set_tag(tag);
                // A block that was longer ends the part.
                at = at.saturating_add(if found.used().is_some() { 1 << found.order() } else { 1 });
            }
        }
    }
}
