//! Memory that a thread keeps of a pool: its cache, and the limits of all caches of a pool. Its use is in `cache.rs`.

use crate::os::{self, Mapping};
use crate::stats::Stats;
use crate::thread;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Single pages in a per-thread cache at most.
pub(crate) const CACHE_BLOCKS: usize = 256;
/// Pieces of zeroed memory in a per-thread cache, not yet cut into blocks, for each order.
pub(crate) const PIECES: usize = 32;
/// Orders that per-thread caches hold: up to 128 KiB of 4 KiB pages.
pub(crate) const CACHED_ORDERS: usize = 6;
/// Number of times that a piece can be halved at most: until the largest is a block of one frame.
const HALVINGS: usize = CACHE_BLOCKS.ilog2() as usize;

/// The part of the pool's capacity that caches hold together at most, as a divisor.
pub(crate) const PART: usize = 4;
/// The most that a cache holds of each order, in stacks: one of zeroed blocks, one of dirty blocks, and a
/// reserve of these.
pub(crate) const STACKS: usize = 3;

/// Stacks by what their blocks contain: unknown bytes, or zeros.
pub(crate) const DIRTY: usize = 0;
pub(crate) const ZERO: usize = 1;

/// Number of blocks of an order that a cache of so many single pages holds: of larger ones a quarter of
/// the bytes.
pub(crate) const fn share(pages: usize, order: usize) -> usize {
    if order == 0 { pages } else { (pages / 4) >> order }
}

/// The first place of an order: behind those of all lower ones.
pub(crate) const fn first_place(order: usize) -> usize {
    if order == 0 {
        return 0;
    }
    CACHE_BLOCKS + CACHE_BLOCKS / 4 - 2 * share(CACHE_BLOCKS, order)
}

/// Figures of a cache, for statistics; written by its thread alone.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) lengths: [[AtomicU32; CACHED_ORDERS]; 2],
    /// Frames in the reserves.
    pub(crate) reserved: AtomicU32,
    pub(crate) hits: [AtomicU64; CACHED_ORDERS],
    pub(crate) misses: [AtomicU64; CACHED_ORDERS],
    pub(crate) hot_zeroed: AtomicU64,
    pub(crate) dirty: AtomicU64,
    pub(crate) frees: AtomicU64,
}

/// A thread's cache of one pool. Zero is an empty one.
#[repr(C, align(128))]
pub(crate) struct Magazine {
    pub(crate) busy: AtomicU32,
    /// Not 0 if a thread has it. Only under the pool's lock.
    pub(crate) used: AtomicU32,
    pub(crate) shown: Shown,
    _own_line: [Line; 0],
    pub(crate) own: UnsafeCell<Own>,
    /// The pool's next one. Only under its lock.
    pub(crate) next: AtomicPtr<Magazine>,
}

#[repr(align(128))]
pub(crate) struct Line;

pub(crate) struct Own {
    pub(crate) blocks: [[u32; first_place(CACHED_ORDERS)]; 2],
    /// Memory not yet cut into blocks.
    pub(crate) reserves: [[Reserve; CACHED_ORDERS]; 2],
    /// Hand-outs before the pool is asked for zeroed blocks again.
    pub(crate) patience: u32,
}

/// The most that each thread's cache may hold. Written under the pool's lock.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// Pages of all orders together.
    pub(crate) pages: AtomicU32,
    /// Blocks of an order in a stack at most; 0 of orders that nobody has asked for yet.
    pub(crate) rooms: [AtomicU32; CACHED_ORDERS],
    /// The orders that somebody asked for, as bits.
    pub(crate) orders: AtomicU32,
}

impl Shares {
    /// The single pages in each stack of a thread's share, which is so many pages of all orders; of each larger order
    /// it has a quarter of that. Each cache was told to hold `most` of them. A power of two, which the pool
    /// cuts off as one piece.
    pub(crate) fn in_a_stack(pages: usize, orders: u32, most: usize) -> usize {
        let quarters = 4 * (orders & 1) + (orders >> 1).count_ones();
        let parts = STACKS * quarters as usize;
        (4 * pages / parts.max(1)).checked_ilog2().map_or(0, |log| most.min(1 << log))
    }

    pub(crate) fn has(&self, order: usize) -> bool {
        self.orders.load(Ordering::Relaxed) & 1 << order != 0
    }

    /// Blocks of an order in a cache at most.
    #[inline(always)]
    pub(crate) fn room(&self, order: usize) -> usize {
        self.rooms.get(order).map_or(0, |room| room.load(Ordering::Relaxed) as usize)
    }
}

/// Pieces of memory, each at least as large as the blocks that are cut from it.
#[derive(Clone, Copy)]
pub(crate) struct Reserve {
    pub(crate) pieces: [u32; PIECES + HALVINGS],
    pub(crate) length: usize,
    /// Number of blocks to fetch together the next time, less the first batch.
    pub(crate) batch: u32,
}

impl Magazine {
    /// Pages it holds.
    pub(crate) fn pages(&self) -> u64 {
        let lengths = self.shown.lengths.iter().flat_map(|lengths| lengths.iter().enumerate());
        let stacks =
            lengths.map(|(order, length)| u64::from(length.load(Ordering::Relaxed)) << order);
        stacks.sum::<u64>() + u64::from(self.shown.reserved.load(Ordering::Relaxed))
    }

    /// This thread's of that pool.
    #[inline(always)]
    pub(crate) fn of_this_thread(pool: u64) -> Option<*const Magazine> {
        let entry = thread::current().entry(pool);
        let is_it = entry.pool.load(Ordering::Relaxed) == pool;
        is_it.then(|| entry.magazine.load(Ordering::Relaxed).cast::<Magazine>().cast_const())
    }

    /// Checks whether a signal handler interrupted this thread in its cache of that pool, which is there.
    pub(crate) fn is_interrupted(pool: u64) -> bool {
        Magazine::of_this_thread(pool).is_some_and(|place| {
            // SAFETY: a cache of that pool, which is there.
            unsafe { &*place }.busy.load(Ordering::Relaxed) != 0
        })
    }

    /// Adds what it did and holds.
    pub(crate) fn add_to(&self, stats: &mut Stats, frame_shift: u32) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shown = &self.shown;
        for order in 0..CACHED_ORDERS {
            stats.orders[order].zero_hits += get(&shown.hits[order]);
            stats.orders[order].zero_misses += get(&shown.misses[order]);
        }
        stats.cached += self.pages() << frame_shift;
        stats.hot_zeroed += get(&shown.hot_zeroed);
        stats.dirty_allocations += get(&shown.dirty);
        stats.frees += get(&shown.frees);
    }

    /// Makes a new one.
    fn map() -> Option<&'static Magazine> {
        let mapping = Mapping::private(size_of::<Magazine>(), os::page_size()).ok()?;
        let place = mapping.start().cast::<Magazine>();
        std::mem::forget(mapping);
        // SAFETY: mapped, long enough, aligned to a page, and zero, which is an empty cache.
        Some(unsafe { &*place })
    }
}

/// A pool's caches, one for each thread that used it; those of threads that ended wait for the
/// next.
#[derive(Debug, Default)]
pub(crate) struct Magazines(AtomicPtr<Magazine>);

impl Magazines {
    /// All of them. Only under the pool's lock, or when nobody else has the pool.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Magazine> {
        let mut next = &self.0;
        std::iter::from_fn(move || {
            // SAFETY: null, or a cache, which stays mapped as long as this list.
            let magazine = unsafe { next.load(Ordering::Acquire).as_ref() }?;
            next = &magazine.next;
            Some(magazine)
        })
    }

    /// One that nobody has. Only under the pool's lock.
    pub(crate) fn enter(&self) -> Option<&Magazine> {
        let free = self.all().find(|magazine| magazine.used.load(Ordering::Relaxed) == 0);
        let magazine = match free {
            Some(free) => free,
            None => {
                let new = Magazine::map()?;
                new.next.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
                self.0.store(std::ptr::from_ref(new).cast_mut(), Ordering::Release);
                new
            }
        };
        magazine.used.store(1, Ordering::Relaxed);
        Some(magazine)
    }

    /// Shares out what caches may hold. Only under the pool's lock.
    pub(crate) fn share_out(&self, shares: &Shares, capacity: u32, cache_blocks: usize) {
        let threads =
            self.all().filter(|magazine| magazine.used.load(Ordering::Relaxed) != 0).count();
        let pages = capacity as usize / (PART * threads.max(1));
        let orders = shares.orders.load(Ordering::Relaxed);
        let stack = Shares::in_a_stack(pages, orders, cache_blocks);
        shares.pages.store(pages as u32, Ordering::Relaxed);
        for (order, room) in shares.rooms.iter().enumerate() {
            let blocks = if shares.has(order) { share(stack, order) } else { 0 };
            room.store(blocks as u32, Ordering::Relaxed);
        }
    }

    /// In a forked child: forgets what all of them hold. Only under the pool's lock.
    pub(crate) fn forget(&self, mine: Option<*const Magazine>) {
        for magazine in self.all() {
            magazine.shown.lengths.iter().flatten().for_each(|length| {
                length.store(0, Ordering::Relaxed);
            });
            magazine.shown.reserved.store(0, Ordering::Relaxed);
            magazine.busy.store(0, Ordering::Relaxed);
            let kept = mine.is_some_and(|mine| std::ptr::eq(mine, magazine));
            magazine.used.store(u32::from(kept), Ordering::Relaxed);
            // SAFETY: its thread is not in this process, or is this one, and not at work there.
            let own = unsafe { &mut *magazine.own.get() };
            own.reserves.iter_mut().flatten().for_each(|reserve| reserve.length = 0);
        }
    }
}

impl Drop for Magazines {
    fn drop(&mut self) {
        let mut next = self.0.load(Ordering::Acquire);
        while !next.is_null() {
            // SAFETY: mapped by `map`; the pool is going, so nobody uses it.
            let following = unsafe { (*next).next.load(Ordering::Relaxed) };
            // SAFETY: as above; its length and alignment are those that `map` had.
            unsafe { Mapping::unmap(next.cast(), size_of::<Magazine>()) };
            next = following;
        }
    }
}
