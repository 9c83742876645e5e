//! State of one frame: its tag, which is the truth, its links, and the two changes of a tag that need no lock.

#[cfg(not(loom))]
use core::sync::atomic::{AtomicU32, Ordering};
#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};

/// Number of states.
pub(super) const STATES: usize = 3;

/// State of a free block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// Anything may be in it.
    Dirty = 0,
    /// Every byte is zero, and its pages are there.
    ZeroResident = 1,
    /// Every byte is zero once its pages are there; touching it may fault.
    ZeroAbsent = 2,
}

impl State {
    /// Every state, in declaration order.
    pub const ALL: [State; STATES] = [State::Dirty, State::ZeroResident, State::ZeroAbsent];

    /// The resident states, the best first for a request for zeroed memory, or for any.
    #[must_use]
    pub const fn resident(zeroed: bool) -> [State; 2] {
        if zeroed {
            [State::ZeroResident, State::Dirty]
        } else {
            [State::Dirty, State::ZeroResident]
        }
    }
}

/// Use of a block at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    /// In a list, to be handed out.
    Free(State),
    /// Being zeroed or returned to the system; in no list.
    InFlight,
    /// Handed out.
    Allocated,
    /// In a per-thread cache, contents unknown.
    CachedDirty,
    /// In a per-thread cache, every byte zero.
    CachedZero,
    /// Not allocated: an engine may still write to it, until that has ended; or it was not zero though it should have been,
    /// for good.
    Quarantined,
}

/// Use and order of a block, in the word that its first frame carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tag(u32);

pub(super) const TAIL: Tag = Tag(0);

impl Tag {
    pub(super) const fn new(used: Use, order: u32) -> Tag {
        let code = match used {
            Use::Free(State::Dirty) => 1,
            Use::Free(State::ZeroResident) => 2,
            Use::Free(State::ZeroAbsent) => 3,
            Use::InFlight => 4,
            Use::Allocated => 5,
            Use::CachedDirty => 6,
            Use::CachedZero => 7,
            Use::Quarantined => 8,
        };
        Tag(code | order << 8)
    }

    pub(super) const fn free(state: State, order: u32) -> Tag {
        Tag::new(Use::Free(state), order)
    }

    /// Use of the block; `None` if the frame is not the first of a block.
    #[must_use]
    pub const fn used(self) -> Option<Use> {
        Some(match self.0 & 0xFF {
            1 => Use::Free(State::Dirty),
            2 => Use::Free(State::ZeroResident),
            3 => Use::Free(State::ZeroAbsent),
            4 => Use::InFlight,
            5 => Use::Allocated,
            6 => Use::CachedDirty,
            7 => Use::CachedZero,
            8 => Use::Quarantined,
            _ => return None,
        })
    }

    /// The block's order.
    #[must_use]
    pub const fn order(self) -> u32 {
        self.0 >> 8 & 0xFF
    }

    pub(super) const fn free_state(self) -> Option<State> {
        match self.used() {
            Some(Use::Free(state)) => Some(state),
            _ => None,
        }
    }
}

pub(super) const fn cached(zero: bool) -> Use {
    if zero { Use::CachedZero } else { Use::CachedDirty }
}

/// Bookkeeping of one frame: 16 bytes, all of them zero at first.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Frame {
    tag: AtomicU32,
    pub(super) next: AtomicU32,
    pub(super) prev: AtomicU32,
    pub(super) stamp: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Frame>() == 16, "16 bytes per frame are promised");

impl Frame {
    /// A frame that belongs to no block yet.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Frame {
        Frame {
            tag: AtomicU32::new(0),
            next: AtomicU32::new(0),
            prev: AtomicU32::new(0),
            stamp: AtomicU32::new(0),
        }
    }

    /// The tag at this moment.
    #[must_use]
    pub fn tag(&self) -> Tag {
        Tag(self.tag.load(Ordering::Acquire))
    }

    // Release, so that no tag becomes visible before one stored earlier (see the module's text).
    pub(super) fn set_tag(&self, tag: Tag) {
        self.tag.store(tag.0, Ordering::Release);
    }

    /// Puts an allocated block into a cache, without the lock. Exactly one of several callers
    /// succeeds, so a block freed twice is noticed whatever the threads do.
    ///
    /// # Errors
    /// The tag found, if it is not that of a block allocated with this order.
    #[inline(always)]
    pub fn cache(&self, order: u32, zero: bool) -> Result<(), Tag> {
        let to = Tag::new(cached(zero), order);
        self.swap(Tag::new(Use::Allocated, order), to)
    }

    /// Takes a block out of a cache again, without the lock. Only the thread whose cache it is may
    /// call this; nobody else changes the tag of a cached block, so no exchange is needed.
    #[inline(always)]
    pub fn hand_out(&self, order: u32) {
        debug_assert!(matches!(self.tag().used(), Some(Use::CachedZero | Use::CachedDirty)));
        self.set_tag(Tag::new(Use::Allocated, order));
    }

    #[inline(always)]
    pub(super) fn swap(&self, from: Tag, to: Tag) -> Result<(), Tag> {
        self.tag
            .compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| ())
            .map_err(Tag)
    }
}
