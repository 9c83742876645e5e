//! What a fork does to pools.
//!
//! Before a fork the locks of all pools are taken, so that no thread is in the middle of
//! anything; after it the parent lets go, and the child makes its locks anew and drops free memory: a
//! page of it would be the parent's and the child's until one of them writes, and then be two.
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
//! Locks lie in slots that are never freed, so that none of this needs a list that could be locked
//! itself.
//!
//! A process made by `clone` or `_Fork` directly runs no fork handlers; it must not use pools that
//! it inherited.

use crate::inner::Inner;
use crate::thread::{self, Thread};
use crate::waiting::Word;
use rustix::thread::futex;
use std::boxed::Box;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// How often the process was forked on the way from the first one that used this library.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());

/// A pool's lock, and who that pool is. Never freed; the next pool takes it over.
#[repr(align(128))]
pub(crate) struct Slot {
    word: Word,
    /// Taken by a fork under way, and by the thread that forks.
    by_fork: AtomicBool,
    /// The pool's number; 0 where there is none.
    pool: AtomicU64,
    used: AtomicBool,
    /// Only while locked.
    inner: UnsafeCell<Weak<Inner>>,
    next: AtomicPtr<Slot>,
}

// SAFETY: atomics, and what the lock protects.
unsafe impl Sync for Slot {}

impl Slot {
    /// Takes the lock. False if it is not to be had at once, and the caller does not wait.
    pub(crate) fn acquire(&self, wait: bool) -> bool {
        self.word.acquire(thread::current().mark(), wait)
    }

    pub(crate) fn release(&self) {
        self.word.release();
    }

    /// Whether that thread has this lock: it was interrupted with it, where its signal handler
    /// asks.
    pub(crate) fn is_held_by(&self, thread: &Thread) -> bool {
        self.word.is_held_by(thread.mark())
    }

    /// Whether the calling thread has this lock because it is forking.
    pub(crate) fn is_the_forkers(&self, thread: &Thread) -> bool {
        // Another thread may fork at the same time, with a lock that this one found free.
        thread.forking.load(Ordering::Relaxed) != 0
            && self.by_fork.load(Ordering::Relaxed)
            && self.is_held_by(thread)
    }
}

pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

fn slots() -> impl Iterator<Item = &'static Slot> {
    let mut next = &SLOTS;
    std::iter::from_fn(move || {
        // SAFETY: null, or a slot, which is never freed.
        let slot = unsafe { next.load(Ordering::Acquire).as_ref() }?;
        next = &slot.next;
        Some(slot)
    })
}

/// A lock for a new pool.
pub(crate) fn slot() -> &'static Slot {
    register();
    let free = |slot: &&Slot| {
        slot.used.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if let Some(slot) = slots().find(free) {
        return slot;
    }
    let slot: &'static Slot = Box::leak(Box::new(Slot {
        word: Word::default(),
        by_fork: AtomicBool::new(false),
        pool: AtomicU64::new(0),
        used: AtomicBool::new(true),
        inner: UnsafeCell::new(Weak::new()),
        next: AtomicPtr::new(std::ptr::null_mut()),
    }));
    let mut head = SLOTS.load(Ordering::Acquire);
    loop {
        slot.next.store(head, Ordering::Relaxed);
        let new = std::ptr::from_ref(slot).cast_mut();
        match SLOTS.compare_exchange(head, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return slot,
            Err(other) => head = other,
        }
    }
}

/// Says whose a slot is.
pub(crate) fn enter(slot: &'static Slot, inner: &Arc<Inner>) {
    with(slot, inner.id, |place| *place = Arc::downgrade(inner));
    slot.pool.store(inner.id, Ordering::Release);
}

/// Lets a slot go, whose pool is going.
pub(crate) fn leave(slot: &'static Slot, pool: u64) {
    slot.pool.store(0, Ordering::Release);
    with(slot, pool, |place| *place = Weak::new());
    slot.used.store(false, Ordering::Release);
}

fn with<T>(slot: &Slot, pool: u64, work: impl FnOnce(&mut Weak<Inner>) -> T) -> Option<T> {
    let thread = thread::current();
    if slot.is_the_forkers(thread) {
        // SAFETY: this thread has the lock.
        return Some(work(unsafe { &mut *slot.inner.get() }));
    }
    // Between the steps of a fork a signal handler finds it so.
    if slot.is_held_by(thread) || !thread.begin(pool) {
        return None;
    }
    slot.acquire(true);
    // SAFETY: the lock was taken.
    let done = work(unsafe { &mut *slot.inner.get() });
    slot.release();
    thread.end();
    Some(done)
}

/// Whether there is a pool of that number. Only where nobody can end it meanwhile.
pub(crate) fn is_there(number: u64) -> bool {
    slots().any(|slot| slot.pool.load(Ordering::Acquire) == number)
}

/// The pool of that number, if it is still there.
pub(crate) fn pool(number: u64) -> Option<Arc<Inner>> {
    let slot = slots().find(|slot| slot.pool.load(Ordering::Acquire) == number)?;
    let found = with(slot, number, |place| place.upgrade())?;
    found.filter(|inner| inner.id == number)
}

/// Runs this library's handlers around every fork from now on. Done when the library is loaded.
fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handlers are functions that live as long as the process.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    }
}

extern "C" fn loaded() {
    crate::os::loaded();
    register();
    // Its end is told: it is the main thread, unless the library was loaded late.
    crate::cache::ending::prepare();
    crate::cache::ending::tell();
}

/// Has the threads of all pools look at what there is to do.
pub(crate) fn wake_scrubbers() {
    for number in
        slots().map(|slot| slot.pool.load(Ordering::Acquire)).filter(|number| *number != 0)
    {
        if let Some(inner) = pool(number) {
            inner.wake_scrubber(true);
        }
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;

extern "C" fn prepare() {
    let thread = thread::current();
    // A fork in a signal handler that interrupted a fork: all is locked already.
    if thread.forking.fetch_add(1, Ordering::Relaxed) != 0 {
        return;
    }
    for slot in slots() {
        if !slot.is_held_by(thread) {
            slot.acquire(true);
            slot.by_fork.store(true, Ordering::Relaxed);
        }
    }
}

extern "C" fn parent() {
    let thread = thread::current();
    if thread.forking.load(Ordering::Relaxed) == 1 {
        for slot in slots() {
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
    GENERATION.fetch_add(1, Ordering::Relaxed);
    crate::os::forked();
    let thread = thread::current();
    // In a signal handler that interrupted a fork this one is over, and that one goes on: it keeps
    // what it has locked. Whoever else had a lock is not here.
    let interrupted = over(thread) > 1;
    for slot in slots() {
        let by_fork = slot.by_fork.load(Ordering::Relaxed);
        let kept = slot.is_held_by(thread) && (interrupted || !by_fork);
        slot.by_fork.store(by_fork && kept, Ordering::Relaxed);
        slot.word.set(kept.then(|| thread.mark()));
        if !kept && slot.pool.load(Ordering::Relaxed) != 0 {
            // SAFETY: whoever forked had the lock, and this is the only thread.
            if let Some(inner) = unsafe { &*slot.inner.get() }.upgrade() {
                inner.forked();
            }
        }
    }
    crate::cache::forked(thread);
    crate::cache::ending::tell();
    // Nobody is left there who could let this thread go on.
    #[cfg(all(feature = "testing", debug_assertions))]
    crate::schedule::leave();
    for slot in slots().filter(|slot| !slot.is_held_by(thread)) {
        if let Some(inner) = pool(slot.pool.load(Ordering::Acquire)) {
            inner.drop_inherited();
        }
    }
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
        let slot = slot();
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
            let number = pool.inner().id;
            let slot = slots().find(|slot| slot.pool.load(Ordering::Relaxed) == number);
            let slot = slot.expect("its slot");
            prepare();
            let served = pool.alloc(0).is_ok();
            slot.by_fork.store(false, Ordering::Relaxed);
            let refused = matches!(pool.alloc(0), Err(crate::PoolError::Reentered));
            let unknown = super::pool(number).is_none();
            slot.by_fork.store(true, Ordering::Relaxed);
            parent();
            served && refused && unknown && pool.alloc(0).is_ok()
        }));
    }

    /// Its pool was made after the first one had taken all locks there were.
    #[test]
    fn a_thread_that_forks_leaves_the_locks_of_another_one_that_does() {
        let slot = slot();
        assert!(well_in_a_child(|| {
            thread::current().forking.store(1, Ordering::Relaxed);
            let others = std::thread::spawn(|| {
                prepare();
                std::ptr::from_ref(thread::current()).addr()
            });
            let _ = others.join().expect("no panic");
            let held = |slot: &Slot| slot.by_fork.load(Ordering::Relaxed) && !slot.acquire(false);
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
