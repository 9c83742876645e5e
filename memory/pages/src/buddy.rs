//! A buddy allocator of page frames that knows which free blocks are zero.
//!
//! Here are the lists and what every operation is made of; `tag` is what is known of a frame,
//! `take`, `run` and `give` what callers do, `in_flight` what scrubbing and trimming do, `check` looks at
//! everything.
//!
//! The allocator owns no memory and touches none: frames are numbers, and what is known of each is 16 bytes in
//! a slice that the caller brings. So an operating system's kernel can run it over its own page
//! frames (`examples/kernel_frames.rs`), and a process can put both the slice and [`Core`] in
//! memory shared with others.
//!
//! Every frame belongs to exactly one block, and every block is in exactly one [`Use`]. The first
//! frame of a block carries a *tag*: use and order; all other frames carry the tag of a tail.
//! **Tags are the truth, lists and counts are derived**: each split, merge and change of use
//! becomes valid with one store of one tag, in program order, and [`Buddy::check`] holds lists and counts
//! against the tags.
//!
//! Free blocks hang in one list per order and [`State`], newest first. Buddies of one state merge
//! at once; buddies of different states only when a larger block is needed and no other is to be
//! had ([`Buddy::take_any_run`]), since the merged block is only as good as its worse half.
//!
//! All methods need exclusive access, which the caller's lock gives. The exception is what a
//! per-thread cache does to its own blocks, which nobody else may change: between allocated and
//! cached ([`Frame::cache`], [`Frame::hand_out`]).

mod check;
mod count;
mod error;
mod give;
mod in_flight;
mod run;
mod tag;
mod take;
#[cfg(all(test, not(loom)))]
mod tests;

pub use count::Counts;
pub use error::{FreeError, Inconsistent};
pub use run::Run;
pub use tag::{Frame, State, Tag, Use};

use tag::{STATES, TAIL, cached};

#[cfg(not(loom))]
use core::sync::atomic::Ordering;
#[cfg(loom)]
use loom::sync::atomic::Ordering;

/// The highest order: 2^18 frames, 1 GiB of 4 KiB frames.
pub const MAX_ORDER: u32 = 18;
/// Number of orders.
pub const ORDERS: usize = MAX_ORDER as usize + 1;

const NONE: u32 = u32::MAX;

/// The free blocks of one order and state, newest first.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct List {
    head: u32,
    tail: u32,
    blocks: u32,
}

const EMPTY: List = List { head: NONE, tail: NONE, blocks: 0 };

/// List heads and counts: what [`Buddy`] needs besides the frames. Plain numbers, no pointers.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Core {
    /// One bit per order with a block in its list.
    filled: [u32; STATES],
    max_order: u32,
    managed: u32,
    counts: Counts,
    wasted: u64,
    /// By state, then order: an operation works on one state and on orders next to each other, so
    /// what it needs lies together.
    lists: [[List; ORDERS]; STATES],
}

impl Core {
    /// An allocator of no frames yet, with blocks up to `max_order` ([`MAX_ORDER`] at most).
    #[must_use]
    pub const fn new(max_order: u32) -> Core {
        Core {
            lists: [[EMPTY; ORDERS]; STATES],
            filled: [0; STATES],
            max_order: if max_order > MAX_ORDER { MAX_ORDER } else { max_order },
            managed: 0,
            counts: Counts {
                dirty: 0,
                zero_resident: 0,
                zero_absent: 0,
                in_flight: 0,
                out: 0,
                quarantined: 0,
            },
            wasted: 0,
        }
    }

    /// Frames by use.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Frames managed.
    #[must_use]
    pub const fn managed(&self) -> u32 {
        self.managed
    }

    /// The highest order of a block.
    #[must_use]
    pub const fn max_order(&self) -> u32 {
        self.max_order
    }

    /// Free blocks of that state and order.
    #[must_use]
    pub fn blocks(&self, state: State, order: u32) -> u32 {
        self.lists[state as usize].get(order as usize).map_or(0, |list| list.blocks)
    }

    /// Frames that were zeroed for nothing: merged into a dirty block.
    #[must_use]
    pub const fn wasted(&self) -> u64 {
        self.wasted
    }
}

/// The allocator: a [`Core`] and its frames, both borrowed for the length of an operation.
#[derive(Debug)]
pub struct Buddy<'a> {
    core: &'a mut Core,
    frames: &'a [Frame],
}

/// The smallest order whose blocks have at least that many frames.
#[must_use]
pub const fn order_for(frames: u32) -> u32 {
    if frames <= 1 { 0 } else { (frames - 1).ilog2() + 1 }
}

/// Is `a` a later moment than `b`, on a clock that wraps?
const fn later(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// The blocks that the run of `frames` frames from `first` on consists of, as first frame and order:
/// each as large as its alignment, what is left and the highest order allow. A run may start anywhere.
pub fn run_parts(first: u32, frames: u32, max_order: u32) -> impl Iterator<Item = (u32, u32)> {
    let (mut at, mut left) = (first, frames);
    core::iter::from_fn(move || {
        let order = left.checked_ilog2()?.min(at.trailing_zeros()).min(max_order);
        let part = at;
        (at, left) = (at.wrapping_add(1 << order), left - (1 << order));
        Some((part, order))
    })
}

impl<'a> Buddy<'a> {
    /// The allocator over these frames, of which the first [`Core::managed`] are in use.
    ///
    /// A core that manages more frames than there are is cut down to them.
    pub fn new(core: &'a mut Core, frames: &'a [Frame]) -> Buddy<'a> {
        let have = u32::try_from(frames.len()).unwrap_or(NONE - 1);
        core.managed = core.managed.min(have);
        Buddy { core, frames }
    }

    /// The counts and list lengths.
    #[must_use]
    pub fn core(&self) -> &Core {
        self.core
    }

    /// Takes the next `count` frames into use, free and in the given state. Returns how many were
    /// added: fewer if the slice ends earlier.
    pub fn extend(&mut self, count: u32, state: State, now: u32) -> u32 {
        let first = self.core.managed;
        let room = u32::try_from(self.frames.len()).unwrap_or(NONE - 1) - first;
        let end = first + count.min(room);
        let mut index = first;
        while index < end {
            let order = self.largest_at(index, end);
            let frame = &self.frames[index as usize];
            frame.stamp.store(now, Ordering::Relaxed);
            frame.prev.store(NONE, Ordering::Relaxed);
            frame.set_tag(Tag::free(state, order));
            index += 1 << order;
        }
        self.core.managed = end;
        *self.core.counts.of(Use::Free(state)) += u64::from(end - first);
        let mut index = first;
        while index < end {
            let order = self.largest_at(index, end);
            self.coalesce_and_link(index, order, state);
            index += 1 << order;
        }
        end - first
    }

    fn parts(&self, first: u32, frames: u32) -> impl Iterator<Item = (u32, u32)> + use<> {
        run_parts(first, frames, self.core.max_order)
    }

    fn largest_at(&self, index: u32, end: u32) -> u32 {
        let fits = (end - index).ilog2();
        index.trailing_zeros().min(fits).min(self.core.max_order)
    }

    fn become_used(&mut self, index: u32, order: u32, from: State, to: Use) {
        *self.core.counts.of(Use::Free(from)) -= 1 << order;
        *self.core.counts.of(to) += 1 << order;
        self.frames[index as usize].set_tag(Tag::new(to, order));
    }

    fn release(&mut self, index: u32, order: u32, from: Use, to: State, now: u32) -> u32 {
        *self.core.counts.of(from) -= 1 << order;
        *self.core.counts.of(Use::Free(to)) += 1 << order;
        self.frames[index as usize].stamp.store(now, Ordering::Relaxed);
        self.frames[index as usize].set_tag(Tag::free(to, order));
        self.coalesce_and_link(index, order, to)
    }

    fn coalesce_and_link(&mut self, mut index: u32, mut order: u32, state: State) -> u32 {
        while order < self.core.max_order {
            let buddy = index ^ (1 << order);
            if u64::from(buddy) + (1 << order) > u64::from(self.core.managed)
                || self.frames[buddy as usize].tag() != Tag::free(state, order)
                || !self.linked(buddy, order, state)
            {
                break;
            }
            self.unlink(buddy);
            let (lower, upper) = (index.min(buddy), index.max(buddy));
            let (a, b) = (&self.frames[lower as usize], &self.frames[upper as usize]);
            let upper_stamp = b.stamp.load(Ordering::Relaxed);
            if later(upper_stamp, a.stamp.load(Ordering::Relaxed)) {
                a.stamp.store(upper_stamp, Ordering::Relaxed);
            }
            a.set_tag(Tag::free(state, order + 1));
            b.set_tag(TAIL);
            index = lower;
            order += 1;
        }
        self.link(index, order, state);
        order
    }

    /// Free blocks are tagged before they are linked while the allocator grows; only linked ones
    /// can be merged with.
    fn linked(&self, index: u32, order: u32, state: State) -> bool {
        let frame = &self.frames[index as usize];
        let prev = frame.prev.load(Ordering::Relaxed);
        match self.frames.get(prev as usize) {
            None => self.core.lists[state as usize][order as usize].head == index,
            Some(before) => before.next.load(Ordering::Relaxed) == index,
        }
    }

    fn link(&mut self, index: u32, order: u32, state: State) {
        let (state, order) = (state as usize, order as usize);
        let head = self.core.lists[state][order].head;
        let frame = &self.frames[index as usize];
        frame.next.store(head, Ordering::Relaxed);
        frame.prev.store(NONE, Ordering::Relaxed);
        match self.frames.get(head as usize) {
            Some(next) => next.prev.store(index, Ordering::Relaxed),
            None => self.core.lists[state][order].tail = index,
        }
        self.core.lists[state][order].head = index;
        self.core.lists[state][order].blocks += 1;
        self.core.filled[state] |= 1 << order;
    }

    fn unlink(&mut self, index: u32) {
        let frame = &self.frames[index as usize];
        let tag = frame.tag();
        let Some(state) = tag.free_state() else { return };
        let (state, order) = (state as usize, tag.order() as usize);
        let next = frame.next.load(Ordering::Relaxed);
        let prev = frame.prev.load(Ordering::Relaxed);
        match self.frames.get(prev as usize) {
            Some(before) => before.next.store(next, Ordering::Relaxed),
            None => self.core.lists[state][order].head = next,
        }
        match self.frames.get(next as usize) {
            Some(after) => after.prev.store(prev, Ordering::Relaxed),
            None => self.core.lists[state][order].tail = prev,
        }
        // No frame may look linked that is not (`linked`).
        frame.prev.store(NONE, Ordering::Relaxed);
        self.core.lists[state][order].blocks -= 1;
        if self.core.lists[state][order].blocks == 0 {
            self.core.filled[state] &= !(1 << order);
        }
    }

    /// The block that a frame belongs to, as its first frame and tag.
    fn block_at(&self, index: u32) -> Option<(u32, Tag)> {
        (0..=self.core.max_order).find_map(|order| {
            let first = index >> order << order;
            let tag = self.frames[first as usize].tag();
            (tag.used().is_some() && tag.order() >= order).then_some((first, tag))
        })
    }

    fn is(&self, index: u32, order: u32, used: Use) -> Result<(), FreeError> {
        if index >= self.core.managed {
            return Err(FreeError::Foreign);
        }
        let tag = self.frames[index as usize].tag();
        if tag.used() != Some(used) {
            return Err(FreeError::DoubleFree);
        }
        if tag.order() != order {
            return Err(FreeError::WrongOrder { actual: tag.order() });
        }
        Ok(())
    }

    /// Every block in order of its first frame, as that frame and its tag.
    pub fn walk(&self) -> impl Iterator<Item = (u32, Tag)> {
        let mut index = 0;
        core::iter::from_fn(move || {
            if index >= self.core.managed {
                return None;
            }
            let tag = self.frames[index as usize].tag();
            let first = index;
            index = index.saturating_add(if tag.used().is_some() { 1 << tag.order() } else { 1 });
            Some((first, tag))
        })
    }
}
