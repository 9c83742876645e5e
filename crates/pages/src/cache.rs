//! Per-thread caches: a few free blocks of the small orders that their thread hands out and takes
//! back without the lock.
//!
//! A block in a cache is tagged so by compare-and-swap, so a block freed twice is noticed here too.
//! A cache goes back to its pool when its thread ends. One that was filled before a fork means
//! nothing in the child: the child's pool takes all cached blocks back by itself.

use crate::buddy::ORDERS;
use crate::fork;
use crate::inner::{CACHE_BLOCKS, CACHED_ORDERS, Inner, now};
use crate::stats::{Stats, add};
use std::boxed::Box;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::vec::Vec;

/// What one cache did and holds; written by its thread alone, read by `stats`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    hits: [AtomicU64; CACHED_ORDERS],
    dirty: AtomicU64,
    frees: AtomicU64,
    frames: AtomicU64,
}

fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

impl Counters {
    pub(crate) fn add_to(&self, stats: &mut Stats, frame_shift: u32) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for order in 0..CACHED_ORDERS {
            stats.orders[order].zero_hits += get(&self.hits[order]);
        }
        stats.dirty_allocations += get(&self.dirty);
        stats.frees += get(&self.frees);
        stats.cached += get(&self.frames) << frame_shift;
    }

    /// The cache belonged to a thread of another process.
    pub(crate) fn forget(&self) {
        self.frames.store(0, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
struct Stack {
    length: usize,
    blocks: [u32; CACHE_BLOCKS],
}

struct Magazine {
    pool: u64,
    generation: u32,
    inner: Weak<Inner>,
    counters: Arc<Counters>,
    /// Dirty, then zeroed, by order.
    stacks: [[Stack; CACHED_ORDERS]; 2],
}

/// A thread's caches, one per pool that it used; they go back when it ends.
#[allow(clippy::vec_box, reason = "a cache is large and the list is searched and shuffled")]
struct Magazines(Vec<Box<Magazine>>);

std::thread_local! {
    static MAGAZINES: RefCell<Magazines> = const { RefCell::new(Magazines(Vec::new())) };
}

impl Drop for Magazines {
    fn drop(&mut self) {
        for magazine in &mut self.0 {
            magazine.retire();
        }
    }
}

impl Magazine {
    fn new(inner: &Arc<Inner>) -> Magazine {
        let empty = Stack { length: 0, blocks: [0; CACHE_BLOCKS] };
        Magazine {
            pool: inner.id,
            generation: fork::generation(),
            inner: Arc::downgrade(inner),
            counters: Arc::default(),
            stacks: [[empty; CACHED_ORDERS]; 2],
        }
    }

    /// Brings all blocks back and forgets the counters.
    fn retire(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        if self.generation != fork::generation() {
            return;
        }
        self.flush(&inner, 0);
        let events = &inner.control().events;
        let take = |counter: &AtomicU64| counter.swap(0, Ordering::Relaxed);
        let Ok(mut guard) = inner.lock() else { return };
        for order in 0..CACHED_ORDERS.min(ORDERS) {
            add(&events.zero_hits[order], take(&self.counters.hits[order]));
        }
        add(&events.dirty_allocations, take(&self.counters.dirty));
        add(&events.frees, take(&self.counters.frees));
        guard.unregister(&self.counters);
    }

    /// Brings blocks back, oldest first, until at most that many of each stack are left.
    fn flush(&mut self, inner: &Inner, keep: usize) {
        let Ok(mut guard) = inner.lock() else { return };
        let mut largest = 0;
        let now = now();
        for (zero, stacks) in self.stacks.iter_mut().enumerate() {
            for (order, stack) in stacks.iter_mut().enumerate() {
                let gone = stack.length.saturating_sub(keep);
                let blocks = &mut stack.blocks[..gone];
                let (merged, refused) =
                    guard.buddy().free_cached_all(blocks, order as u32, zero == 1, now);
                debug_assert_eq!(refused, 0, "blocks in a cache are tagged so");
                largest = largest.max(merged);
                stack.blocks.copy_within(gone..stack.length, 0);
                stack.length -= gone;
                bump(&self.counters.frames, ((gone as u64) << order).wrapping_neg());
            }
        }
        drop(guard);
        if largest >= inner.settings().scrub_start {
            inner.wake_scrubber(false);
        }
    }
}

/// How many blocks of an order a cache holds at most.
fn room(inner: &Inner, order: u32) -> usize {
    if order as usize >= CACHED_ORDERS { 0 } else { inner.settings().cache_blocks >> order }
}

/// How many zeroed blocks are fetched together, besides the one asked for.
pub(crate) fn batch(inner: &Inner, order: u32) -> usize {
    room(inner, order) / 2
}

/// Calls with this thread's cache of the pool, if it has one that is this process's and not in use
/// further up the stack (a signal handler), and if the thread is not ending.
fn with<R>(inner: &Inner, call: impl FnOnce(&mut Magazine) -> R) -> Option<R> {
    MAGAZINES
        .try_with(|magazines| {
            let mut magazines = magazines.try_borrow_mut().ok()?;
            let magazine = magazines.0.iter_mut().find(|magazine| magazine.pool == inner.id)?;
            (magazine.generation == fork::generation() && inner.is_current())
                .then(|| call(magazine))
        })
        .ok()
        .flatten()
}

/// Makes this thread a cache of the pool, if it has none and may have one. Caches of pools that are
/// gone are dropped on the way.
pub(crate) fn ensure(inner: &Arc<Inner>) {
    if inner.settings().cache_blocks == 0 {
        return;
    }
    let _ = MAGAZINES.try_with(|magazines| {
        let Ok(mut magazines) = magazines.try_borrow_mut() else { return };
        let generation = fork::generation();
        let known = magazines.0.iter().any(|m| m.pool == inner.id && m.generation == generation);
        if known {
            return;
        }
        magazines.0.retain(|magazine| {
            magazine.generation == generation && magazine.inner.strong_count() > 0
        });
        let magazine = Box::new(Magazine::new(inner));
        if let Ok(mut guard) = inner.lock() {
            guard.register(Arc::clone(&magazine.counters));
            drop(guard);
            magazines.0.push(magazine);
        }
    });
}

/// A block of that kind. Counted as a request served, if `served`: a zeroed one as a hit.
#[inline]
pub(crate) fn take(inner: &Inner, order: u32, zero: bool, served: bool) -> Option<u32> {
    if order as usize >= CACHED_ORDERS {
        return None;
    }
    with(inner, |magazine| {
        let stack = &mut magazine.stacks[usize::from(zero)][order as usize];
        stack.length = stack.length.checked_sub(1)?;
        let index = stack.blocks[stack.length];
        let mine = inner.frames()[index as usize].uncache(order, inner.owner(), zero);
        debug_assert!(mine.is_ok(), "cached block {index}: {mine:?}");
        let counters = &magazine.counters;
        bump(&counters.frames, (1u64 << order).wrapping_neg());
        if served {
            bump(if zero { &counters.hits[order as usize] } else { &counters.dirty }, 1);
        }
        mine.ok().map(|()| index)
    })
    .flatten()
}

/// Takes a block back into this thread's cache. `None` if there is no cache for it, and then the
/// pool takes it; otherwise whether it was this owner's block of that order.
pub(crate) fn put(inner: &Inner, index: u32, order: u32) -> Option<Result<(), ()>> {
    let room = room(inner, order);
    if room == 0 {
        return None;
    }
    with(inner, |magazine| {
        if inner.frames()[index as usize].cache(order, inner.owner(), false).is_err() {
            return Err(());
        }
        if magazine.stacks[0][order as usize].length >= room {
            magazine.make_room(inner, order, room / 2);
        }
        let stack = &mut magazine.stacks[0][order as usize];
        if stack.length < stack.blocks.len() {
            stack.blocks[stack.length] = index;
            stack.length += 1;
        }
        bump(&magazine.counters.frames, 1u64 << order);
        bump(&magazine.counters.frees, 1);
        Ok(())
    })
}

impl Magazine {
    fn make_room(&mut self, inner: &Inner, order: u32, keep: usize) {
        let stack = &mut self.stacks[0][order as usize];
        let gone = stack.length - keep;
        let Ok(mut guard) = inner.lock() else { return };
        let blocks = &mut stack.blocks[..gone];
        let (largest, refused) = guard.buddy().free_cached_all(blocks, order, false, now());
        debug_assert_eq!(refused, 0, "blocks in a cache are tagged so");
        stack.blocks.copy_within(gone..stack.length, 0);
        stack.length = keep;
        bump(&self.counters.frames, ((gone as u64) << order).wrapping_neg());
        drop(guard);
        if largest >= inner.settings().scrub_start {
            inner.wake_scrubber(false);
        }
    }
}

/// Puts zeroed blocks, tagged as cached already, into this thread's cache; without one they go back
/// to the pool.
pub(crate) fn fill(inner: &Inner, order: u32, blocks: &mut [u32]) {
    if blocks.is_empty() {
        return;
    }
    let kept = with(inner, |magazine| {
        let stack = &mut magazine.stacks[1][order as usize];
        let kept = blocks.len().min(stack.blocks.len() - stack.length);
        stack.blocks[stack.length..stack.length + kept].copy_from_slice(&blocks[..kept]);
        stack.length += kept;
        bump(&magazine.counters.frames, (kept as u64) << order);
        kept
    });
    let rest = &mut blocks[kept.unwrap_or(0)..];
    if !rest.is_empty()
        && let Ok(mut guard) = inner.lock()
    {
        let (_, refused) = guard.buddy().free_cached_all(rest, order, true, now());
        debug_assert_eq!(refused, 0, "tagged when they were fetched");
    }
}

/// Brings everything in this thread's cache back to the pool.
pub(crate) fn flush(inner: &Inner) {
    with(inner, |magazine| magazine.flush(inner, 0));
}
