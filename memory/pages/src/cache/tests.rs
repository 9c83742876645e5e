//! Caches from within: shares, stacks, patience, waking, forks.

use super::*;
use crate::error::PoolError;
use crate::fork::tests::well_in_a_child;
use crate::magazine::Shares;
use crate::os;
use crate::{PageSize, Pool, Scrub};
use std::vec::Vec;

/// All of it zeroed and resident.
fn pool_of(cache_blocks: usize) -> Pool {
    let scrub = Scrub { enabled: false, ..Scrub::default() };
    let builder = Pool::builder().scrub(scrub).page_size(PageSize::Base);
    let capacity = os::page_size() << 14;
    let builder = builder.cache_blocks(cache_blocks).capacity(capacity).initial(capacity);
    builder.build().expect("a pool")
}

/// This thread's cache.
fn place(pool: &Pool) -> Option<*const Magazine> {
    Magazine::of_this_thread(pool.inner().gate.id)
}

fn demand(inner: &Inner) -> u64 {
    inner.control().demand.load(Ordering::Relaxed) / os::page_size() as u64
}

#[test]
fn a_stack_is_a_share_cut_into_equal_parts_and_a_power_of_two() {
    let in_a_stack = |pages, orders| Shares::in_a_stack(pages, orders, 256);
    assert_eq!([in_a_stack(191, 0b1), in_a_stack(192, 0b1)], [32, 64]);
    assert_eq!([in_a_stack(47, 0b10), in_a_stack(48, 0b10)], [32, 64]);
    assert_eq!([in_a_stack(239, 0b11), in_a_stack(240, 0b11)], [32, 64]);
    assert_eq!([in_a_stack(287, 0b1_0101), in_a_stack(288, 0b1_0101)], [32, 64]);
    assert_eq!([in_a_stack(0, 0b1), in_a_stack(16, 0)], [0, 64]);
    assert_eq!([Shares::in_a_stack(9999, 0b1, 100), in_a_stack(9999, 0b1)], [100, 256]);
}

#[test]
fn who_asks_for_an_order_gets_room_for_that_one_alone() {
    let pool = pool_of(CACHE_BLOCKS);
    let inner = pool.inner();
    drop(pool.zalloc(1).expect("a block"));
    let has = |order| (inner.caches.shares.has(order), inner.caches.shares.room(order) != 0);
    assert_eq!([has(0), has(1), has(2)], [(false, false), (true, true), (false, false)]);
    assert!(mine_with_room(inner, CACHED_ORDERS as u32).is_none());
    assert!(!inner.caches.shares.has(CACHED_ORDERS), "caches have no such order");
}

#[test]
fn a_pool_without_caches_makes_none() {
    let pool = pool_of(0);
    drop(pool.zalloc(0).expect("a page"));
    assert!(place(&pool).is_none());
}

#[test]
fn who_ends_or_is_getting_a_cache_gets_none() {
    let pool = pool_of(CACHE_BLOCKS);
    let got = |ended: u32, entering: u32| {
        let thread = thread::current();
        thread.ended.store(ended, Ordering::Relaxed);
        thread.entering.store(entering, Ordering::Relaxed);
        ensure(pool.inner());
        place(&pool).is_some()
    };
    for (ended, entering) in [(0, 1), (1, 0), (0, 0)] {
        let got = std::thread::scope(|scope| scope.spawn(|| got(ended, entering)).join());
        assert_eq!(got.expect("no panic"), (ended, entering) == (0, 0));
    }
}

#[test]
fn of_a_full_stack_half_is_brought_back() {
    let pool = pool_of(CACHE_BLOCKS);
    let inner = pool.inner();
    let held: Vec<_> = (0..300).map(|_| pool.alloc(0).expect("a page")).collect();
    mine(inner).expect("a cache").flush(inner);
    let room = inner.caches.shares.room(0);
    for (number, block) in held.into_iter().enumerate() {
        drop(block);
        let length = mine(inner).expect("a cache").length(DIRTY, 0);
        let expected = if number < room { number + 1 } else { number + 1 - room / 2 };
        assert_eq!(length, expected, "after {number}");
    }
}

#[test]
fn blocks_are_cut_off_as_many_at_once_as_are_few() {
    let pool = pool_of(CACHE_BLOCKS);
    let inner = pool.inner();
    let before = |_| {
        let (_, dirty) = take_zeroed(inner, 0).expect("there is enough");
        assert!(!dirty, "all of it is zero");
        mine(inner).expect("a cache").length(ZERO, 0) + 1
    };
    assert_eq!((0..8 * CUT).map(before).max(), Some(CUT));
}

#[test]
fn zeroed_blocks_that_are_fetched_were_wanted_and_dirty_ones_were_not() {
    let pool = pool_of(CACHE_BLOCKS);
    let inner = pool.inner();
    drop(pool.alloc(8).expect("256 pages"));
    let index = take_dirty(inner, 1).expect("dirty memory is there");
    assert_eq!(demand(inner), 0);
    assert_eq!(put(inner, index, 1), Some(Ok(())));
    assert!(take(inner, 1, false).is_some(), "from the stack");
    pool.flush_thread_cache();
    let (_, dirty) = take_zeroed(inner, 1).expect("zeroed memory is there");
    assert_eq!((dirty, demand(inner)), (false, u64::from(FIRST_BATCH) << 1));
    assert!(take(inner, 1, true).is_some(), "from the stack");
    assert_eq!(pool.stats().expect("figures").dirty_allocations, 3);
}

#[test]
fn the_pool_is_asked_for_zeroed_blocks_now_and_then_while_there_are_none() {
    let pool = pool_of(CACHE_BLOCKS);
    let inner = pool.inner();
    drop(pool.alloc_bytes(pool.capacity()).expect("all of it"));
    let held: Vec<_> = (0..200).map(|_| pool.alloc(0).expect("a page")).collect();
    drop(held);
    let asked: Vec<_> = (0..2 * (PATIENCE + 1) + 1)
        .map(|_| {
            let before = demand(inner);
            let (_, dirty) = take_zeroed(inner, 0).expect("there is enough");
            assert!(dirty, "nothing is zero");
            demand(inner) != before
        })
        .collect();
    let expected = (0..asked.len()).map(|number| number % (PATIENCE as usize + 1) == 0);
    assert_eq!(asked, expected.collect::<Vec<_>>());
}

#[test]
fn a_cache_that_holds_more_than_its_share_brings_all_of_it_back() {
    let pool = pool_of(CACHE_BLOCKS);
    let inner = pool.inner();
    let _held: Vec<_> = (0..100).map(|_| pool.zalloc(0).expect("a page")).collect();
    let mut mine = mine(inner).expect("a cache");
    let pages = mine.0.pages();
    let reserved = u64::from(mine.0.shown.reserved.load(Ordering::Relaxed));
    assert!(0 < reserved && reserved < pages, "{reserved} of {pages}");
    for (share, kept) in [(pages + 1, pages), (pages, pages), (pages - 1, 0)] {
        inner.caches.shares.pages.store(share as u32, Ordering::Relaxed);
        mine.keep_to_share(inner);
        assert_eq!(mine.0.pages(), kept, "a share of {share}");
    }
}

#[test]
fn what_a_cache_brings_back_wakes_the_scrubber_if_it_is_large() {
    let pool = pool_of(CACHE_BLOCKS);
    let inner = pool.inner();
    for (order, wakes) in [(0, false), (inner.settings().scrub_start, true)] {
        drop(pool.alloc(order).expect("a block"));
        inner.sleep(None, true, || true);
        flush(inner);
        assert_eq!(inner.scrubber_listens(), !wakes, "order {order}");
    }
}

#[test]
fn in_a_child_the_cache_of_who_forked_is_nobody_elses() {
    let pool = pool_of(CACHE_BLOCKS);
    drop(pool.alloc(0).expect("a page"));
    let mine = place(&pool).expect("a cache") as usize;
    let well = well_in_a_child(|| {
        assert_eq!(place(&pool).expect("still its own") as usize, mine);
        drop(pool.alloc(0).expect("a page"));
        let another = || {
            drop(pool.alloc(0).expect("a page"));
            place(&pool).expect("a cache") as usize
        };
        let its = std::thread::scope(|scope| scope.spawn(another).join());
        its.is_ok_and(|its| its != mine)
    });
    assert!(well);
}

#[test]
fn a_child_forked_while_its_cache_is_changed_is_refused_until_that_is_over() {
    let pool = pool_of(CACHE_BLOCKS);
    let inner = pool.inner();
    drop(pool.alloc(0).expect("a page"));
    let busy = mine(inner);
    assert!(busy.is_some() && mine(inner).is_none());
    let refused = || matches!(inner.lock(), Err(PoolError::Reentered));
    assert!(well_in_a_child(refused));
    drop(busy);
    assert!(mine(inner).is_some());
    assert!(well_in_a_child(|| !refused()));
}

/// In a child nobody else maps anything there.
#[test]
fn caches_go_with_their_pool() {
    let well = well_in_a_child(|| {
        let pool = pool_of(CACHE_BLOCKS);
        drop(pool.alloc(0).expect("a page"));
        let place = place(&pool).expect("a cache");
        let mapped = || {
            let mut there = 0;
            // SAFETY: it writes a byte for the page that it is asked about, and reads nothing there.
            unsafe { libc::mincore(place.cast_mut().cast(), 1, &raw mut there) == 0 }
        };
        let before = mapped();
        drop(pool);
        before && !mapped()
    });
    assert!(well);
}
