//! Who may be at a site's state: one thread at a time, and nobody waits. A fork that leaves a gate shut
//! behind a thread that the child does not have shuts out nobody there.
//!
//! `tests/loom.rs` goes through all interleavings of it.

#[cfg(not(loom_gate))]
use core::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, Ordering},
};
#[cfg(loom_gate)]
use loom::{
    cell::UnsafeCell,
    sync::atomic::{AtomicU32, Ordering},
};

/// Something that one thread of a process is at, at a time.
pub struct Gated<T> {
    /// The epoch of the process whose thread is at it; 0 if none is.
    gate: AtomicU32,
    inside: UnsafeCell<T>,
}

// SAFETY: what is inside is reached through `with` only, by one thread at a time, and may go to any.
unsafe impl<T: Send> Sync for Gated<T> {}

impl<T> Gated<T> {
    /// Nobody is at it.
    #[cfg(not(loom_gate))]
    pub const fn new(inside: T) -> Gated<T> {
        Gated { gate: AtomicU32::new(0), inside: UnsafeCell::new(inside) }
    }

    /// Nobody is at it.
    #[cfg(loom_gate)]
    pub fn new(inside: T) -> Gated<T> {
        Gated { gate: AtomicU32::new(0), inside: UnsafeCell::new(inside) }
    }

    /// Runs `body` on it unless a thread of this epoch is at it.
    pub fn with<R>(&self, epoch: u32, body: impl FnOnce(&mut T) -> R) -> Option<R> {
        let found = self.gate.load(Ordering::Relaxed);
        if found == epoch
            || self
                .gate
                .compare_exchange(found, epoch, Ordering::Acquire, Ordering::Relaxed)
                .is_err()
        {
            return None;
        }
        let at = |place: *mut T| {
            // SAFETY: the gate holds this epoch from the exchange above until the store below, and
            // nobody of this epoch passes it meanwhile. A former epoch's threads are those of the
            // process that this one was forked from, and are not here.
            body(unsafe { &mut *place })
        };
        #[cfg(not(loom_gate))]
        let result = at(self.inside.get());
        #[cfg(loom_gate)]
        let result = self.inside.with_mut(at);
        self.gate.store(0, Ordering::Release);
        Some(result)
    }

    /// As a forked child finds it whose parent had a thread at it.
    #[cfg(any(test, loom_gate))]
    pub fn left_by(&self, epoch: u32) {
        self.gate.store(epoch, Ordering::Relaxed);
    }
}

/// Numbers for processes that were forked from each other: one for each, whichever of its threads asks
/// first.
#[derive(Debug, Default)]
pub struct Epochs {
    /// The last number taken, here and before the fork.
    taken: AtomicU32,
}

impl Epochs {
    /// None was taken yet.
    #[cfg(not(loom_gate))]
    #[must_use]
    pub const fn new() -> Epochs {
        Epochs { taken: AtomicU32::new(0) }
    }

    /// None was taken yet.
    #[cfg(loom_gate)]
    #[must_use]
    pub fn new() -> Epochs {
        Epochs { taken: AtomicU32::new(0) }
    }

    /// This process's number. `here` is 0 at first, and lies in memory that a forked child finds zeroed.
    ///
    /// Threads of one process agree, because the number that counts is the one that is in `here`. It is
    /// no ancestor's: each has taken its number before it was in its `here`, and what was taken before
    /// the fork is taken in the child.
    pub fn of(&self, here: &AtomicU32) -> u32 {
        loop {
            let number = here.load(Ordering::Relaxed);
            if number != 0 {
                return number;
            }
            let next = self.taken.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            let _ = here.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}
