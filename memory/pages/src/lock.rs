//! A pool's lock and a handle's turn, as they are across forks.
//!
//! A lock lies in a slot that is never freed: `slots.rs` has them all, and `fork.rs` takes them all.

use crate::thread::{self, Thread};
use crate::waiting::Word;
use rustix::thread::futex;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Number of forks between the first process that used this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// A pool's lock, and who that pool is. Never freed; the next pool takes it over.
#[repr(align(128))]
pub(crate) struct Slot<P> {
    pub(crate) word: Word,
    /// Taken by a fork under way, and by the thread that forks.
    pub(crate) by_fork: AtomicBool,
    /// The pool's number; 0 where there is none.
    pub(crate) pool: AtomicU64,
    pub(crate) used: AtomicBool,
    /// Only while locked.
    pub(crate) inner: UnsafeCell<Weak<P>>,
    pub(crate) next: AtomicPtr<Slot<P>>,
}

// SAFETY: atomics, and what the lock protects.
unsafe impl<P: Send + Sync> Sync for Slot<P> {}

impl<P> Slot<P> {
    /// A used one, of no pool yet.
    pub(crate) fn new() -> Slot<P> {
        Slot {
            word: Word::default(),
            by_fork: AtomicBool::new(false),
            pool: AtomicU64::new(0),
            used: AtomicBool::new(true),
            inner: UnsafeCell::new(Weak::new()),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }
    }

    /// Takes the lock. False if it is not to be had at once, and the caller does not wait.
    pub(crate) fn acquire(&self, wait: bool) -> bool {
        self.word.acquire(thread::current().mark(), wait)
    }

    pub(crate) fn release(&self) {
        self.word.release();
    }

    /// Checks whether that thread has this lock: it was interrupted with it, where its signal handler
    /// asks.
    pub(crate) fn is_held_by(&self, thread: &Thread) -> bool {
        self.word.is_held_by(thread.mark())
    }

    /// Checks whether the calling thread has this lock because it is forking.
    pub(crate) fn is_the_forkers(&self, thread: &Thread) -> bool {
        // Another thread may fork at the same time, with a lock that this one found free.
        thread.forking.load(Ordering::Relaxed) != 0
            && self.by_fork.load(Ordering::Relaxed)
            && self.is_held_by(thread)
    }

    /// Says whose it is.
    pub(crate) fn enter(&self, number: u64, inner: &Arc<P>) {
        self.with(number, |place| *place = Arc::downgrade(inner));
        self.pool.store(number, Ordering::Release);
    }

    /// Lets it go: its pool is going.
    pub(crate) fn leave(&self, number: u64) {
        self.pool.store(0, Ordering::Release);
        self.with(number, |place| *place = Weak::new());
        self.used.store(false, Ordering::Release);
    }

    /// Does that with the lock.
    pub(crate) fn with<T>(&self, number: u64, work: impl FnOnce(&mut Weak<P>) -> T) -> Option<T> {
        let thread = thread::current();
        if self.is_the_forkers(thread) {
            // SAFETY: this thread has the lock.
            return Some(work(unsafe { &mut *self.inner.get() }));
        }
        // Between the steps of a fork a signal handler finds it so.
        if self.is_held_by(thread) || !thread.begin(number) {
            return None;
        }
        self.acquire(true);
        // SAFETY: the lock was taken.
        let done = work(unsafe { &mut *self.inner.get() });
        self.release();
        thread.end();
        Some(done)
    }
}

pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// In a forked child.
pub(crate) fn next_generation() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

/// A lock for what is rarely done and takes long: nobody has it in a forked child, whoever had it
/// in the parent. What it protects must be sound at every moment.
#[derive(Debug, Default)]
pub(crate) struct Turn(AtomicU32);

impl Turn {
    pub(crate) fn take(&self) -> TurnGuard<'_> {
        loop {
            let free = generation() << 1;
            let found = self.0.load(Ordering::Relaxed);
            if found == free | 1 {
                let _ = futex::wait(&self.0, futex::Flags::PRIVATE, found, None);
                continue;
            }
            let taken =
                self.0.compare_exchange(found, free | 1, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return TurnGuard(self);
            }
        }
    }
}

pub(crate) struct TurnGuard<'a>(&'a Turn);

impl Drop for TurnGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(generation() << 1, Ordering::Release);
        let _ = futex::wake(&self.0.0, futex::Flags::PRIVATE, 1);
    }
}
