//! The layers of a pool, each on top of those before: [`Chunks`], the buddy allocator's [`Lists`], [`Gate`],
//! [`Caches`].

use crate::buddy::{Core, Frame};
use crate::closed::Closed;
use crate::inherited::Inherited;
use crate::lock::Slot;
use crate::magazine::{Magazines, Shares};
use crate::os::Mapping;
use crate::stats::Events;
use crate::waiting::Bell;
use std::boxed::Box;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};
use std::vec::Vec;

/// The pool's address space, and the parts of it that are memory.
#[repr(C)]
pub(crate) struct Chunks {
    /// First byte; aligned to a huge page.
    pub(crate) base: *mut u8,
    /// Bytes of a frame, as a power of two: a page of the system.
    pub(crate) frame_shift: u32,
    /// Number of frames.
    pub(crate) capacity: u32,
    /// Units that are address space alone.
    pub(crate) closed: Box<Closed>,
    /// Kind of the memory, and its copies for forked children.
    pub(crate) inherited: Inherited,
    /// The mappings of the pool's memory and bookkeeping, for their drop.
    pub(crate) _mappings: Vec<Mapping>,
}

/// The buddy allocator's bookkeeping: in which block and state each frame is. Changed under the gate's lock.
#[repr(C)]
pub(crate) struct Lists {
    /// A tag and links for each frame of the chunks.
    pub(crate) frames: *const Frame,
    /// List heads and counters, in a mapping of their own.
    pub(crate) control: *const Control,
}

/// A field that has the next one begin a pair of cache lines (that much is fetched together).
#[repr(align(128))]
struct Apart;

/// The pool's bookkeeping, except for the frames and the lock, which is in the pool's slot (`lock.rs`).
#[repr(C)]
pub(crate) struct Control {
    /// Bytes of zeroed requests that came past the caches: the scrubber's work is being used. Only
    /// written under the lock.
    pub(crate) demand: AtomicU64,
    /// Number of times that the lock was taken. Only written under it.
    pub(crate) holds: AtomicU64,
    pub(crate) core: UnsafeCell<Core>,
    _waiting_apart: Apart,
    /// Wakes scrubbers.
    pub(crate) wake: Bell,
    /// Until when scrubbers take nothing: somebody needs what they have in flight. A moment and not
    /// a count, so that a thread that ends while it waits leaves nothing behind.
    pub(crate) hold_off: AtomicU32,
    pub(crate) events: Events,
}

/// The way into the lists: what a call has to pass, and the lock.
#[repr(C)]
pub(crate) struct Gate<P: 'static> {
    /// Closed, verified, distrusted; 0 where a hand-out from a cache has nothing to look at.
    pub(crate) flags: AtomicU32,
    /// Generation of the process that last locked the pool; in a forked child one behind, until it does so first.
    pub(crate) generation: AtomicU32,
    /// The pool's number; none is used twice.
    pub(crate) id: u64,
    /// The lock, which outlives the pool.
    pub(crate) slot: &'static Slot<P>,
}

/// The threads' caches, which hand out and take back without the lock.
#[repr(C)]
pub(crate) struct Caches {
    /// Most that each cache may hold.
    pub(crate) shares: Shares,
    /// All caches of this pool.
    pub(crate) magazines: Magazines,
}

/// Notes between the layers and the scrubber's thread.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// State of the scrubber, as [`ScrubberState`](crate::stats::ScrubberState).
    pub(crate) state: AtomicU8,
    /// Number of rests because no CPU was idle or the load was above its limit.
    pub(crate) load_rests: AtomicU64,
    /// Not 0 while free resident memory is to be brought up to its mark.
    pub(crate) behind: AtomicU32,
}
