//! Runs: any number of frames side by side, as Linux's `alloc_pages_exact` has them. A run is the front of a block of
//! the next power of two, whose rest stays free; where no block is that large, a row of adjacent free blocks.

use super::{Buddy, State, Use};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

/// A run of adjacent free blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first frame.
    pub first: u32,
    /// True if a part of it is dirty.
    pub dirty: bool,
    /// True if a part of it is absent.
    pub absent: bool,
}

impl Buddy<'_> {
    /// Hands out the first `frames` frames of a block of that order and state, whose rest stays free as it is.
    pub fn take_front(&mut self, order: u32, frames: u32, state: State, now: u32) -> Option<u32> {
        let index = self.take(order, state)?;
        if frames < 1 << order {
            let kept = self.keep_front(index, order, (frames, frames), (state, now));
            debug_assert!(kept.is_ok(), "just taken: {kept:?}");
        }
        Some(index)
    }

    /// Hands out `frames` frames from adjacent free blocks, whatever their states, from a multiple of `alignment` on: the
    /// first place there is. It looks at every block, so it is for when no block is large enough: then also buddies of
    /// different states are joined, and a run may be longer than the largest block.
    pub fn take_any_run(&mut self, frames: u32, alignment: u32) -> Option<Run> {
        let first = self.place(frames, alignment)?;
        let end = first + frames;
        let mut run = Run { first, dirty: false, absent: false };
        self.split_at(first);
        self.split_at(end);
        let mut zeroed = 0;
        let mut at = first;
        while at < end {
            let tag = self.frames[at as usize].tag();
            match tag.free_state() {
                Some(State::Dirty) | None => run.dirty = true,
                Some(State::ZeroAbsent) => run.absent = true,
                Some(State::ZeroResident) => zeroed += 1 << tag.order(),
            }
            at += 1 << tag.order();
        }
        if run.dirty {
            self.core.wasted += zeroed;
        }
        for (part, order) in self.parts(first, frames) {
            // A free block inside the run is no larger than the part that it lies in.
            self.take_group(part, order, Use::Allocated);
        }
        Some(run)
    }

    /// The first frame of the first row of free blocks that has room.
    fn place(&self, frames: u32, alignment: u32) -> Option<u32> {
        let mut row = None;
        self.walk().filter(|_| frames > 0).find_map(|(first, tag)| {
            if tag.free_state().is_none() {
                row = None;
                return None;
            }
            let start = (*row.get_or_insert(first)).checked_next_multiple_of(alignment)?;
            let end = start.checked_add(frames)?;
            (end <= first + (1 << tag.order())).then_some(start)
        })
    }

    /// Cuts the free block in which that frame lies, so that one begins with it. Both sides are the
    /// largest blocks that they can be, but what is left of them may be buddies of one state, until the
    /// caller takes what lies on one side.
    fn split_at(&mut self, at: u32) {
        if at >= self.core.managed {
            return;
        }
        let Some((mut index, tag)) = self.block_at(at) else { return };
        let Some(state) = tag.free_state() else { return };
        if index == at {
            return;
        }
        let mut order = tag.order();
        let stamp = self.frames[index as usize].stamp.load(Ordering::Relaxed);
        self.unlink(index);
        while index != at {
            order -= 1;
            let upper = index + (1 << order);
            // As in `carve`: the upper half is tagged first.
            self.frames[upper as usize].stamp.store(stamp, Ordering::Relaxed);
            self.frames[upper as usize].set_tag(super::Tag::free(state, order));
            self.frames[index as usize].set_tag(super::Tag::free(state, order));
            if at < upper {
                self.link(upper, order, state);
            } else {
                self.link(index, order, state);
                index = upper;
            }
        }
        self.link(index, order, state);
    }
}
