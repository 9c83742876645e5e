//! Memory that threads keep of a pool: one stack of blocks for each small order, zeroed and dirty. What is done with it
//! is in `cache.rs`.

use crate::os::{self, Mapping};
use crate::stats::Stats;
use crate::thread;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Single pages in a stack at most; of each larger order as many bytes.
pub(crate) const CACHE_BLOCKS: usize = 32;
/// Orders that are cached: up to 32 KiB of 4 KiB pages.
pub(crate) const CACHED_ORDERS: usize = 4;
/// Stacks by what their blocks contain: unknown bytes, or zeros.
pub(crate) const DIRTY: usize = 0;
pub(crate) const ZERO: usize = 1;

/// The part of the pool's capacity that all caches hold at most, as a divisor.
const PART: usize = 4;
/// Threads that have a cache in the smallest pool that has caches.
const THREADS: usize = 8;
/// Stacks as long as that of single pages.
const STACKS: usize = 2 * CACHED_ORDERS;

/// The most that caches may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Single pages in a stack.
    pages: usize,
    /// Threads that have a cache; others take the lock.
    threads: usize,
}

impl Room {
    /// For a pool of so many pages, of which at most `wanted` are to lie in a stack.
    pub(crate) fn new(capacity: u32, wanted: usize) -> Room {
        let part = capacity as usize / PART;
        let fair = (part / (STACKS * THREADS)).checked_ilog2().map_or(0, |log| 1 << log);
        let pages = wanted.min(CACHE_BLOCKS).min(fair);
        Room { pages, threads: part.checked_div(STACKS * pages).unwrap_or(0) }
    }

    /// Blocks of an order in a stack.
    #[inline(always)]
    pub(crate) fn blocks(self, order: usize) -> usize {
        if order < CACHED_ORDERS { self.pages >> order } else { 0 }
    }
}

/// A thread's cache of one pool.
#[repr(C, align(128))]
pub(crate) struct Magazine {
    /// Not 0 while it is being changed: a signal handler of the same thread then goes past it.
    pub(crate) busy: AtomicU32,
    /// Not 0 if a thread has it. Only under the pool's lock.
    pub(crate) used: AtomicU32,
    pub(crate) lengths: [[AtomicU32; CACHED_ORDERS]; 2],
    /// Figures for statistics; written by its thread alone.
    pub(crate) hits: [AtomicU64; CACHED_ORDERS],
    pub(crate) misses: [AtomicU64; CACHED_ORDERS],
    pub(crate) hot_zeroed: AtomicU64,
    pub(crate) dirty: AtomicU64,
    pub(crate) frees: AtomicU64,
    /// Its thread's alone.
    pub(crate) stacks: UnsafeCell<Stacks>,
    /// The pool's next one. Only under its lock.
    next: AtomicPtr<Magazine>,
    mapping: Mapping,
}

/// The blocks by kind and order.
pub(crate) struct Stacks {
    pub(crate) blocks: [[[u32; CACHE_BLOCKS]; CACHED_ORDERS]; 2],
    /// Requests for zeroed blocks that are served by dirty ones before the pool is asked again.
    pub(crate) patience: u32,
}

impl Magazine {
    /// Pages it holds.
    pub(crate) fn pages(&self) -> u64 {
        let lengths = self.lengths.iter().flat_map(|lengths| lengths.iter().enumerate());
        lengths.map(|(order, length)| u64::from(length.load(Ordering::Relaxed)) << order).sum()
    }

    /// This thread's of that pool.
    #[inline(always)]
    pub(crate) fn of_this_thread(pool: u64) -> Option<*const Magazine> {
        let entry = thread::current().entry(pool);
        let is_it = entry.pool.load(Ordering::Relaxed) == pool;
        is_it.then(|| entry.magazine.load(Ordering::Relaxed).cast::<Magazine>().cast_const())
    }

    /// Adds what it did and holds.
    pub(crate) fn add_to(&self, stats: &mut Stats, frame_shift: u32) {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for order in 0..CACHED_ORDERS {
            stats.orders[order].zero_hits += get(&self.hits[order]);
            stats.orders[order].zero_misses += get(&self.misses[order]);
        }
        stats.cached += self.pages() << frame_shift;
        stats.hot_zeroed += get(&self.hot_zeroed);
        stats.dirty_allocations += get(&self.dirty);
        stats.frees += get(&self.frees);
    }

    /// Makes a new one, in memory of its own: in a signal handler nothing may be allocated.
    fn map(next: *mut Magazine) -> Option<*mut Magazine> {
        let mapping = Mapping::private(size_of::<Magazine>(), os::page_size()).ok()?;
        let place = mapping.start().cast::<Magazine>();
        let magazine = Magazine {
            busy: AtomicU32::new(0),
            used: AtomicU32::new(0),
            lengths: Default::default(),
            hits: Default::default(),
            misses: Default::default(),
            hot_zeroed: AtomicU64::new(0),
            dirty: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            stacks: UnsafeCell::new(Stacks {
                blocks: [[[0; CACHE_BLOCKS]; CACHED_ORDERS]; 2],
                patience: 0,
            }),
            next: AtomicPtr::new(next),
            mapping,
        };
        // SAFETY: mapped, writable, long enough and aligned to a page.
        unsafe { place.write(magazine) };
        Some(place)
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

    /// One that nobody has, unless as many threads as may have one. Only under the pool's lock.
    pub(crate) fn enter(&self, room: Room) -> Option<&Magazine> {
        let used = |magazine: &&Magazine| magazine.used.load(Ordering::Relaxed) != 0;
        if self.all().filter(used).count() >= room.threads {
            return None;
        }
        let magazine = match self.all().find(|magazine| !used(magazine)) {
            Some(free) => free,
            None => {
                let new = Magazine::map(self.0.load(Ordering::Relaxed))?;
                self.0.store(new, Ordering::Release);
                // SAFETY: just made, and mapped as long as this list.
                unsafe { &*new }
            }
        };
        magazine.used.store(1, Ordering::Relaxed);
        Some(magazine)
    }
}

impl Drop for Magazines {
    fn drop(&mut self) {
        let mut next = *self.0.get_mut();
        while !next.is_null() {
            // SAFETY: made by `map`, and in the list once; the pool is going, so nobody uses it.
            let magazine = unsafe { next.read() };
            next = magazine.next.load(Ordering::Relaxed);
            drop(magazine.mapping);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_caches_hold_a_quarter_of_the_pool_at_most() {
        for capacity in (0..31).map(|log| 1 << log).chain([3, 1000, 8191, u32::MAX]) {
            for wanted in [0, 1, 5, 32] {
                let room = Room::new(capacity, wanted);
                let of_a_thread: usize =
                    (0..CACHED_ORDERS).map(|order| 2 * (room.blocks(order) << order)).sum();
                assert!(of_a_thread * room.threads <= capacity as usize / 4, "{room:?}");
                let has_any = wanted != 0 && capacity >= 4 * (STACKS * THREADS) as u32;
                assert_eq!(room.blocks(0) != 0, has_any, "{capacity}, {wanted}: {room:?}");
                assert!(room.threads >= THREADS || !has_any, "{room:?}");
                assert_eq!(room.blocks(CACHED_ORDERS), 0);
            }
        }
    }
}
