//! Per-thread caches: free blocks of the small orders that their thread hands out and takes back
//! without the lock.
//!
//! A cache is found through the thread's own storage (`thread.rs`) and is memory of its pool:
//! getting one allocates nothing. What it hands out is a number from a stack and one tag; what
//! comes back is one tag, changed by compare-and-swap, so that a block freed twice is noticed here
//! too. Stacks are filled from a *reserve* of pieces, blocks as large as there were, which the
//! cache cuts up by itself, and the reserve is filled, and dirty blocks go back, many at a time
//! under the lock (`docs/decisions/pool-caches.md`).
//!
//! What caches may hold together is a part of the pool, shared by the threads that have one
//! (`magazine.rs`). A thread reads its share where it would take the lock anyway.
//!
//! A cache goes back to its pool when its thread ends. In a forked child all caches are empty: the
//! child's pool takes cached blocks back by itself.
//!
//! `busy` is set while a cache is being changed: a signal handler of the same thread that finds it
//! so goes past the cache.

use crate::buddy::{Frame, ORDERS, State, halve_cached, split_cached};
use crate::inner::{Inner, now};
use crate::magazine::{
    CACHE_BLOCKS, CACHED_ORDERS, DIRTY, Magazine, Own, PIECES, ZERO, first_place, share,
};
use crate::slots;
use crate::thread::{self, Entry, Thread};
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

/// Blocks fetched together at first.
const FIRST_BATCH: u32 = 8;
/// Blocks cut off together: few, so that no hand-out takes long.
const CUT: usize = 32;
/// Number of frames whose tags lie in one cache line.
const FRAMES_PER_LINE: usize = 64 / size_of::<Frame>();
/// Dirty blocks that are zeroed at hand-out before the pool is asked for zeroed ones again.
const PATIENCE: u32 = 64;

fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// Has the CPU fetch a frame's cache line to write it, while the caller does something else.
#[inline(always)]
fn fetch_to_write(frame: &Frame) {
    let place = std::ptr::from_ref(frame);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint, which changes nothing and cannot fault. Every 64-bit CPU decodes it, and takes it for no
    // operation if it is none to it (Intel SDM, PREFETCHW).
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: a hint, which changes nothing and cannot fault (Arm ARM, PRFM).
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}

/// A cache that is being changed.
struct Busy<'a>(&'a Magazine);

impl Drop for Busy<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        point!();
        self.0.busy.store(0, Ordering::Relaxed);
    }
}

impl Busy<'_> {
    #[inline(always)]
    fn own(&mut self) -> &mut Own {
        // SAFETY: the cache is this thread's, and `busy` says that nobody else in it is at work
        // there.
        unsafe { &mut *self.0.own.get() }
    }

    #[inline(always)]
    fn length(&self, kind: usize, order: usize) -> usize {
        self.0.shown.lengths[kind][order].load(Ordering::Relaxed) as usize
    }

    #[inline(always)]
    fn set_length(&self, kind: usize, order: usize, length: usize) {
        self.0.shown.lengths[kind][order].store(length as u32, Ordering::Relaxed);
    }

    /// The block put in last.
    #[inline(always)]
    fn pop(&mut self, inner: &Inner, order: usize, kind: usize) -> Option<u32> {
        let left = self.length(kind, order).checked_sub(1)?;
        self.set_length(kind, order, left);
        let index = *self.own().blocks[kind].get(first_place(order) + left)?;
        inner.frames()[index as usize].hand_out(order as u32);
        Some(index)
    }

    /// Puts blocks in that are tagged as cached. There is room: nobody fetches or frees more than that.
    #[inline(always)]
    fn push(&mut self, order: usize, kind: usize, blocks: &[u32]) {
        let length = self.length(kind, order);
        let after = length + blocks.len();
        let first = first_place(order);
        let stack = &mut self.own().blocks[kind][first..first + share(CACHE_BLOCKS, order)];
        stack[length..after].copy_from_slice(blocks);
        self.set_length(kind, order, after);
    }

    fn reserved(&self, inner: &Inner, pieces: &[u32], gone: bool) {
        let frames: u32 =
            pieces.iter().map(|index| 1 << inner.frames()[*index as usize].tag().order()).sum();
        let reserved = &self.0.shown.reserved;
        let before = reserved.load(Ordering::Relaxed);
        let after = if gone { before.wrapping_sub(frames) } else { before.wrapping_add(frames) };
        reserved.store(after, Ordering::Relaxed);
    }

    /// Cuts up to [`CUT`] blocks off the reserve into the stack, which is empty. They are taken
    /// from there in order of their addresses.
    fn cut(&mut self, inner: &Inner, order: usize, kind: usize) {
        let reserve = &mut self.own().reserves[kind][order];
        let Some(left) = reserve.length.checked_sub(1) else { return };
        let frames = inner.frames();
        let index = reserve.pieces[left];
        while frames[index as usize].tag().order() > order as u32 + CUT.ilog2()
            && reserve.length < reserve.pieces.len()
            && let Some((upper, _)) = halve_cached(frames, index)
        {
            reserve.pieces[reserve.length - 1] = upper;
            reserve.pieces[reserve.length] = index;
            reserve.length += 1;
        }
        reserve.length -= 1;
        self.reserved(inner, &[index], true);
        let mut blocks = [index; CUT];
        let filled = split_cached(frames, order as u32, &mut blocks, 1);
        blocks[..filled].reverse();
        self.push(order, kind, &blocks[..filled]);
        self.fetch_next_cut(inner, order, kind);
    }

    /// Has the tags fetched that the next [`cut`](Busy::cut) writes: others wrote them last, and to wait for
    /// their CPUs' caches one line after the other takes longer than all else that a hand-out does.
    fn fetch_next_cut(&mut self, inner: &Inner, order: usize, kind: usize) {
        let reserve = &self.own().reserves[kind][order];
        let Some(last) = reserve.length.checked_sub(1) else { return };
        let (frames, index) = (inner.frames(), reserve.pieces[last]);
        let length = 1 << frames[index as usize].tag().order();
        let apart = (1 << order).max(FRAMES_PER_LINE);
        for frame in (index..index + length).step_by(apart).take((CUT << order).div_ceil(apart)) {
            fetch_to_write(&frames[frame as usize]);
        }
    }

    /// Fetches memory of one kind from the pool into the reserve, which is empty. False if there is
    /// none.
    fn refill(&mut self, inner: &Inner, order: usize, kind: usize, room: usize) -> bool {
        let reserve = &mut self.own().reserves[kind][order];
        let batch = (FIRST_BATCH + reserve.batch).min(room as u32);
        let state = if kind == ZERO { State::ZeroResident } else { State::Dirty };
        let Ok(mut guard) = inner.lock_to_take() else { return false };
        let pieces = &mut reserve.pieces[..PIECES];
        let found = guard.buddy().take_cached_of(state, order as u32, batch, pieces);
        inner.wanted(if kind == ZERO { u64::from(batch) << order } else { 0 });
        inner.release_after_hand_out(guard);
        reserve.length = found;
        // A thread that comes again takes more.
        reserve.batch = (batch * 2).saturating_sub(FIRST_BATCH).min(CACHE_BLOCKS as u32);
        let pieces = reserve.pieces;
        self.reserved(inner, &pieces[..found], false);
        self.fetch_next_cut(inner, order, kind);
        found != 0
    }

    /// Brings blocks of one kind back, oldest first, until that many are left.
    fn give_back(&mut self, inner: &Inner, order: usize, kind: usize, keep: usize) {
        let length = self.length(kind, order);
        let gone = length.saturating_sub(keep);
        if gone == 0 {
            return;
        }
        let first = first_place(order);
        let blocks = &mut self.own().blocks[kind][first..first + length];
        // Neighbours are merged before they meet the lists, and for that they are sorted: here, and
        // not under the lock.
        blocks[..gone].sort_unstable();
        let Ok(mut guard) = inner.lock() else { return };
        let (largest, refused) =
            guard.buddy().free_cached_all(&mut blocks[..gone], order as u32, kind == ZERO, now());
        drop(guard);
        debug_assert_eq!(refused, 0, "blocks in a cache are tagged so");
        wake(inner, largest);
        self.own().blocks[kind][first..first + length].copy_within(gone.., 0);
        self.set_length(kind, order, keep);
    }

    /// Brings everything back if it holds more than its share: that has become smaller.
    fn keep_to_share(&mut self, inner: &Inner) {
        if self.0.pages() > u64::from(inner.caches.shares.pages.load(Ordering::Relaxed)) {
            self.flush(inner);
        }
    }

    /// Brings everything back.
    fn flush(&mut self, inner: &Inner) {
        for kind in [DIRTY, ZERO] {
            for order in 0..CACHED_ORDERS.min(ORDERS) {
                self.give_back(inner, order, kind, 0);
                let reserve = self.own().reserves[kind][order];
                let pieces = &reserve.pieces[..reserve.length];
                if pieces.is_empty() {
                    continue;
                }
                let Ok(mut guard) = inner.lock() else { continue };
                self.reserved(inner, pieces, true);
                self.own().reserves[kind][order].length = 0;
                let (mut largest, now) = (0, now());
                for &index in pieces {
                    let order = inner.frames()[index as usize].tag().order();
                    let merged = guard.buddy().free_cached(index, order, kind == ZERO, now);
                    debug_assert!(merged.is_ok(), "what a cache holds is tagged so: {merged:?}");
                    largest = largest.max(merged.unwrap_or(0));
                }
                drop(guard);
                wake(inner, largest);
            }
        }
    }
}

impl Busy<'_> {
    /// Unless a signal handler finds it being changed.
    #[inline(always)]
    fn of(magazine: &Magazine) -> Option<Busy<'_>> {
        if magazine.busy.load(Ordering::Relaxed) != 0 {
            return None;
        }
        magazine.busy.store(1, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        Some(Busy(magazine))
    }
}

fn wake(inner: &Inner, largest: u32) {
    if largest >= inner.settings().scrub_start {
        inner.wake_scrubber(false);
    }
}

/// This thread's cache, kept to its share, and how many blocks of an order it may hold. `None` where
/// the pool has none for that order.
fn mine_with_room(inner: &Inner, order: u32) -> Option<(Busy<'_>, usize)> {
    if order as usize >= CACHED_ORDERS || share(inner.settings().cache_blocks, order as usize) == 0
    {
        return None;
    }
    ensure(inner);
    if !inner.caches.shares.has(order as usize) {
        let _guard = inner.lock().ok()?;
        inner.caches.shares.orders.fetch_or(1 << order, Ordering::Relaxed);
        inner.share_out();
    }
    let mut mine = mine(inner)?;
    mine.keep_to_share(inner);
    let room = inner.caches.shares.room(order as usize);
    (room != 0).then_some((mine, room))
}

/// This thread's cache of a pool, if it has one and is not at work there.
#[inline(always)]
fn mine(inner: &Inner) -> Option<Busy<'_>> {
    // SAFETY: a cache of that pool, which is there.
    let magazine = unsafe { &*Magazine::of_this_thread(inner.gate.id)? };
    Busy::of(magazine)
}

/// A block of that kind, from the stack alone. Counted as a request served.
#[inline(always)]
pub(crate) fn take(inner: &Inner, order: u32, zero: bool) -> Option<u32> {
    let order = order as usize;
    if order >= CACHED_ORDERS {
        return None;
    }
    let mut mine = mine(inner)?;
    let index = mine.pop(inner, order, usize::from(zero))?;
    let shown = &mine.0.shown;
    bump(if zero { &shown.hits[order] } else { &shown.dirty }, 1);
    Some(index)
}

/// The block that this thread freed last, to be zeroed: from the stack alone.
pub(crate) fn take_hot(inner: &Inner, order: u32) -> Option<u32> {
    let at = order as usize;
    if at >= CACHED_ORDERS {
        return None;
    }
    let mut mine = mine(inner)?;
    let index = mine.pop(inner, at, DIRTY)?;
    let shown = &mine.0.shown;
    bump(&shown.misses[at], 1);
    bump(&shown.hot_zeroed, inner.bytes(order) as u64);
    Some(index)
}

/// A zeroed block by way of the cache: from its stack, its reserve, the pool, and then a dirty one,
/// which is to be zeroed, if so it says. `None` if there is neither, or no cache.
pub(crate) fn take_zeroed(inner: &Inner, order: u32) -> Option<(u32, bool)> {
    let (mut mine, room) = mine_with_room(inner, order)?;
    let at = order as usize;
    loop {
        if let Some(index) = mine.pop(inner, at, ZERO) {
            bump(&mine.0.shown.hits[at], 1);
            return Some((index, false));
        }
        if mine.own().reserves[ZERO][at].length != 0 {
            mine.cut(inner, at, ZERO);
            if mine.length(ZERO, at) == 0 {
                return None;
            }
            continue;
        }
        let dirty = mine.length(DIRTY, at) + mine.own().reserves[DIRTY][at].length;
        if dirty != 0 && mine.own().patience != 0 {
            mine.own().patience -= 1;
        } else if mine.refill(inner, at, ZERO, room) {
            continue;
        } else {
            mine.own().patience = PATIENCE;
            inner.wake_scrubber(false);
        }
        let index = dirty_one(&mut mine, inner, at, room)?;
        let shown = &mine.0.shown;
        bump(&shown.misses[at], 1);
        bump(&shown.hot_zeroed, inner.bytes(order) as u64);
        return Some((index, true));
    }
}

fn dirty_one(mine: &mut Busy<'_>, inner: &Inner, at: usize, room: usize) -> Option<u32> {
    if let Some(index) = mine.pop(inner, at, DIRTY) {
        return Some(index);
    }
    if mine.own().reserves[DIRTY][at].length == 0 && !mine.refill(inner, at, DIRTY, room) {
        return None;
    }
    mine.cut(inner, at, DIRTY);
    mine.pop(inner, at, DIRTY)
}

/// A dirty block by way of the cache: from its stack, its reserve, the pool.
pub(crate) fn take_dirty(inner: &Inner, order: u32) -> Option<u32> {
    let (mut mine, room) = mine_with_room(inner, order)?;
    let index = dirty_one(&mut mine, inner, order as usize, room)?;
    bump(&mine.0.shown.dirty, 1);
    Some(index)
}

/// Takes a block back into this thread's cache. `None` if there is no cache for it, or no room, and
/// then see [`put_many`]; otherwise the answer to: is it an allocated block of that order?
#[inline(always)]
pub(crate) fn put(inner: &Inner, index: u32, order: u32) -> Option<Result<(), ()>> {
    let at = order as usize;
    if at >= CACHED_ORDERS {
        return None;
    }
    let mut mine = mine(inner)?;
    let length = mine.length(DIRTY, at);
    if length >= inner.caches.shares.room(at) {
        return None;
    }
    if inner.frames()[index as usize].cache(order, false).is_err() {
        return Some(Err(()));
    }
    mine.push(at, DIRTY, &[index]);
    bump(&mine.0.shown.frees, 1);
    Some(Ok(()))
}

/// [`put`] where there may be no cache yet, or no room in it: half of it is brought back then.
pub(crate) fn put_many(inner: &Inner, index: u32, order: u32) -> Option<Result<(), ()>> {
    let (mut full, room) = mine_with_room(inner, order)?;
    if full.length(DIRTY, order as usize) >= room {
        full.give_back(inner, order as usize, DIRTY, room / 2);
    }
    drop(full);
    put(inner, index, order)
}

/// Brings everything in this thread's cache back to the pool.
pub(crate) fn flush(inner: &Inner) {
    inner.settle();
    if let Some(mut mine) = mine(inner) {
        mine.flush(inner);
    }
}

/// Sees to it that this thread has a cache of the pool, where it can have one.
fn ensure(inner: &Inner) {
    // Work that a fork left undone is done before the cache is used.
    inner.settle();
    let thread = thread::current();
    let entry = thread.entry(inner.gate.id);
    if entry.pool.load(Ordering::Relaxed) == inner.gate.id {
        return;
    }
    if thread.ended.load(Ordering::Relaxed) != 0 || thread.entering.swap(1, Ordering::Relaxed) != 0
    {
        return;
    }
    retire(entry);
    if let Ok(_guard) = inner.lock()
        && let Some(magazine) = inner.caches.magazines.enter()
    {
        entry.magazine.store(std::ptr::from_ref(magazine).cast_mut().cast(), Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
        entry.pool.store(inner.gate.id, Ordering::Relaxed);
        inner.share_out();
    }
    if thread.known.swap(1, Ordering::Relaxed) == 0 {
        ending::tell();
    }
    thread.entering.store(0, Ordering::Relaxed);
}

/// Brings back what an entry of this thread's holds, if its pool is still there.
fn retire(entry: &Entry) {
    let number = entry.pool.load(Ordering::Relaxed);
    if number == 0 {
        return;
    }
    if let Some(inner) = slots::pool(number) {
        inner.settle();
        // SAFETY: its pool is there, and so it is.
        let magazine = unsafe { &*entry.magazine.load(Ordering::Relaxed).cast::<Magazine>() };
        let Some(mut mine) = Busy::of(magazine) else { return };
        mine.flush(&inner);
        drop(mine);
        entry.pool.store(0, Ordering::Relaxed);
        if let Ok(_guard) = inner.lock() {
            magazine.used.store(0, Ordering::Relaxed);
            inner.share_out();
        }
    }
    entry.pool.store(0, Ordering::Relaxed);
}

/// In a forked child: caches of pools that ended are none.
pub(crate) fn forked(thread: &Thread) {
    for entry in &thread.entries {
        let number = entry.pool.load(Ordering::Relaxed);
        if number != 0 && !slots::is_there(number) {
            entry.pool.store(0, Ordering::Relaxed);
        }
    }
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
        thread.entries.iter().for_each(retire);
        if crate::os::thread_ends() {
            crate::slots::wake_scrubbers();
        }
    }

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

// Miri has no fork.
#[cfg(all(test, not(miri)))]
mod tests;
