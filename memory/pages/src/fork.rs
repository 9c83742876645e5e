//! Handling of forks.
//!
//! Before a fork the locks of all pools are taken, so that no thread is in the middle of
//! anything; after it the parent lets go, and the child makes its locks anew and drops free memory: a
//! page of it would be the parent's and the child's until one of them writes, and then be two. Memory that the
//! system does not copy is copied here (`inner/child.rs`).
//!
//! **A program's own fork handlers may use pools, in whatever order they run.** The handlers here
//! are registered when the library is loaded, so they run last before a fork and first after it, as
//! the C library takes malloc's locks after all handlers and for the same reason: a handler that
//! waits for another thread must not wait for one that waits for a pool. Where a handler is
//! registered still earlier, it runs while its own thread has all the locks, and finds them open
//! (`Inner::lock`).
//!
//! A fork from a signal handler that interrupted the holder of a lock, in the same thread, leaves
//! that lock to its holder: it goes on in the child too, and lets go there. What the handler itself
//! asks of that pool is refused.
//!
//! A process made by `clone` or `_Fork` directly runs no fork handlers; it must not use pools that
//! it inherited.

use crate::cache;
use crate::inner::Inner;
use crate::lock::{self, Slot};
use crate::slots::{self, all};
use crate::thread::{self, Thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Has this library told of every fork and of every thread's end from now on. Done when the library is
/// loaded, or at the first pool.
pub(crate) fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handlers are functions that live as long as the process.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    }
    cache::ending::prepare();
}

extern "C" fn loaded() {
    crate::os::loaded();
    register();
    // Its end is told: it is the main thread, unless the library was loaded late.
    cache::ending::tell();
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn prepare() {
    let thread = thread::current();
    let depth = thread.forking.fetch_add(1, Ordering::Relaxed) + 1;
    for slot in all() {
        let interrupted = slot.is_held_by(thread);
        // A fork in a signal handler that interrupted a fork: all is locked already.
        if depth == 1 && !interrupted {
            slot.acquire(true);
            slot.by_fork.store(true, Ordering::Relaxed);
        }
        if let Some(inner) = held(slot, thread) {
            inner.copy_for_child(depth, !interrupted);
        }
    }
}

/// The pool of a lock that this thread has.
fn held(slot: &Slot<Inner>, thread: &Thread) -> Option<Arc<Inner>> {
    if slot.pool.load(Ordering::Relaxed) == 0 || !slot.is_held_by(thread) {
        return None;
    }
    // SAFETY: this thread has the lock.
    unsafe { &*slot.inner.get() }.upgrade()
}

extern "C" fn parent() {
    let thread = thread::current();
    let depth = thread.forking.load(Ordering::Relaxed);
    all().filter_map(|slot| held(slot, thread)).for_each(|inner| inner.forget_copy(depth));
    if depth == 1 {
        for slot in all() {
            // Not those of another thread that forks meanwhile: pools were made since.
            if slot.is_held_by(thread) && slot.by_fork.swap(false, Ordering::Relaxed) {
                // SAFETY: this thread has the lock.
                let inner = unsafe { &*slot.inner.get() }.upgrade();
                // The child is about to drop what it inherited free. Until then a write copies it.
                inner.iter().for_each(|inner| inner.hold_off());
                slot.release();
            }
        }
    }
    over(thread);
}

/// One fork less is under way in this thread. Returns how many there were. None, where the library
/// was loaded in the middle of one.
fn over(thread: &Thread) -> u32 {
    let forks = thread.forking.load(Ordering::Relaxed);
    thread.forking.store(forks.saturating_sub(1), Ordering::Relaxed);
    forks
}

extern "C" fn child() {
    lock::next_generation();
    crate::os::forked();
    let thread = thread::current();
    let depth = thread.forking.load(Ordering::Relaxed);
    for slot in all().filter(|slot| slot.pool.load(Ordering::Relaxed) != 0) {
        // SAFETY: this is the only thread, and none changes a slot that has its pool's number.
        if let Some(inner) = unsafe { &*slot.inner.get() }.upgrade() {
            inner.use_copy(depth);
        }
    }
    // In a signal handler that interrupted a fork this one is over, and that one goes on: it keeps
    // what it has locked. Whoever else had a lock is not here.
    let interrupted = over(thread) > 1;
    for slot in all() {
        let by_fork = slot.by_fork.load(Ordering::Relaxed);
        let kept = slot.is_held_by(thread) && (interrupted || !by_fork);
        slot.by_fork.store(by_fork && kept, Ordering::Relaxed);
        slot.word.set(kept.then(|| thread.mark()));
    }
    cache::forked(thread);
    cache::ending::tell();
    // Nobody is left there who could let this thread go on.
    #[cfg(all(feature = "testing", debug_assertions))]
    crate::schedule::leave();
    for slot in all().filter(|slot| !slot.is_held_by(thread)) {
        if let Some(inner) = slots::pool(slot.pool.load(Ordering::Acquire)) {
            inner.drop_inherited();
        }
    }
}

// Miri has no fork.
#[cfg(all(test, not(miri)))]
pub(crate) mod tests {
    use super::*;

    /// In a child, where nobody else forks: whether all was well there.
    pub(crate) fn well_in_a_child(test: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child calls what is made for one, and leaves at once.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            // SAFETY: the default action, which ends a process that hangs.
            unsafe { libc::alarm(60) };
            let well = std::panic::catch_unwind(std::panic::AssertUnwindSafe(test));
            // SAFETY: ends this process at once.
            unsafe { libc::_exit(i32::from(!well.unwrap_or(false))) };
        }
        let mut status = -1;
        // SAFETY: a child of this process, and a place for what it says.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        status == 0
    }

    /// In the inner fork's child the outer fork's handlers go on, and find what they had locked.
    #[test]
    fn a_fork_in_a_handler_that_interrupts_a_fork_leaves_its_locks_to_the_outer_one() {
        let slot = slots::slot();
        assert!(well_in_a_child(|| {
            let thread = thread::current();
            prepare();
            prepare();
            child();
            let kept = slot.is_held_by(thread) && slot.is_the_forkers(thread);
            parent();
            let over = !slot.is_held_by(thread) && !slot.is_the_forkers(thread);
            kept && over && thread.forking.load(Ordering::Relaxed) == 0
        }));
        slot.used.store(false, Ordering::Release);
    }

    /// It interrupts the thread that forks where that has a lock, and has not said yet, or no longer says,
    /// that it has it for the fork.
    #[test]
    fn a_signal_handler_between_the_steps_of_a_fork_is_refused_and_waits_for_nobody() {
        let scrub = crate::Scrub { enabled: false, ..crate::Scrub::default() };
        let pool = crate::Pool::builder().capacity(1 << 20).cache_blocks(0).scrub(scrub);
        let pool = pool.build().expect("a pool");
        assert!(well_in_a_child(|| {
            let number = pool.inner().gate.id;
            let slot = all().find(|slot| slot.pool.load(Ordering::Relaxed) == number);
            let slot = slot.expect("its slot");
            prepare();
            let served = pool.alloc(0).is_ok();
            slot.by_fork.store(false, Ordering::Relaxed);
            let refused = matches!(pool.alloc(0), Err(crate::PoolError::Reentered));
            let unknown = slots::pool(number).is_none();
            slot.by_fork.store(true, Ordering::Relaxed);
            parent();
            served && refused && unknown && pool.alloc(0).is_ok()
        }));
    }

    /// Its pool was made after the first one had taken all locks there were.
    #[test]
    fn a_thread_that_forks_leaves_the_locks_of_another_one_that_does() {
        let slot = slots::slot();
        assert!(well_in_a_child(|| {
            thread::current().forking.store(1, Ordering::Relaxed);
            let others = std::thread::spawn(|| {
                prepare();
                std::ptr::from_ref(thread::current()).addr()
            });
            let _ = others.join().expect("no panic");
            let held =
                |slot: &Slot<Inner>| slot.by_fork.load(Ordering::Relaxed) && !slot.acquire(false);
            let before = held(slot) && !slot.is_the_forkers(thread::current());
            parent();
            let left = held(slot);
            // And in the child of either.
            thread::current().forking.store(1, Ordering::Relaxed);
            child();
            before && left && !slot.by_fork.load(Ordering::Relaxed) && slot.acquire(false)
        }));
        slot.used.store(false, Ordering::Release);
    }
}
