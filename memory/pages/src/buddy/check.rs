//! Made anew from the tags after a death, and looked through as a whole.

use super::{Buddy, Core, Counts, Inconsistent, NONE, ORDERS, STATES, State, TAIL, Tag, Use};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

impl Buddy<'_> {
    /// Takes back, in that state, every block that is not free and that `gone` says nobody will ever
    /// bring back: those of a dead process, or of threads that did not survive a fork. Returns the
    /// frames gained.
    pub fn reclaim(&mut self, mut gone: impl FnMut(Tag) -> bool, state: State, now: u32) -> u64 {
        let mut index = 0;
        let mut gained = 0;
        while index < self.core.managed {
            let tag = self.frames[index as usize].tag();
            let Some(used) = tag.used() else {
                index += 1;
                continue;
            };
            let size = 1 << tag.order();
            if !matches!(used, Use::Free(_)) && gone(tag) {
                gained += u64::from(size);
                // Its thread may have been cutting it up.
                for tail in index + 1..index + size {
                    self.frames[tail as usize].set_tag(TAIL);
                }
                self.release(index, tag.order(), used, state, now);
            }
            index += size;
        }
        gained
    }

    /// Makes lists and counts anew from the tags, after somebody died in the middle of an
    /// operation. Frames whose tag makes no sense become dirty blocks of one frame.
    pub fn rebuild(&mut self, now: u32) {
        let Core { max_order, managed, wasted, .. } = *self.core;
        *self.core = Core { managed, wasted, ..Core::new(max_order) };
        for frame in &self.frames[..managed as usize] {
            frame.prev.store(NONE, Ordering::Relaxed);
        }
        let mut index = 0;
        while index < managed {
            let frame = &self.frames[index as usize];
            let tag = frame.tag();
            let order = tag.order();
            let sound = tag.used().is_some()
                && order <= max_order
                && index & ((1u32 << order) - 1) == 0
                && u64::from(index) + (1u64 << order) <= u64::from(managed);
            if !sound {
                frame.set_tag(Tag::free(State::Dirty, 0));
                frame.stamp.store(now, Ordering::Relaxed);
            }
            let tag = frame.tag();
            let size = 1u32 << tag.order();
            for tail in index + 1..index + size {
                self.frames[tail as usize].set_tag(TAIL);
            }
            if let Some(used) = tag.used() {
                *self.core.counts.of(used) += u64::from(size);
                if let Use::Free(state) = used {
                    self.coalesce_and_link(index, tag.order(), state);
                }
            }
            index += size;
        }
    }

    /// Looks at everything: that blocks tile the frames, that every list holds exactly the free
    /// blocks of its order and state, that the counts add up, that no two buddies of one state are
    /// apart. Takes time in proportion to the frames.
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check(&self) -> Result<Counts, Inconsistent> {
        let fail = |frame, what| Err(Inconsistent { frame, what });
        let mut counts = Counts::default();
        let mut blocks = [[0u32; ORDERS]; STATES];
        let mut index = 0;
        while index < self.core.managed {
            let tag = self.frames[index as usize].tag();
            let Some(used) = tag.used() else {
                return fail(index, "belongs to no block");
            };
            let order = tag.order();
            if order > self.core.max_order || index & ((1 << order) - 1) != 0 {
                return fail(index, "a block is not aligned to its size");
            }
            let Some(end) = index.checked_add(1 << order).filter(|end| *end <= self.core.managed)
            else {
                return fail(index, "a block ends after the last frame");
            };
            // A cache may be cutting its block up; once that is done the first frame says so.
            let parts = |tail: Tag| {
                let cached = matches!(used, Use::CachedDirty | Use::CachedZero);
                cached && tail.used() == Some(used)
            };
            let whole = |tail: Tag| tail == TAIL || parts(tail);
            if !(index + 1..end).all(|tail| whole(self.frames[tail as usize].tag())) {
                if self.frames[index as usize].tag() != tag {
                    continue;
                }
                return fail(index, "a block lies inside another");
            }
            *counts.of(used) += 1 << order;
            if let Use::Free(state) = used {
                blocks[state as usize][order as usize] += 1;
                if !self.linked(index, order, state) {
                    return fail(index, "a free block is in no list");
                }
                let buddy = index ^ (1 << order);
                if order < self.core.max_order
                    && buddy < self.core.managed
                    && self.frames[buddy as usize].tag() == tag
                {
                    return fail(index, "two free buddies of one state are apart");
                }
            }
            index = end;
        }
        if counts != self.core.counts {
            return fail(0, "the counts are not those of the blocks");
        }
        debug_assert_eq!(counts.total(), u64::from(self.core.managed), "blocks tile");
        let lengths = self.core.lists.map(|lists| lists.map(|list| list.blocks));
        if blocks != lengths {
            return fail(0, "the lists' lengths are not the numbers of blocks");
        }
        self.check_lists()?;
        Ok(counts)
    }

    fn check_lists(&self) -> Result<(), Inconsistent> {
        for state in State::ALL {
            for order in 0..ORDERS {
                let mut index = self.core.lists[state as usize][order].head;
                let (mut length, mut last) = (0, NONE);
                while let Some(frame) = self.frames.get(index as usize) {
                    if frame.tag() != Tag::free(state, order as u32) {
                        let what = "a list holds a block that is not its own";
                        return Err(Inconsistent { frame: index, what });
                    }
                    length += 1;
                    if length > self.core.lists[state as usize][order].blocks {
                        let what = "a list is longer than its count";
                        return Err(Inconsistent { frame: index, what });
                    }
                    last = index;
                    index = frame.next.load(Ordering::Relaxed);
                }
                if length != self.core.lists[state as usize][order].blocks
                    || last != self.core.lists[state as usize][order].tail
                {
                    let what = "a list does not end where it should";
                    return Err(Inconsistent { frame: last, what });
                }
            }
        }
        Ok(())
    }
}
