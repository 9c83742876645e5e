//! What a fork does to pools.
//!
//! Before a fork the locks of all private pools are taken, so that no thread is in the middle of
//! anything; after it the parent lets go and the child makes its locks anew, since the holder it
//! inherited is a thread of the parent. Nothing else happens then, so a child that only calls `exec`
//! pays nothing; the rest is done at the child's first use of a pool (`Inner::lock`).
//!
//! Pools in shared memory need none of this: their lock is known to the system, and the parent goes
//! on as before.
//!
//! A process made by `clone` or `_Fork` directly runs no fork handlers; it must not use pools that
//! it inherited.

use crate::inner::Inner;
use crate::os::{Backing, Lock};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::vec::Vec;

/// How often the process was forked on the way from the first one that used this library.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static POOLS: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

struct Entry(*const Inner);

// SAFETY: an entry is taken out before its pool goes away, under the list's lock.
unsafe impl Send for Entry {}

/// The list's lock from before a fork to after it.
struct Held(UnsafeCell<Option<MutexGuard<'static, Vec<Entry>>>>);

// SAFETY: only reached by the thread that holds the list's lock.
unsafe impl Sync for Held {}

static HELD: Held = Held(UnsafeCell::new(None));

pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

pub(crate) fn register(inner: &Inner) {
    static HANDLERS: Once = Once::new();
    HANDLERS.call_once(|| {
        // SAFETY: the handlers are functions that live as long as the process.
        unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    });
    POOLS.lock().unwrap_or_else(PoisonError::into_inner).push(Entry(inner));
}

pub(crate) fn unregister(inner: &Inner) {
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    pools.retain(|entry| !std::ptr::eq(entry.0, inner));
}

extern "C" fn prepare() {
    let pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    for entry in pools.iter() {
        // SAFETY: entries are of living pools while the list is locked.
        let inner = unsafe { &*entry.0 };
        // A fork from a signal handler that interrupted the holder is refused the lock, and goes on:
        // the child rebuilds the lists from the tags anyway.
        let _ = inner.control().lock.lock();
    }
    let place = HELD.0.get();
    // SAFETY: the list's lock is held.
    unsafe { *place = Some(pools) };
}

extern "C" fn parent() {
    let place = HELD.0.get();
    // SAFETY: the list's lock is held, by this thread, since `prepare`.
    let Some(pools) = (unsafe { (*place).take() }) else { return };
    for entry in pools.iter() {
        // SAFETY: entries are of living pools while the list is locked.
        unsafe { &*entry.0 }.control().lock.unlock();
    }
}

extern "C" fn child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let place = HELD.0.get();
    // SAFETY: the list's lock is held since `prepare`, by the thread that this one is a copy of.
    let Some(pools) = (unsafe { (*place).take() }) else { return };
    for entry in pools.iter() {
        // SAFETY: entries are of living pools while the list is locked.
        let lock = unsafe { &*entry.0 }.lock_place();
        // SAFETY: this is the only thread of the process.
        unsafe { Lock::init(lock, Backing::Private) };
    }
}
