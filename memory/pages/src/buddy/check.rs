//! The whole bookkeeping looked through.

use super::{Buddy, Counts, Inconsistent, NONE, ORDERS, STATES, State, TAIL, Tag, Use};
#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

impl Buddy<'_> {
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
            if !(index + 1..end).all(|tail| self.frames[tail as usize].tag() == TAIL) {
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
