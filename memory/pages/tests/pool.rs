//! The pool as a program uses it: every way in and out, bad use, threads.

use crate::common::{Asked, Made, Zero, quiet};
use allocator_api2::alloc::Allocator;
use cachewise_pages::buddy::FreeError;
use cachewise_pages::{Builder, Note, PageSize, Pool, PoolError, Scrub, Verify};
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

/// Scribble, free, reallocate, verify: every order, every way in, every state a block can come
/// from.
#[test]
fn zeroed_blocks_are_zero_whatever_happened_to_them_before() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        for cache_blocks in [0, 1, 32] {
            let pool =
                quiet().capacity(32 << 20).page_size(pages).cache_blocks(cache_blocks).made();
            let (top, page) = (11, pool.page_size());
            for order in 0..=top {
                for before in ["dirty", "scrubbed", "trimmed", "returned as zero", "half and half"]
                {
                    for entry in
                        ["zalloc", "zalloc_raw", "zalloc_bytes", "zalloc_run_raw", "allocator"]
                    {
                        scribble_and_verify(&pool, order, before, entry, page);
                    }
                }
                pool.is_sound();
            }
            let stats = pool.figures();
            assert_eq!(stats.allocated, 0);
            assert!(stats.hot_zeroed > 0 && stats.scrubbed > 0 && stats.trimmed > 0);
        }
    }
}

fn scribble_and_verify(pool: &Pool, order: u32, before: &str, entry: &str, page: usize) {
    let length = page << order;
    let mut block = pool.alloc(order).expect("dirty");
    block.fill(0xA5);
    match before {
        "returned as zero" => {
            block.fill(0);
            // SAFETY: just zeroed.
            unsafe { block.give_back_zeroed() }.expect("ours");
        }
        "half and half" => {
            drop(block);
            pool.flush_thread_cache();
            pool.scrub_now(length / 2).expect("scrubbed");
        }
        _ => {
            drop(block);
            pool.flush_thread_cache();
            match before {
                "scrubbed" => drop(pool.scrub_now(usize::MAX).expect("scrubbed")),
                "trimmed" => drop(pool.trim().expect("trimmed")),
                _ => {}
            }
        }
    }
    let odd = if order == 0 { length } else { length - page };
    let context = || format!("{entry} of order {order} after {before}");
    let zero = |bytes: &[u8]| {
        let zero = bytes.chunks(4096).all(|chunk| chunk == &[0; 4096][..chunk.len()]);
        assert!(zero, "{} is not zero", context());
    };
    match entry {
        "zalloc" => {
            let block = pool.zalloc(order).expect("zeroed");
            assert_eq!(block.len(), length);
            assert_eq!((block.as_ptr() as usize - pool.base() as usize) % length, 0);
            zero(&block);
            block.into_dirty().fill(0x5A);
        }
        "zalloc_raw" => {
            let start = pool.zalloc_raw(order).expect("zeroed");
            zero(bytes(start, length));
            bytes(start, length).fill(0x5A);
            free(pool, start, order).expect("ours");
        }
        "zalloc_bytes" => {
            let block = pool.zalloc_bytes(odd - 1).expect("zeroed");
            assert_eq!(block.len(), odd);
            zero(&block);
            block.into_dirty().fill(0x5A);
        }
        "zalloc_run_raw" => {
            let frames = (odd / page) as u32;
            let start = pool.zalloc_run_raw(frames).expect("zeroed");
            zero(bytes(start, odd));
            bytes(start, odd).fill(0x5A);
            pool.put_run(start, frames);
        }
        _ => {
            let layout = std::alloc::Layout::from_size_align(odd - 7, 64).expect("a layout");
            let block = pool.allocate_zeroed(layout).expect("zeroed");
            zero(bytes(block.cast(), block.len()));
            bytes(block.cast(), block.len()).fill(0x5A);
            // SAFETY: not used afterwards.
            unsafe { pool.deallocate(block.cast(), layout) };
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

#[test]
fn double_free_by_two_threads_succeeds_once() {
    let pool = quiet().capacity(4 << 20).made();
    for round in 0..200 {
        let order = round % 3;
        let block = pool.alloc_raw(order).expect("a block").as_ptr() as usize;
        let go = AtomicBool::new(false);
        let freed: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        while !go.load(Ordering::Acquire) {
                            std::hint::spin_loop();
                        }
                        let start = NonNull::new(block as *mut u8).expect("not null");
                        usize::from(free(&pool, start, order).is_ok())
                    })
                })
                .collect();
            go.store(true, Ordering::Release);
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!(freed, 1, "exactly one of them had it");
    }
    pool.check().expect("sound");
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
        (mib().numa_node(5000), "numa_node", "5000"),
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
        let stats = pool.figures();
        assert_eq!(stats.dirty, (pages * page) as u64);
    }
}

#[test]
fn large_block_is_made_of_dirty_and_zeroed_ones() {
    let pool = uncached().capacity(1 << 20).initial(1 << 20).made();
    let order = (1usize << 20).ilog2() - pool.page_size().ilog2();
    drop(pool.alloc(order - 1).expect("half"));
    assert!(pool.figures().dirty > 0);
    let all = pool.zalloc(order).expect("both halves");
    assert!(all.is_zero());
    assert!(pool.figures().wasted > 0, "half of it was zero already");
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
fn verify_withdraws_and_reports_a_zero_that_is_none() {
    let pool = uncached().capacity(1 << 20).verify(Verify::Report(1)).made();
    let start = pool.alloc_raw(1).expect("a block");
    bytes(start, 8192)[5000] = 9;
    // A program breaks the promise. SAFETY: the run is not in use; it is not zero on purpose.
    unsafe { pool.free_zeroed_run_raw(start, 2) }.expect("believed");
    assert!(matches!(pool.check_zeros(), Err(PoolError::NotZero { byte: 9, .. })));
    match pool.zalloc(1) {
        Err(PoolError::NotZero { address, byte: 9, .. }) => {
            assert_eq!(address, start.as_ptr() as usize + 5000);
        }
        other => panic!("expected a report, found {other:?}"),
    }
    let stats = pool.figures();
    assert_eq!((stats.verify_failed, stats.quarantined), (1, 2 * pool.page_size() as u64));
    assert!(pool.zalloc(1).expect("another").is_zero());
    pool.check().expect("sound");
}

/// Blocks out of a cache are verified like all others.
#[test]
fn verify_reports_blocks_of_a_cache_too() {
    let pool = quiet().capacity(1 << 20).verify(Verify::Report(1)).made();
    let page = pool.page_size();
    let start = pool.alloc_run_raw(16).expect("a block");
    (0..16).for_each(|number| bytes(start, 16 * page)[number * page + 100] = 9);
    // SAFETY: of use it is none; that it is not zero is the point.
    unsafe { pool.free_zeroed_run_raw(start, 16) }.expect("believed");
    for _ in 0..16 {
        assert!(matches!(pool.zalloc(0), Err(PoolError::NotZero { byte: 9, .. })));
    }
    assert_eq!(pool.figures().verify_failed, 16);
    assert!(pool.zalloc(0).expect("another").is_zero());
    pool.check().expect("sound");
}

#[test]
fn refused_wishes_are_notes() {
    let pool = quiet().capacity(1 << 20).numa_node(900).made();
    assert!(matches!(pool.notes()[..], [Note::NoNuma { node: 900, .. }]), "{:?}", pool.notes());
    drop(pool.zalloc(0).expect("works without"));
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
    let odd = std::alloc::Layout::from_size_align(1 << 13, 1 << 32).expect("a layout");
    assert!((&pool).allocate(odd).is_err(), "no such alignment");
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
