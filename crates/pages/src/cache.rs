//! Per-thread caches: a few free blocks of the small orders that their thread hands out and takes
//! back without the lock.
//!
//! A block in a cache is tagged so by compare-and-swap, so a block freed twice is noticed here too.
//! A cache goes back to its pool when its thread ends. One that was filled before a fork means
//! nothing in the child: the child's pool takes all cached blocks back by itself.

use crate::buddy::{ORDERS, halve_cached, split_cached};
use crate::fork;
use crate::inner::{CACHE_BLOCKS, CACHED_ORDERS, Inner, PIECES, now};
use crate::os::Backing;
use crate::stats::{Stats, add};
use std::boxed::Box;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::vec::Vec;

/// What one cache did and holds; written by its thread alone, read by `stats`. Cache lines of its own:
/// two threads that count in one line would wait for each other at every block.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters {
    hits: [AtomicU64; CACHED_ORDERS],
    dirty: AtomicU64,
    frees: AtomicU64,
    frames: AtomicU64,
}

/// Blocks fetched together at first.
const FIRST_BATCH: u32 = 8;
/// Blocks cut off together: few, so that no hand-out takes long.
const CUT: usize = 32;
/// How often a piece can be halved at most: until the largest is a block of one frame.
const HALVINGS: usize = CACHE_BLOCKS.ilog2() as usize;

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

/// How many blocks of an order a cache of so many single pages holds: of larger ones a quarter of the
/// bytes.
const fn share(pages: usize, order: usize) -> usize {
    if order == 0 { pages } else { (pages / 4) >> order }
}

/// Where the places of an order begin: behind those of all lower ones.
const fn first_place(order: usize) -> usize {
    if order == 0 {
        return 0;
    }
    CACHE_BLOCKS + CACHE_BLOCKS / 4 - 2 * share(CACHE_BLOCKS, order)
}

/// Blocks of one kind, a stack for each order.
struct Stacks {
    lengths: [usize; CACHED_ORDERS],
    blocks: [u32; first_place(CACHED_ORDERS)],
}

impl Stacks {
    const EMPTY: Stacks =
        Stacks { lengths: [0; CACHED_ORDERS], blocks: [0; first_place(CACHED_ORDERS)] };

    fn of(&mut self, order: usize) -> &mut [u32] {
        let first = first_place(order);
        &mut self.blocks[first..first + self.lengths[order]]
    }

    #[inline]
    fn pop(&mut self, order: usize) -> Option<u32> {
        let left = self.lengths[order].checked_sub(1)?;
        self.lengths[order] = left;
        Some(self.blocks[first_place(order) + left])
    }

    /// As many of the blocks as there are places for. Returns how many those were.
    fn push(&mut self, order: usize, blocks: &[u32]) -> usize {
        let length = self.lengths[order];
        let fitting = blocks.len().min(share(CACHE_BLOCKS, order) - length);
        let first = first_place(order) + length;
        self.blocks[first..first + fitting].copy_from_slice(&blocks[..fitting]);
        self.lengths[order] = length + fitting;
        fitting
    }

    /// Forgets the oldest.
    fn drop_oldest(&mut self, order: usize, gone: usize) {
        self.of(order).copy_within(gone.., 0);
        self.lengths[order] -= gone;
    }
}

struct Magazine {
    pool: u64,
    generation: u32,
    inner: Weak<Inner>,
    counters: Arc<Counters>,
    /// Dirty, then zeroed.
    stacks: [Stacks; 2],
    /// Zeroed memory not yet cut into blocks, for each order.
    reserves: [Reserve; CACHED_ORDERS],
}

/// Pieces of zeroed memory, each at least as large as the blocks that are cut from it.
#[derive(Clone, Copy)]
struct Reserve {
    pieces: [u32; PIECES + HALVINGS],
    length: usize,
    /// How many blocks to fetch together the next time.
    batch: u32,
}

impl Reserve {
    const EMPTY: Reserve =
        Reserve { pieces: [0; PIECES + HALVINGS], length: 0, batch: FIRST_BATCH };

    /// Cuts up to [`CUT`] blocks off, and puts them into the order's stack, which is empty. They are
    /// taken from there in order of their addresses.
    fn cut(&mut self, inner: &Inner, order: u32, stacks: &mut Stacks) {
        let Some(left) = self.length.checked_sub(1) else { return };
        // Whoever shares the pool may die holding the lock, and then tags are read without their
        // owners' knowledge (`Buddy::rebuild`).
        let guard = match inner.backing {
            Backing::Private => None,
            Backing::Shared => match inner.lock() {
                Ok(guard) => Some(guard),
                Err(_) => return,
            },
        };
        let (frames, owner) = (inner.frames(), inner.owner());
        let index = self.pieces[left];
        while frames[index as usize].tag().order() > order + CUT.ilog2()
            && self.length < self.pieces.len()
            && let Some((upper, _)) = halve_cached(frames, index, owner)
        {
            self.pieces[self.length - 1] = upper;
            self.pieces[self.length] = index;
            self.length += 1;
        }
        self.length -= 1;
        let mut blocks = [index; CUT];
        let filled = split_cached(frames, order, owner, &mut blocks, 1);
        drop(guard);
        blocks[..filled].reverse();
        stacks.push(order as usize, &blocks[..filled]);
    }
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
        Magazine {
            pool: inner.id,
            generation: fork::generation(),
            inner: Arc::downgrade(inner),
            counters: Arc::default(),
            stacks: [Stacks::EMPTY, Stacks::EMPTY],
            reserves: [Reserve::EMPTY; CACHED_ORDERS],
        }
    }

    /// Brings all blocks back and forgets the counters.
    fn retire(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        if self.generation != fork::generation() {
            return;
        }
        self.flush(&inner);
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

    /// Brings everything back.
    fn flush(&mut self, inner: &Inner) {
        for zero in [false, true] {
            for order in 0..CACHED_ORDERS {
                self.give_back(inner, order, zero, 0);
            }
        }
        for reserve in &mut self.reserves {
            let pieces = &reserve.pieces[..reserve.length];
            let gone = frames_of(inner, pieces);
            if gone == 0 || hand_in(inner, pieces) {
                *reserve = Reserve::EMPTY;
                bump(&self.counters.frames, gone.wrapping_neg());
            }
        }
    }

    /// Brings blocks of one kind back, oldest first, until that many are left.
    fn give_back(&mut self, inner: &Inner, order: usize, zero: bool, keep: usize) {
        let stacks = &mut self.stacks[usize::from(zero)];
        let blocks = stacks.of(order);
        let gone = blocks.len().saturating_sub(keep);
        if gone == 0 {
            return;
        }
        // Neighbours are merged before they meet the lists, and for that they are sorted: here, and
        // not under the lock.
        blocks[..gone].sort_unstable();
        let Ok(mut guard) = inner.lock() else { return };
        let (largest, refused) =
            guard.buddy().free_cached_all(&mut blocks[..gone], order as u32, zero, now());
        drop(guard);
        debug_assert_eq!(refused, 0, "blocks in a cache are tagged so");
        wake(inner, largest);
        stacks.drop_oldest(order, gone);
        bump(&self.counters.frames, ((gone as u64) << order).wrapping_neg());
    }
}

fn wake(inner: &Inner, largest: u32) {
    if largest >= inner.settings().scrub_start {
        inner.wake_scrubber(false);
    }
}

/// Frames of zeroed pieces in a cache.
fn frames_of(inner: &Inner, pieces: &[u32]) -> u64 {
    pieces.iter().map(|index| 1 << inner.frames()[*index as usize].tag().order()).sum()
}

/// Gives zeroed pieces that are tagged as cached by this thread to the pool, unless the lock is not to be
/// had.
fn hand_in(inner: &Inner, pieces: &[u32]) -> bool {
    let Ok(mut guard) = inner.lock() else { return false };
    let now = now();
    let mut largest = 0;
    for &index in pieces {
        let order = inner.frames()[index as usize].tag().order();
        let merged = guard.buddy().free_cached(index, order, true, now);
        debug_assert!(merged.is_ok(), "what a cache holds is tagged so: {merged:?}");
        largest = largest.max(merged.unwrap_or(0));
    }
    drop(guard);
    wake(inner, largest);
    true
}

/// How many blocks of an order a cache holds at most.
fn room(inner: &Inner, order: u32) -> usize {
    let pages = inner.settings().cache_blocks;
    if order as usize >= CACHED_ORDERS { 0 } else { share(pages, order as usize) }
}

/// How many zeroed blocks to fetch together now; none where there is no cache for them. Twice as many
/// each time, up to what the cache holds: a thread that takes many seldom needs the lock, one that
/// takes few keeps few from the others.
pub(crate) fn batch(inner: &Inner, order: u32) -> u32 {
    let most = room(inner, order) as u32;
    if most == 0 {
        return 0;
    }
    with(inner, |magazine| {
        let batch = &mut magazine.reserves[order as usize].batch;
        let now = (*batch).min(most);
        *batch = now * 2;
        now
    })
    .unwrap_or(0)
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
        let stacks = &mut magazine.stacks[usize::from(zero)];
        if zero && stacks.lengths[order as usize] == 0 {
            magazine.reserves[order as usize].cut(inner, order, stacks);
        }
        let index = stacks.pop(order as usize)?;
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
        let order = order as usize;
        if magazine.stacks[0].lengths[order] >= room {
            magazine.give_back(inner, order, false, room / 2);
        }
        let kept = magazine.stacks[0].push(order, &[index]);
        bump(&magazine.counters.frames, (kept as u64) << order);
        bump(&magazine.counters.frees, 1);
        Ok(())
    })
}

/// Puts zeroed memory, tagged as cached already, into this thread's cache, whose reserve is used up;
/// without one it goes back to the pool.
pub(crate) fn fill(inner: &Inner, order: u32, pieces: &[u32]) {
    if pieces.is_empty() {
        return;
    }
    let kept = with(inner, |magazine| {
        let reserve = &mut magazine.reserves[order as usize];
        if reserve.length != 0 {
            return false;
        }
        let gained = frames_of(inner, pieces);
        reserve.pieces[..pieces.len()].copy_from_slice(pieces);
        reserve.length = pieces.len();
        bump(&magazine.counters.frames, gained);
        true
    });
    if kept != Some(true) {
        hand_in(inner, pieces);
    }
}

/// Brings everything in this thread's cache back to the pool.
pub(crate) fn flush(inner: &Inner) {
    with(inner, |magazine| magazine.flush(inner));
}
