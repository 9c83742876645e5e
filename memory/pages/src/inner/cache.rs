//! Per-thread caches: free blocks of the small orders that their thread hands out and takes back
//! without the lock, from a stack for each order. Stacks are filled, and relieved, by half at a time under the lock
//! (`docs/decisions/pool-caches.md`).
//!
//! A block is handed out by a number from a stack and one tag, and comes back by one tag, changed by
//! compare-and-swap, so that a block freed twice is noticed here too. A cache goes back to its pool when its thread ends.

use crate::buddy::Frame;
use crate::inner::magazine::{CACHED_ORDERS, DIRTY, Magazine, Stacks, ZERO};
use crate::inner::{Inner, now};
use crate::thread::{self, Entry};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, Weak};

/// Requests for zeroed blocks that are served by dirty ones before the pool is asked for zeroed ones again.
const PATIENCE: u32 = 32;

fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// A cache that is being changed.
struct Busy<'a>(&'a Magazine);

impl Drop for Busy<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.0.busy.store(0, Ordering::Relaxed);
    }
}

impl Busy<'_> {
    /// This cache, unless a signal handler finds it being changed.
    #[inline(always)]
    fn of(magazine: &Magazine) -> Option<Busy<'_>> {
        if magazine.busy.load(Ordering::Relaxed) != 0 {
            return None;
        }
        magazine.busy.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(Busy(magazine))
    }

    #[inline(always)]
    fn stacks(&mut self) -> &mut Stacks {
        // SAFETY: the cache is this thread's, and `busy` says that nobody else in it is at work
        // there.
        unsafe { &mut *self.0.stacks.get() }
    }

    #[inline(always)]
    fn length(&self, kind: usize, order: usize) -> usize {
        self.0.lengths[kind][order].load(Ordering::Relaxed) as usize
    }

    #[inline(always)]
    fn set_length(&self, kind: usize, order: usize, length: usize) {
        self.0.lengths[kind][order].store(length as u32, Ordering::Relaxed);
    }

    /// The block put in last.
    #[inline(always)]
    fn pop(&mut self, frames: &[Frame], order: usize, kind: usize) -> Option<u32> {
        let left = self.length(kind, order).checked_sub(1)?;
        self.set_length(kind, order, left);
        let index = *self.stacks().blocks[kind][order].get(left)?;
        frames[index as usize].hand_out(order as u32);
        Some(index)
    }

    /// Takes half a stack of one kind from the pool. False if there is none.
    fn refill(&mut self, inner: &Inner, order: usize, kind: usize) -> bool {
        let batch = inner.room.blocks(order).div_ceil(2);
        let Ok(mut guard) = inner.lock() else { return false };
        let zero = kind == ZERO;
        let places = &mut self.stacks().blocks[kind][order][..batch];
        let found = guard.buddy().take_cached(order as u32, zero, places);
        if zero {
            inner.wanted((found.max(1) << order) as u64);
        }
        drop(guard);
        // The newest block is on top of the stack.
        places[..found].reverse();
        self.set_length(kind, order, found);
        found != 0
    }

    /// Brings the oldest blocks of one kind back, until `keep` are left.
    fn give_back(&mut self, inner: &Inner, order: usize, kind: usize, keep: usize) {
        let length = self.length(kind, order);
        let gone = length.saturating_sub(keep);
        if gone == 0 {
            return;
        }
        let blocks = &mut self.stacks().blocks[kind][order][..length];
        let Ok(mut guard) = inner.lock() else { return };
        let (largest, refused) =
            guard.buddy().free_cached(&blocks[..gone], order as u32, kind == ZERO, now());
        drop(guard);
        debug_assert_eq!(refused, 0, "blocks in a cache are tagged so");
        blocks.copy_within(gone.., 0);
        self.set_length(kind, order, length - gone);
        if largest >= inner.settings().scrub_start {
            inner.wake_scrubber(false);
        }
    }

    /// Brings everything back.
    fn flush(&mut self, inner: &Inner) {
        for kind in [DIRTY, ZERO] {
            (0..CACHED_ORDERS).for_each(|order| self.give_back(inner, order, kind, 0));
        }
    }

    fn dirty_one(&mut self, inner: &Inner, order: usize) -> Option<u32> {
        if self.length(DIRTY, order) == 0 && !self.refill(inner, order, DIRTY) {
            return None;
        }
        self.pop(inner.frames(), order, DIRTY)
    }
}

/// This thread's cache of a pool, if it has one and is not at work there.
#[inline(always)]
fn mine(inner: &Inner) -> Option<Busy<'_>> {
    // SAFETY: a cache of that pool, which is there.
    let magazine = unsafe { &*Magazine::of_this_thread(inner.id)? };
    Busy::of(magazine)
}

/// This thread's cache, made if it has none yet. `None` where the pool has none for that order.
fn made(inner: &Arc<Inner>, order: u32) -> Option<Busy<'_>> {
    if inner.room.blocks(order as usize) == 0 {
        return None;
    }
    ensure(inner);
    mine(inner)
}

/// A block of that kind, from the stack alone. Counted as a request served.
#[inline(always)]
pub(crate) fn take(inner: &Inner, order: u32, zero: bool) -> Option<u32> {
    let order = order as usize;
    if order >= CACHED_ORDERS {
        return None;
    }
    let mut mine = mine(inner)?;
    let index = mine.pop(inner.frames(), order, usize::from(zero))?;
    bump(if zero { &mine.0.hits[order] } else { &mine.0.dirty }, 1);
    Some(index)
}

/// The block that this thread freed last, to be zeroed: from the stack alone.
pub(crate) fn take_hot(inner: &Inner, order: u32) -> Option<u32> {
    let at = order as usize;
    if at >= CACHED_ORDERS {
        return None;
    }
    let mut mine = mine(inner)?;
    let index = mine.pop(inner.frames(), at, DIRTY)?;
    bump(&mine.0.misses[at], 1);
    bump(&mine.0.hot_zeroed, inner.bytes(order) as u64);
    Some(index)
}

/// A zeroed block by way of the cache: from its stack, from the pool, and then a dirty one; true if that is still to be
/// zeroed. `None` if there is neither, or no cache.
pub(crate) fn take_zeroed(inner: &Arc<Inner>, order: u32) -> Option<(u32, bool)> {
    let mut mine = made(inner, order)?;
    let at = order as usize;
    if mine.length(DIRTY, at) != 0 && mine.stacks().patience != 0 {
        mine.stacks().patience -= 1;
    } else if mine.length(ZERO, at) != 0 || mine.refill(inner, at, ZERO) {
        bump(&mine.0.hits[at], 1);
        return Some((mine.pop(inner.frames(), at, ZERO)?, false));
    } else {
        mine.stacks().patience = PATIENCE;
        inner.wake_scrubber(false);
    }
    let index = mine.dirty_one(inner, at)?;
    bump(&mine.0.misses[at], 1);
    bump(&mine.0.hot_zeroed, inner.bytes(order) as u64);
    Some((index, true))
}

/// A dirty block by way of the cache: from its stack, or from the pool.
pub(crate) fn take_dirty(inner: &Arc<Inner>, order: u32) -> Option<u32> {
    let mut mine = made(inner, order)?;
    let index = mine.dirty_one(inner, order as usize)?;
    bump(&mine.0.dirty, 1);
    Some(index)
}

/// Takes a block back into this thread's cache. `None` if there is no cache for it, or no room, and
/// then see [`put_or_make_room`]; otherwise the answer to: is it an allocated block of that order?
#[inline(always)]
pub(crate) fn put(inner: &Inner, index: u32, order: u32) -> Option<bool> {
    let at = order as usize;
    let room = inner.room.blocks(at);
    let mut mine = mine(inner)?;
    let length = if room == 0 { 0 } else { mine.length(DIRTY, at) };
    if length >= room {
        return None;
    }
    if inner.frames()[index as usize].cache(order, false).is_err() {
        return Some(false);
    }
    mine.stacks().blocks[DIRTY][at][length] = index;
    mine.set_length(DIRTY, at, length + 1);
    bump(&mine.0.frees, 1);
    Some(true)
}

/// [`put`] where there may be no cache yet, or no room in it: half of it is brought back then.
pub(crate) fn put_or_make_room(inner: &Arc<Inner>, index: u32, order: u32) -> Option<bool> {
    let mut full = made(inner, order)?;
    let room = inner.room.blocks(order as usize);
    if full.length(DIRTY, order as usize) >= room {
        full.give_back(inner, order as usize, DIRTY, room / 2);
    }
    drop(full);
    put(inner, index, order)
}

/// Brings everything in this thread's cache back to the pool.
pub(crate) fn flush(inner: &Inner) {
    if let Some(mut mine) = mine(inner) {
        mine.flush(inner);
    }
}

/// Sees to it that this thread has a cache of the pool, where it can have one.
fn ensure(inner: &Arc<Inner>) {
    let thread = thread::current();
    let entry = thread.entry(inner.id);
    if entry.pool.load(Ordering::Relaxed) == inner.id
        || thread.ended.load(Ordering::Relaxed) != 0
        || thread.entering.swap(1, Ordering::Relaxed) != 0
    {
        return;
    }
    retire(entry);
    if let Ok(_guard) = inner.lock()
        && let Some(magazine) = inner.magazines.enter(inner.room)
    {
        let weak = Weak::into_raw(Arc::downgrade(inner));
        entry.weak.store(weak.cast_mut().cast(), Ordering::Relaxed);
        entry.magazine.store(std::ptr::from_ref(magazine).cast_mut().cast(), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        entry.pool.store(inner.id, Ordering::Relaxed);
    }
    if thread.known.swap(1, Ordering::Relaxed) == 0 {
        ending::tell();
    }
    thread.entering.store(0, Ordering::Relaxed);
}

/// Brings back what an entry of this thread's holds, if its pool is still there. Nothing in a signal handler that
/// interrupted it.
fn retire(entry: &Entry) {
    let weak = entry.weak.load(Ordering::Relaxed).cast::<Inner>();
    if weak.is_null() {
        return;
    }
    // SAFETY: put there by `ensure`, and taken once: below.
    let weak = unsafe { Weak::from_raw(weak.cast_const()) };
    let Some(inner) = weak.upgrade() else {
        return forget(entry);
    };
    // SAFETY: its pool is there, and so it is.
    let magazine = unsafe { &*entry.magazine.load(Ordering::Relaxed).cast::<Magazine>() };
    let Some(mut mine) = Busy::of(magazine) else {
        let _ = Weak::into_raw(weak);
        return;
    };
    mine.flush(&inner);
    forget(entry);
    drop(mine);
    if let Ok(_guard) = inner.lock() {
        magazine.used.store(0, Ordering::Relaxed);
    }
    // It may wait for nothing but whether threads are left.
    inner.wake_scrubber(crate::os::main_left());
}

fn forget(entry: &Entry) {
    entry.pool.store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    entry.weak.store(std::ptr::null_mut(), Ordering::Relaxed);
}

/// Tells when a thread ends: by a key of the C library's, since a destructor of thread-local
/// storage is registered with the loader, under its lock.
pub(crate) mod ending {
    use super::{retire, thread};
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicU32, Ordering};

    const NONE: u32 = u32::MAX;
    static KEY: AtomicU32 = AtomicU32::new(NONE);

    extern "C" fn ends(_: *mut c_void) {
        let thread = thread::current();
        thread.ended.store(1, Ordering::Relaxed);
        crate::os::thread_ends();
        thread.entries.iter().for_each(retire);
    }

    /// When the library is loaded: the main thread's end is told too.
    extern "C" fn loaded() {
        prepare();
        tell();
    }

    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOADED: extern "C" fn() = loaded;

    /// Makes the key, once; when the library is loaded, or at the first pool.
    pub(crate) fn prepare() {
        if KEY.load(Ordering::Acquire) != NONE {
            return;
        }
        let mut key = 0;
        // SAFETY: a place for the key, and a function that lives as long as the process.
        if unsafe { libc::pthread_key_create(&raw mut key, Some(ends)) } == 0
            && KEY.compare_exchange(NONE, key, Ordering::AcqRel, Ordering::Relaxed).is_err()
        {
            // SAFETY: made above; another thread was faster.
            unsafe { libc::pthread_key_delete(key) };
        }
    }

    pub(crate) fn tell() {
        let key = KEY.load(Ordering::Acquire);
        if key != NONE {
            // SAFETY: a key; any value but null.
            unsafe { libc::pthread_setspecific(key, std::ptr::dangling()) };
        }
    }
}
