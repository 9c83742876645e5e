//! The pool as a program uses it: every way in and out, bad use, threads.

use crate::common::{Asked, Made, Zero, quiet};
use allocator_api2::alloc::Allocator;
use cachewise_pages::buddy::FreeError;
use cachewise_pages::{Builder, PageSize, Pool, PoolError, Scrub, Verify};
use std::ptr::NonNull;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

mod resident;
mod serving;

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
fn what_is_said_to_be_zero_is_whatever_happened_to_it_before() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        for cache_blocks in [0, 1, 32, 256] {
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
fn every_bad_free_is_refused_with_its_reason_and_changes_nothing() {
    for cache_blocks in [0, 1, 32, 256] {
        let pool = quiet().capacity(4 << 20).cache_blocks(cache_blocks).made();
        let page = pool.page_size();
        let block = pool.alloc_raw(2).expect("a block");
        let at = |offset: usize| {
            // SAFETY: the tests only offset inside a block of four pages.
            unsafe { block.add(offset) }
        };
        let mut local = 0u8;
        assert_eq!(why(free(&pool, NonNull::from(&mut local), 0)), FreeError::Foreign);
        assert_eq!(why(free(&pool, at(64), 0)), FreeError::Misaligned);
        assert_eq!(why(free(&pool, at(page), 1)), FreeError::Misaligned);
        assert_eq!(why(free(&pool, at(page), 0)), FreeError::Interior);
        assert_eq!(why(free(&pool, block, 1)), FreeError::WrongOrder { actual: 2 });
        assert!(matches!(free(&pool, block, 40), Err(PoolError::Order { order: 40, .. })));
        bytes(block, 4 * page).fill(7);
        free(&pool, block, 2).expect("ours");
        assert_eq!(why(free(&pool, block, 2)), FreeError::DoubleFree);
        pool.flush_thread_cache();
        assert_eq!(why(free(&pool, block, 2)), FreeError::DoubleFree);
        assert_eq!(why(free(&pool, at(page), 0)), FreeError::DoubleFree, "merged by now");
        let text = free(&pool, block, 2).expect_err("freed twice").to_string();
        assert!(text.contains("freed twice") && text.contains("order 2"), "{text}");
        pool.check().expect("sound");
        let stats = pool.figures();
        assert_eq!((stats.allocated, stats.frees), (0, 1));
    }
}

#[test]
fn two_threads_that_free_one_block_are_told_apart() {
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
fn a_block_freed_twice_on_two_ways_at_once_is_noticed() {
    let pool = quiet().capacity(4 << 20).made();
    let (turn, done) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    let block = std::sync::atomic::AtomicUsize::new(0);
    let freed = std::sync::atomic::AtomicUsize::new(0);
    let rounds = 20_000;
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
fn no_request_commits_an_eighth_more_than_it_asks_for() {
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
fn who_will_fill_a_block_gets_the_one_freed_last() {
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
        assert_eq!(again.as_ptr() == start, order < 6, "order {order}");
    }
    let stats = pool.figures();
    assert_eq!(stats.hot_zeroed, 63 * pool.page_size() as u64);
    pool.check().expect("sound");
    pool.close();
    assert!(matches!(pool.zalloc_to_fill(0), Err(PoolError::Closed)));
}

#[test]
fn a_closed_pool_says_so_on_every_handle() {
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
    let refused = |builder: Builder, words: &[&str]| {
        let text = builder.build().expect_err("refused").to_string();
        for word in words {
            assert!(text.contains(word), "{text} does not say {word}");
        }
    };
    let scrub = |change: fn(&mut Scrub)| {
        let mut scrub = Scrub::default();
        change(&mut scrub);
        Pool::builder().capacity(1 << 20).scrub(scrub)
    };
    refused(Pool::builder().capacity(0), &["capacity", "found 0", "1 to"]);
    refused(Pool::builder().capacity(usize::MAX), &["capacity", "accepted 1 to"]);
    refused(Pool::builder().max_order(19), &["max_order", "19", "0 to 18"]);
    refused(Pool::builder().capacity(1 << 20).initial(2 << 20), &["initial", "2097152"]);
    refused(Pool::builder().prefault_threads(0), &["prefault_threads", "1 to 256"]);
    refused(Pool::builder().cache_blocks(257), &["cache_blocks", "0 to 256"]);
    refused(Pool::builder().numa_node(5000), &["numa_node", "0 to 1023"]);
    refused(Pool::builder().verify(Verify::Report(0)), &["verify", "1 and more"]);
    refused(scrub(|scrub| scrub.start = 30), &["scrub.start", "30"]);
    refused(scrub(|scrub| (scrub.start, scrub.stop) = (1, 2)), &["scrub.stop", "found 2"]);
    refused(scrub(|scrub| scrub.load = f64::NAN), &["scrub.load"]);
    refused(scrub(|scrub| scrub.cpu_share = 0.0), &["scrub.cpu_share", "above 0"]);
    refused(scrub(|scrub| scrub.chunk = 1), &["scrub.chunk", "4096"]);
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
    assert!(matches!(pool.alloc_bytes(1 << 60), Err(PoolError::Exhausted { .. })));
    drop(refused);
    drop(all);
    pool.zalloc(0).expect("a page again");
    assert!(matches!(pool.alloc(19), Err(PoolError::Order { order: 19, max_order: 18 })));
}

#[test]
fn capacities_that_are_no_powers_of_two_are_used_to_the_last_page() {
    for pages in [1usize, 3, 37, 1000] {
        let page = quiet().capacity(1).made().page_size();
        let pool = uncached().capacity(pages * page).growth(page).made();
        let blocks: Vec<_> = (0..pages).map(|_| pool.zalloc(0).expect("a page")).collect();
        assert!(pool.zalloc(0).is_err(), "no more than {pages} pages");
        drop(blocks);
        pool.check().expect("sound");
        let stats = pool.figures();
        assert_eq!(stats.dirty, (pages * page) as u64);
    }
}

#[test]
fn a_large_block_is_had_from_mixed_small_ones() {
    let pool = uncached().capacity(1 << 20).initial(1 << 20).made();
    let order = (1usize << 20).ilog2() - pool.page_size().ilog2();
    drop(pool.alloc(order - 1).expect("half"));
    assert!(pool.figures().dirty > 0);
    let all = pool.zalloc(order).expect("both halves");
    assert!(all.is_zero());
    assert!(pool.figures().wasted > 0, "half of it was zero already");
}

#[test]
fn the_pool_grows_as_it_is_used_and_trim_gives_idle_memory_back() {
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
fn trim_returns_no_more_than_it_was_told() {
    let pool = uncached()
        .capacity(8 << 20)
        .page_size(PageSize::Base)
        .initial(8 << 20)
        .prefault_threads(3)
        .made();
    assert_eq!(pool.notes(), []);
    assert_eq!(pool.figures().zero_resident, 8 << 20);
    assert_eq!(pool.trim_at_most(1 << 20).expect("trimmed"), 1 << 20);
    assert_eq!(pool.figures().zero_absent, 1 << 20);
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
fn a_thread_that_ends_leaves_its_cache_and_keeps_what_it_holds() {
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
fn a_cache_whose_pool_is_gone_harms_nobody() {
    for _ in 0..5 {
        let pool = quiet().capacity(1 << 20).made();
        drop(pool.alloc(0).expect("a page"));
    }
}

#[test]
fn a_zero_that_is_none_is_withdrawn_and_reported() {
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
fn a_zero_that_is_none_is_reported_from_a_cache_too() {
    let pool = quiet().capacity(1 << 20).verify(Verify::Report(1)).made();
    let page = pool.page_size();
    let start = pool.alloc_run_raw(8).expect("a block");
    (0..8).for_each(|number| bytes(start, 8 * page)[number * page + 100] = 9);
    // SAFETY: of use it is none; that it is not zero is the point.
    unsafe { pool.free_zeroed_run_raw(start, 8) }.expect("believed");
    for _ in 0..8 {
        assert!(matches!(pool.zalloc(0), Err(PoolError::NotZero { byte: 9, .. })));
    }
    assert_eq!(pool.figures().verify_failed, 8);
    assert!(pool.zalloc(0).expect("another").is_zero());
    pool.check().expect("sound");
}

#[test]
fn more_than_memory_bound_to_a_node_that_is_not_there_is_told() {
    let pool = quiet().capacity(1 << 20).numa_node(900).made();
    let told: Vec<_> = pool.notes().iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|note| note.contains("NUMA node 900")), "{told:?}");
    drop(pool.zalloc(0).expect("works without"));
}

#[test]
fn explicit_huge_pages_or_a_note_that_there_are_none() {
    let pool = quiet().capacity(4 << 20).page_size(PageSize::Hugetlb).made();
    let told = pool.notes().iter().any(|note| note.to_string().contains("hugetlb"));
    let mappings = cachewise_pages::smaps::mappings();
    let own = mappings.iter().find(|mapped| mapped.range.contains(&pool.base().addr()));
    let page = own.expect("mapped").bytes("KernelPageSize");
    assert_eq!(told, page < cachewise_pages::hugetlb_size());
    let mut block = pool.zalloc(3).expect("a block").into_dirty();
    block.fill(1);
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

/// Threads cut their zeroed memory up without the lock: no page is ever two threads' or not zero,
/// and who looks through the bookkeeping meanwhile finds it sound.
#[test]
fn threads_cut_up_their_own_pieces_while_somebody_looks() {
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

/// Every order that caches have, taken zeroed and given back.
fn fill_cache(pool: &Pool) {
    for order in 0..6 {
        let held: Vec<_> =
            (0..256 >> order).map(|_| pool.zalloc_raw(order).expect("room")).collect();
        for block in held {
            pool.put(block, order);
        }
    }
}

/// However many threads there are: what they hold without using it is a quarter of the pool at most, and a
/// thread that is left alone has its full share again.
#[test]
fn the_caches_of_all_threads_hold_a_part_of_the_pool_together() {
    for (mib, threads) in [(8, 1), (64, 12), (128, 32)] {
        let pool = quiet().capacity(mib << 20).initial(mib << 20).made();
        let cached = || pool.figures().cached;
        // This thread is the first, and has had more than is its share later.
        fill_cache(&pool);
        let alone = cached();
        assert!(0 < alone && alone <= (mib << 20) as u64 / 4, "{mib} MiB: {alone} cached");
        let (filled, seen) = (Barrier::new(threads), Barrier::new(threads));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (1..threads)
                .map(|_| {
                    scope.spawn(|| {
                        // All have a cache before the first fills one.
                        drop(pool.zalloc(0).expect("a page"));
                        filled.wait();
                        fill_cache(&pool);
                        seen.wait();
                        seen.wait();
                    })
                })
                .collect();
            filled.wait();
            fill_cache(&pool);
            seen.wait();
            let together = cached();
            assert!(together <= (mib << 20) as u64 / 4, "{mib} MiB, {threads}: {together} cached");
            seen.wait();
            // Joined one by one: a scope does not wait for the end of a thread's storage.
            workers.into_iter().for_each(|worker| worker.join().expect("no panic"));
        });
        pool.flush_thread_cache();
        fill_cache(&pool);
        // Stacks are between half full and full, and some of them were of zeroed blocks.
        assert!(cached() >= alone / 4, "{mib} MiB: {} again, {alone} at first", cached());
        pool.check().expect("sound");
    }
}
