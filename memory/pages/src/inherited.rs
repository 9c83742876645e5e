//! The kind of a pool's memory, and the copies that are made of it for forks under way (`inner/child.rs`).

use crate::os::Mapping;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// The kind of memory that a pool has: what the system may do to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Memory {
    /// Private: free memory may be returned, and a fork copies all of it.
    Private = 0,
    /// Private, in explicit huge pages: free memory may be returned, and a fork copies nothing.
    Hugetlb = 1,
    /// A lease, or registered with a device: nothing is returned, and a fork copies nothing.
    Lent = 2,
}

/// The kind of memory, and the copies made for forks under way.
#[derive(Debug)]
pub(crate) struct Inherited {
    memory: AtomicU8,
    /// The copy made last. Only by the thread that forks, with the pool's lock.
    copies: AtomicPtr<Copied>,
}

/// A copy, described in its own last page: a fork in a signal handler must not allocate.
#[derive(Debug)]
struct Copied {
    mapping: Mapping,
    /// Number of forks that were under way in the thread, this one included.
    depth: u32,
    before: *mut Copied,
}

impl Inherited {
    pub(crate) fn new(memory: Memory) -> Inherited {
        Inherited { memory: AtomicU8::new(memory as u8), copies: AtomicPtr::default() }
    }

    /// The kind of the memory in this process.
    pub(crate) fn memory(&self) -> Memory {
        match self.memory.load(Ordering::Relaxed) {
            0 => Memory::Private,
            1 => Memory::Hugetlb,
            _ => Memory::Lent,
        }
    }

    /// Notes that a forked child has private memory there.
    pub(crate) fn become_private(&self) {
        self.memory.store(Memory::Private as u8, Ordering::Relaxed);
    }

    /// Keeps a copy for the child of the fork of that depth.
    pub(crate) fn push(&self, mapping: Mapping, capacity: usize, depth: u32) {
        let place = mapping.start().wrapping_add(capacity).cast::<Copied>();
        let before = self.copies.load(Ordering::Relaxed);
        // SAFETY: the mapping has a page for it behind the copy.
        unsafe { place.write(Copied { mapping, depth, before }) };
        self.copies.store(place, Ordering::Relaxed);
    }

    /// The copy that was made for the fork of that depth.
    pub(crate) fn pop(&self, depth: u32) -> Option<Mapping> {
        let place = self.copies.load(Ordering::Relaxed);
        // SAFETY: null, or written by `push` and not taken since.
        if unsafe { place.as_ref() }?.depth != depth {
            return None;
        }
        // SAFETY: as above; from here on nobody finds it there.
        let copied = unsafe { place.read() };
        self.copies.store(copied.before, Ordering::Relaxed);
        Some(copied.mapping)
    }
}
