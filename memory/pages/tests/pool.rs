//! The pool as a program uses it: every way in and out, bad use, threads.

use crate::common::{Asked, Made, Zero, quiet};
use allocator_api2::alloc::Allocator;
use cachewise_pages::buddy::FreeError;
use cachewise_pages::{Block, Builder, Dirty, Note, PageSize, Pool, PoolError, Scrub, Verify};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn uncached() -> Builder {
    quiet().cache_blocks(0)
}

fn bytes<'a>(start: NonNull<u8>, length: usize) -> &'a mut [u8] {
    // SAFETY: the tests pass blocks that they hold.
    unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), length) }
}

fn free(pool: &Pool, start: NonNull<u8>, order: u32) -> Result<(), PoolError> {
    // SAFETY: the tests use no block that they gave back.
    unsafe { pool.free_raw(start, order) }
}

fn why(result: Result<(), PoolError>) -> FreeError {
    match result {
        Err(PoolError::Free { why, .. }) => why,
        other => panic!("expected a refusal to free, found {other:?}"),
    }
}

type Entry = fn(&Pool, u32) -> Result<(NonNull<u8>, u32), PoolError>;

/// Ways to ask for zeroed memory about as large as a block of that order.
const ENTRIES: [Entry; 4] = [
    |pool, order| Ok((pool.zalloc(order)?.into_raw().0, 1 << order)),
    |pool, order| Ok((pool.zalloc_raw(order)?, 1 << order)),
    |pool, order| Ok((pool.zalloc_to_fill_raw(order)?, 1 << order)),
    |pool, order| {
        Ok(pool.zalloc_bytes((pool.page_size() << order) - 5000 * (order as usize % 2))?.into_raw())
    },
];

/// Fates of a written block before its memory is asked for again.
const BEFORE: [fn(&Pool, Block<'_, Dirty>); 5] = [
    |_, block| drop(block),
    |pool, block| {
        drop(block);
        pool.flush_thread_cache();
        pool.scrub_now(usize::MAX).expect("scrubbed");
    },
    |pool, block| {
        let half = block.len() / 2;
        drop(block);
        pool.flush_thread_cache();
        pool.scrub_now(half).expect("scrubbed");
    },
    |pool, block| {
        drop(block);
        pool.trim().expect("trimmed");
    },
    |_, mut block| {
        block.fill(0);
        // SAFETY: just zeroed.
        unsafe { block.give_back_zeroed() }.expect("ours");
    },
];

/// Scribble, free, reallocate, verify: every order, every way in, every state a block can come from.
#[test]
fn zeroed_blocks_are_zero_whatever_happened_to_them_before() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        for cache_blocks in [0, 1, 32] {
            let builder = quiet().capacity(32 << 20).page_size(pages);
            let pool = builder.cache_blocks(cache_blocks).made();
            for order in 0..=11 {
                for (before, entry) in
                    BEFORE.into_iter().flat_map(|before| ENTRIES.map(|entry| (before, entry)))
                {
                    let mut block = pool.alloc(order).expect("dirty");
                    block.fill(0xA5);
                    before(&pool, block);
                    let (start, frames) = entry(&pool, order).expect("zeroed");
                    let block = bytes(start, frames as usize * pool.page_size());
                    assert!(block.chunks(4096).all(|chunk| chunk == &[0; 4096][..chunk.len()]));
                    block.fill(0x5A);
                    pool.put_run(start, frames);
                }
                pool.is_sound();
            }
            let stats = pool.figures();
            assert_eq!(stats.allocated, 0);
            assert!(stats.hot_zeroed > 0 && stats.scrubbed > 0 && stats.trimmed > 0);
        }
    }
}

#[test]
fn wrong_frees_are_refused_each_with_its_reason_and_change_nothing() {
    for cache_blocks in [0, 1, 32] {
        let pool = quiet().capacity(4 << 20).cache_blocks(cache_blocks).made();
        let page = pool.page_size();
        let block = pool.alloc_raw(2).expect("a block");
        let at = |offset: usize| {
            // SAFETY: the tests only offset inside a block of four pages.
            unsafe { block.add(offset) }
        };
        let mut local = 0u8;
        for (start, order, expected) in [
            (NonNull::from(&mut local), 0, FreeError::Foreign),
            (at(64), 0, FreeError::Misaligned),
            (at(page), 1, FreeError::Misaligned),
            (at(page), 0, FreeError::Interior),
            (block, 1, FreeError::WrongOrder { actual: 2 }),
        ] {
            assert_eq!(why(free(&pool, start, order)), expected);
        }
        assert!(matches!(free(&pool, block, 40), Err(PoolError::Order { order: 40, .. })));
        bytes(block, 4 * page).fill(7);
        free(&pool, block, 2).expect("ours");
        assert_eq!(why(free(&pool, block, 2)), FreeError::DoubleFree);
        pool.flush_thread_cache();
        assert_eq!(why(free(&pool, block, 2)), FreeError::DoubleFree);
        assert_eq!(why(free(&pool, at(page), 0)), FreeError::DoubleFree, "merged by now");
        pool.check().expect("sound");
        let stats = pool.figures();
        assert_eq!((stats.allocated, stats.frees), (0, 1));
    }
}

/// One gives it back by way of its cache, without the lock, and the other under the lock, as zero.
#[test]
fn double_free_by_two_ways_succeeds_once() {
    let pool = quiet().capacity(4 << 20).made();
    let (turn, done) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    let block = std::sync::atomic::AtomicUsize::new(0);
    let freed = std::sync::atomic::AtomicUsize::new(0);
    let rounds = 5_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            drop(pool.alloc(0).expect("this thread has a cache"));
            for _ in 0..rounds {
                turn.wait();
                let start = NonNull::new(block.load(Ordering::SeqCst) as *mut u8).expect("a block");
                freed.fetch_add(usize::from(free(&pool, start, 0).is_ok()), Ordering::SeqCst);
                done.wait();
            }
        });
        for round in 0..rounds {
            let start = pool.zalloc_raw(0).expect("a page");
            block.store(start.as_ptr() as usize, Ordering::SeqCst);
            turn.wait();
            // SAFETY: nobody wrote to it; that it is freed once is what is under test.
            let mine = unsafe { pool.free_zeroed_run_raw(start, 1) }.is_ok();
            freed.fetch_add(usize::from(mine), Ordering::SeqCst);
            done.wait();
            assert_eq!(freed.load(Ordering::SeqCst), round + 1, "exactly one of them had it");
        }
    });
    pool.check().expect("sound");
}

/// A request just above a power of two takes what it needs of the system's memory.
#[test]
fn run_commits_at_most_an_eighth_more_than_it_asks_for() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        for asked in [(16 << 20) + 1, (32 << 20) + 1, (33 << 20) - 5, (48 << 20) + 4097] {
            let pool = uncached().capacity(256 << 20).page_size(pages).made();
            let block = pool.zalloc_bytes(asked).expect("a block");
            assert!(block.len() - asked < pool.page_size());
            let resident = pool.resident().expect("an answer");
            assert!(resident <= asked + asked / 8, "{asked} bytes took {resident}");
            let stats = pool.figures();
            assert!(stats.resident <= (asked + asked / 8) as u64, "{stats:?}");
            drop(block);
            pool.is_sound();
        }
    }
}

#[test]
fn zalloc_to_fill_gives_the_block_freed_last() {
    let pool = quiet().capacity(64 << 20).initial(4 << 20).made();
    for order in 0..8 {
        let mut block = pool.zalloc_to_fill(order).expect("a block").into_dirty();
        assert!(block.is_zero());
        block.fill(0x77);
        let start = block.as_ptr();
        drop(block);
        let again = pool.zalloc_to_fill(order).expect("a block");
        assert!(again.is_zero());
        // Larger blocks have no cache, and come as any other zeroed block.
        assert_eq!(again.as_ptr() == start, order < 4, "order {order}");
    }
    let stats = pool.figures();
    assert_eq!(stats.hot_zeroed, 15 * pool.page_size() as u64);
    pool.check().expect("sound");
    pool.close();
    assert!(matches!(pool.zalloc_to_fill(0), Err(PoolError::Closed)));
}

#[test]
fn closed_pool_refuses_every_call_on_every_handle() {
    let pool = quiet().capacity(1 << 20).made();
    let other = pool.clone();
    let block = pool.alloc_raw(0).expect("a block");
    pool.close();
    assert!(matches!(other.alloc(0), Err(PoolError::Closed)));
    assert!(matches!(other.zalloc(3), Err(PoolError::Closed)));
    assert!(matches!(other.trim(), Err(PoolError::Closed)));
    assert!(matches!(other.scrub_now(1), Err(PoolError::Closed)));
    assert!(matches!(free(&other, block, 0), Err(PoolError::Closed)));
    bytes(block, 4096).fill(1); // still mapped: a block in use does no harm
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    let scrub = |change: fn(&mut Scrub)| {
        let mut scrub = Scrub::default();
        change(&mut scrub);
        Pool::builder().capacity(1 << 20).scrub(scrub)
    };
    let mib = || Pool::builder().capacity(1 << 20);
    for (builder, named, value) in [
        (Pool::builder().capacity(0), "capacity", "0"),
        (Pool::builder().capacity(usize::MAX), "capacity", "18446744073709551615"),
        (mib().max_order(19), "max_order", "19"),
        (mib().initial(2 << 20), "initial", "2097152"),
        (mib().cache_blocks(33), "cache_blocks", "33"),
        (mib().verify(Verify::Report(0)), "verify: every n-th block", "0"),
        (mib().give_back(Duration::from_secs(90_000)), "give_back", "90000"),
        (scrub(|scrub| scrub.start = 30), "scrub.start", "30"),
        (scrub(|scrub| (scrub.start, scrub.stop) = (1, 2)), "scrub.stop", "2"),
        (scrub(|scrub| scrub.load = f64::NAN), "scrub.load", "NaN"),
        (scrub(|scrub| scrub.cpu_share = 0.0), "scrub.cpu_share", "0"),
        (scrub(|scrub| scrub.chunk = 1), "scrub.chunk", "1"),
        (scrub(|scrub| scrub.min_idle = Duration::MAX), "scrub.min_idle", "18446744073709551615"),
    ] {
        match builder.build() {
            Err(PoolError::Setting { setting, found, accepted }) => {
                assert_eq!((setting, &*found), (named, value));
                assert!(!accepted.is_empty());
            }
            other => panic!("{named}: {other:?}"),
        }
    }
}

#[test]
fn capacity_above_memory_is_an_error_unless_asked_for() {
    let builder = || quiet().capacity(1 << 40);
    let refused = builder().build();
    assert!(matches!(refused, Err(PoolError::OverMemory { asked, .. }) if asked == 1 << 40));
    let pool = builder().allow_over_memory().build().expect("address space is there");
    assert_eq!(pool.capacity(), 1 << 40);
    let block = pool.zalloc(0).expect("the first page");
    assert!(block.is_zero());
}

#[test]
fn exhaustion_is_an_error_value_and_passes() {
    let pool = uncached().capacity(1 << 20).made();
    let order = (1usize << 20).ilog2() - pool.page_size().ilog2();
    let all = pool.alloc(order).expect("all of it");
    let refused = pool.zalloc(0);
    assert!(matches!(refused, Err(PoolError::Exhausted { capacity: 1048576, .. })));
    drop(refused);
    drop(all);
    pool.zalloc(0).expect("a page again");
}

#[test]
fn block_is_as_large_as_the_pool_at_most_whatever_the_highest_order() {
    for max_order in [0, 5, 18] {
        let pool = uncached().capacity(12 << 20).max_order(max_order).made();
        for bytes in [(12 << 20) + 1, usize::MAX] {
            assert!(matches!(pool.zalloc_bytes(bytes), Err(PoolError::TooLarge { .. })));
        }
        assert!(matches!(pool.alloc(max_order + 1), Err(PoolError::Order { .. })));
        for bytes in [12 << 20, (11 << 20) + 1, 5 << 20] {
            let block = pool.zalloc_bytes(bytes).expect("nothing else is in use");
            assert!(block.is_zero() && block.len() - bytes < pool.page_size());
            block.into_dirty().fill(1);
            pool.check().expect("sound");
        }
        let stats = pool.figures();
        assert_eq!((stats.allocated, stats.managed), (0, 12 << 20));
    }
    let pool = uncached().capacity(1 << 20).made();
    assert!(matches!(pool.alloc(9), Err(PoolError::TooLarge { bytes: 2097152, .. })));
}

#[test]
fn capacity_that_is_no_power_of_two_is_used_to_the_last_page() {
    for pages in [1usize, 3, 37, 1000] {
        let page = quiet().capacity(1).made().page_size();
        let pool = uncached().capacity(pages * page).made();
        let blocks: Vec<_> = (0..pages).map(|_| pool.zalloc(0).expect("a page")).collect();
        assert!(pool.zalloc(0).is_err(), "no more than {pages} pages");
        drop(blocks);
        pool.check().expect("sound");
        assert_eq!(pool.figures().dirty, (pages * page) as u64);
    }
}

#[test]
fn large_block_is_made_of_dirty_and_zeroed_ones_and_of_what_this_thread_keeps() {
    let pool = quiet().capacity(1 << 20).initial(1 << 20).made();
    drop(pool.alloc(7).expect("half"));
    drop(pool.alloc(0).expect("a page"));
    let stats = pool.figures();
    assert!(stats.dirty > 0 && stats.cached > 0);
    assert!(pool.zalloc(8).expect("all of it").is_zero());
    assert!(pool.figures().wasted > 0, "half of it was zero already");
}

/// Zero and resident, then what is dirty, then absent memory; dirty memory is what a request for any contents gets.
#[test]
fn zalloc_takes_what_is_zero_then_what_is_dirty_then_what_is_absent() {
    let mib = 1 << 20;
    let builder = uncached().capacity(8 << 20).initial(2 << 20).page_size(PageSize::Base);
    let pool = builder.made();
    let counts = || {
        let stats = pool.figures();
        [stats.zero_hits, stats.hot_zeroed / mib, stats.populated / mib, stats.dirty_allocations]
    };
    let written = pool.alloc_bytes(mib as usize).expect("zero memory where nothing is dirty");
    assert_eq!((counts(), pool.figures().wasted), ([0, 0, 0, 1], mib));
    let dirty = written.as_ptr();
    drop(written);
    let mut held = Vec::new();
    for (expected, is_the_dirty_one) in
        [([1, 0, 0, 1], false), ([1, 1, 0, 1], true), ([1, 1, 1, 1], false)]
    {
        held.push(pool.zalloc_bytes(mib as usize).expect("room"));
        let block = held.last().expect("just pushed");
        assert!(block.is_zero());
        assert_eq!((counts(), block.as_ptr() == dirty), (expected, is_the_dirty_one));
    }
}

#[test]
fn pool_grows_as_it_is_used_and_trim_gives_idle_memory_back() {
    let pool = uncached().capacity(64 << 20).page_size(PageSize::Base).made();
    assert_eq!(pool.figures().managed, 0, "nothing before it is asked for");
    let blocks: Vec<_> = (0..32).map(|_| pool.zalloc_bytes(1 << 20).expect("1 MiB")).collect();
    let stats = pool.figures();
    assert!(stats.managed >= 32 << 20 && stats.managed < 64 << 20, "{}", stats.managed);
    for block in blocks {
        block.into_dirty().fill(1);
    }
    let before = pool.resident().expect("an answer");
    assert!(before >= 32 << 20, "{before}");
    let trimmed = pool.trim().expect("trimmed");
    let after = pool.resident().expect("an answer");
    assert!(trimmed >= 32 << 20 && after * 20 <= before, "{before} B to {after} B");
    let stats = pool.figures();
    assert_eq!((stats.dirty, stats.resident, stats.trimmed), (0, 0, trimmed as u64));
    pool.check_zeros().expect("zero, and known to be");
    let again = pool.zalloc(4).expect("faulted in");
    assert!(again.is_zero());
    assert!(pool.figures().populated > 0);
}

#[test]
fn states_add_up_and_caches_are_counted() {
    let pool = quiet().capacity(8 << 20).initial(4 << 20).made();
    let held: Vec<_> = (0..10).map(|_| pool.zalloc(0).expect("a page")).collect();
    let page = pool.page_size() as u64;
    let stats = pool.figures();
    assert_eq!(stats.allocated, 10 * page);
    assert!(stats.cached > 0, "fetched together");
    let sum = stats.allocated + stats.cached + stats.dirty + stats.in_flight + stats.zero_resident;
    assert_eq!(sum + stats.zero_absent + stats.quarantined, stats.managed);
    assert_eq!((stats.zero_hits, stats.zero_misses), (10, 0));
    assert_eq!(stats.orders[0].zero_hits, 10);
    drop(held);
    pool.flush_thread_cache();
    let stats = pool.figures();
    assert_eq!((stats.cached, stats.allocated, stats.frees), (0, 0, 10));
    pool.check().expect("sound");
}

#[test]
fn thread_that_ends_leaves_its_cache_and_keeps_what_it_holds() {
    let pool = quiet().capacity(8 << 20).initial(1 << 20).made();
    let held = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let kept = pool.zalloc_raw(1).expect("a block");
            for _ in 0..5 {
                drop(pool.zalloc(0).expect("a page"));
            }
            kept.as_ptr() as usize
        });
        thread.join().expect("no panic")
    });
    let stats = pool.figures();
    assert_eq!((stats.cached, stats.allocated), (0, 2 * pool.page_size() as u64));
    assert_eq!((stats.zero_hits, stats.frees), (6, 5), "its counts stay");
    let start = NonNull::new(held as *mut u8).expect("not null");
    free(&pool, start, 1).expect("any thread may give it back");
    pool.check().expect("sound");
}

#[test]
fn cache_whose_pool_is_gone_harms_nobody() {
    for _ in 0..20 {
        let pool = quiet().capacity(1 << 20).made();
        drop(pool.alloc(0).expect("a page"));
    }
}

#[test]
fn verify_withdraws_and_reports_a_zero_that_is_none_from_a_cache_too() {
    for cache_blocks in [0, 32] {
        let pool =
            quiet().capacity(1 << 20).cache_blocks(cache_blocks).verify(Verify::Report(1)).made();
        let page = pool.page_size();
        let start = pool.alloc_run_raw(16).expect("a block");
        (0..16).for_each(|number| bytes(start, 16 * page)[number * page + 100] = 9);
        // A program breaks the promise. SAFETY: the run is not in use; it is not zero on purpose.
        unsafe { pool.free_zeroed_run_raw(start, 16) }.expect("believed");
        assert!(matches!(pool.check_zeros(), Err(PoolError::NotZero { byte: 9, .. })));
        for _ in 0..16 {
            let Err(PoolError::NotZero { address, byte: 9, .. }) = pool.zalloc(0) else {
                panic!("expected a report");
            };
            assert_eq!(address % page, 100);
        }
        let stats = pool.figures();
        assert_eq!((stats.verify_failed, stats.quarantined), (16, 16 * page as u64));
        assert!(pool.zalloc(0).expect("another").is_zero());
        pool.check().expect("sound");
    }
}

#[test]
fn explicit_huge_pages_are_given_or_a_note_says_why() {
    let pool = quiet().capacity(4 << 20).page_size(PageSize::Hugetlb).made();
    let told = matches!(pool.notes()[..], [Note::NoHugetlb(_)]);
    let mappings = cachewise_pages::smaps::mappings();
    let own = mappings.iter().find(|mapped| mapped.range.contains(&pool.base().addr()));
    let page = own.expect("mapped").bytes("KernelPageSize");
    assert_eq!(told, page < cachewise_pages::hugetlb_size());
    pool.zalloc(3).expect("a block").into_dirty().fill(1);
}

#[test]
fn allocator_api_collections_grow_and_shrink() {
    let pool = quiet().capacity(16 << 20).made();
    let mut numbers = allocator_api2::vec::Vec::new_in(&pool);
    for number in 0..500_000u32 {
        numbers.push(number);
    }
    numbers.shrink_to_fit();
    assert!(numbers.iter().copied().eq(0..500_000));
    drop(numbers);
    pool.check().expect("sound");
    assert_eq!(pool.figures().allocated, 0);
    for (size, align, given) in
        [(5000, 64, true), (1 << 13, 1 << 20, true), (1 << 13, 1 << 40, false)]
    {
        let layout = std::alloc::Layout::from_size_align(size, align).expect("a layout");
        let found = (&pool).allocate_zeroed(layout);
        assert_eq!(found.is_ok(), given, "{layout:?}");
        let Ok(found) = found else { continue };
        let block = bytes(found.cast(), found.len());
        assert!(block.is_zero() && block.as_ptr().addr().is_multiple_of(align));
        block.fill(1);
        // SAFETY: not used afterwards.
        unsafe { (&pool).deallocate(found.cast(), layout) };
    }
    pool.check().expect("sound");
    assert_eq!(pool.figures().allocated, 0);
}

/// No page is ever two threads' or not zero, and who looks through the bookkeeping meanwhile finds it sound.
#[test]
fn threads_fill_and_drain_their_caches_while_somebody_looks() {
    let pool = quiet().capacity(16 << 20).initial(16 << 20).made();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=3u8)
            .map(|mark| {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..8 {
                        let order = u32::from(round % 4 == 3);
                        let taken = (0..700 >> order).map(|_| {
                            let block = pool.zalloc(order).expect("there is enough");
                            assert!(block.is_zero());
                            let mut block = block.into_dirty();
                            block.fill(mark);
                            block
                        });
                        let taken: Vec<_> = taken.collect();
                        for block in taken {
                            assert!(block.iter().all(|byte| *byte == mark), "somebody else's");
                        }
                        pool.scrub_now(1 << 20).expect("some of it");
                    }
                })
            })
            .collect();
        let looks = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                pool.check().expect("sound at every moment");
                let stats = pool.figures();
                assert!(stats.zero_resident + stats.dirty <= stats.managed);
                std::thread::yield_now();
            }
        });
        for worker in workers {
            worker.join().expect("no panic");
        }
        done.store(true, Ordering::Relaxed);
        looks.join().expect("no panic");
    });
    pool.check().expect("sound");
    let stats = pool.figures();
    assert_eq!((stats.allocated, stats.cached), (0, 0), "ended threads keep nothing");
    assert_eq!(stats.zero_hits + stats.zero_misses, stats.frees);
}

/// The pool holds no more of the machine's memory than it says, whatever runs are made of and whatever pages the system
/// brings with them.
#[test]
fn resident_memory_is_counted_however_runs_are_put_together() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        let pool = uncached().capacity(256 << 20).page_size(pages).made();
        let mut random = fastrand::Rng::with_seed(9);
        let mut held: Vec<(NonNull<u8>, u32)> = Vec::new();
        for step in 0..600 {
            // Up to 16 MiB, every size as likely as its half.
            let frames = ((1 + random.u32(0..4096)) >> random.u32(0..8)).max(1);
            held.push((pool.alloc_run_raw(frames).expect("a run"), frames));
            while held.len() > 12 {
                let (start, frames) = held.swap_remove(random.usize(0..held.len()));
                pool.put_run(start, frames);
            }
            let stats = pool.figures();
            let there = pool.resident().expect("the system says so") as u64;
            assert!(there <= stats.resident, "{pages:?}, step {step}: {there} of {stats:?}");
        }
        held.into_iter().for_each(|(start, frames)| pool.put_run(start, frames));
        pool.check().expect("sound");
    }
}

/// Until a pool grows into it, its capacity is address space: it counts for nothing where `vm.overcommit_memory` is 2,
/// and no core dump has it.
#[test]
fn memory_that_is_not_managed_yet_is_address_space_alone() {
    let pool = quiet().capacity(256 << 20).made();
    pool.alloc_bytes(1 << 20).expect("room").fill(1);
    let whole = pool.base().addr()..pool.base().addr() + pool.capacity();
    let mappings = cachewise_pages::smaps::mappings();
    let counted = mappings.iter().filter(|mapped| mapped.has_flag("ac"));
    let charged: usize = counted.map(|mapped| mapped.between(&whole)).sum();
    assert_eq!(charged as u64, pool.figures().managed);
    assert!(charged < 64 << 20, "{charged}");
}
