//! Pools in shards: who takes from where, what many threads make of the locks, and each refusal.

use crate::common::{Asked, Made, quiet};
use cachewise_pages::buddy::FreeError;
use cachewise_pages::{Builder, EngineChoice, MOST_SHARDS, PageSize, Pool, PoolError};
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

/// Threads are given their shards in turn over the whole process, so tests of several threads are run one
/// at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn small_pages() -> Builder {
    quiet().page_size(PageSize::Base)
}

struct Sent(NonNull<u8>);
// SAFETY: a block that its sender does not use any more.
unsafe impl Send for Sent {}

fn holds(pool: &Pool) -> u64 {
    pool.stats().expect("figures").lock_holds
}

/// How often the lock is taken decides from how many threads on it is busy all the time
/// (`docs/decisions/pool-shards.md`).
#[test]
fn a_thread_takes_the_lock_once_for_hundreds_of_pages() {
    let _alone = alone();
    const PAGES: usize = 4096;
    let pool = small_pages().capacity(32 << 20).initial(32 << 20).made();
    let mut held = Vec::with_capacity(PAGES);
    for prezeroed in [true, true, false] {
        pool.flush_thread_cache();
        if prezeroed {
            pool.scrub_now(usize::MAX).expect("zeroed");
        }
        let begun = holds(&pool);
        held.extend((0..PAGES).map(|_| pool.zalloc_raw(0).expect("a page")));
        let taken = holds(&pool);
        for page in held.drain(..) {
            pool.put(page, 0);
        }
        let freed = holds(&pool);
        // Batches grow to 256 pages, and half a cache goes back at a time. Where nothing is zero,
        // it is looked for now and then. One hold is the look itself.
        assert!(taken - begun <= if prezeroed { 32 } else { 96 }, "{} for taking", taken - begun);
        assert!(freed - taken <= 33, "{} for giving back", freed - taken);
    }
}

#[test]
fn sixty_four_threads_have_the_shards_in_equal_parts() {
    let _alone = alone();
    const THREADS: usize = 64;
    const PAGES: usize = 512;
    const ROUNDS: usize = 4;
    // So large that each thread's cache may hold 256 pages.
    let bytes = THREADS * 16 * PAGES * 4096;
    let pool = small_pages().capacity(bytes).allow_over_memory().build_sharded(16).expect("a pool");
    let before: Vec<_> = pool.pools().iter().map(holds).collect();
    let shard_of = |page: &NonNull<u8>| {
        pool.pools().iter().position(|pool| pool.contains(page.as_ptr())).expect("a shard's")
    };
    let threads = [const { AtomicUsize::new(0) }; 16];
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut homes = BTreeSet::new();
                for _ in 0..ROUNDS {
                    let held: Vec<_> =
                        (0..PAGES).map(|_| pool.zalloc_raw(0).expect("a page")).collect();
                    homes.extend(held.iter().map(shard_of));
                    for page in held {
                        // SAFETY: taken above, and used by nobody.
                        unsafe { pool.free_raw(page, 0) }.expect("ours");
                    }
                }
                assert_eq!(homes.len(), 1, "a thread's pages are all of one shard");
                for home in homes {
                    threads[home].fetch_add(1, Relaxed);
                }
            });
        }
    });
    let threads = threads.map(AtomicUsize::into_inner);
    assert_eq!(threads, [THREADS / 16; 16]);
    let stats = pool.stats().expect("figures");
    assert_eq!(stats.zero_hits + stats.zero_misses, (THREADS * PAGES * ROUNDS) as u64);
    // How often exactly is a matter of who ran at once: memory is made resident meanwhile.
    for (shard, before) in pool.pools().iter().zip(before) {
        let pages = 2 * THREADS / 16 * PAGES * ROUNDS;
        assert!(holds(shard) - before < pages as u64 / 10, "once for tens of pages");
        shard.check().expect("sound");
    }
}

#[test]
fn a_block_goes_back_to_the_shard_it_is_from_whoever_frees_it() {
    let _alone = alone();
    let pool = small_pages().capacity(64 << 20).build_sharded(4).expect("a pool");
    let (sender, receiver) = mpsc::channel::<Sent>();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            let sender = sender.clone();
            let pool = &pool;
            scope.spawn(move || {
                for round in 0..500_u32 {
                    let page = pool.zalloc_raw(round % 3).expect("a block");
                    // SAFETY: just handed out.
                    unsafe { page.as_ptr().write(round as u8 | 1) };
                    assert!(sender.send(Sent(page)).is_ok());
                }
            });
        }
        drop(sender);
        let mut orders = std::collections::BTreeMap::<u32, usize>::new();
        while let Ok(Sent(page)) = receiver.recv() {
            // Any of three orders: the right one is taken back, the others are refused.
            let order = (0..3).find(|order| {
                // SAFETY: sent away, and used by nobody.
                unsafe { pool.free_raw(page, *order) }.is_ok()
            });
            *orders.entry(order.expect("one of them")).or_default() += 1;
            // SAFETY: nothing is touched.
            let again = unsafe { pool.free_raw(page, 0) };
            assert!(again.is_err(), "freed twice");
        }
        assert_eq!(orders.values().sum::<usize>(), 4000);
    });
    pool.flush_thread_cache();
    let stats = pool.stats().expect("figures");
    assert_eq!((stats.allocated, stats.frees), (0, 4000));
    assert!(
        pool.pools().iter().filter(|pool| pool.stats().expect("figures").frees > 0).count() > 1
    );
    assert!(pool.trim().expect("given back") > 0);
    pool.pools().iter().for_each(|pool| pool.check().expect("sound"));
}

#[test]
fn where_the_own_shard_has_nothing_left_the_others_have() {
    let _alone = alone();
    let pool = small_pages().capacity(8 << 20).cache_blocks(0).build_sharded(4).expect("a pool");
    let blocks: Vec<_> = (0..8).map(|_| pool.zalloc(8).expect("1 MiB of 8")).collect();
    assert!(matches!(pool.alloc(8), Err(PoolError::Exhausted { .. })));
    drop(blocks);
    let mut block = pool.alloc(9).expect("a whole shard");
    block.fill(1);
    assert!(pool.alloc(10).is_err(), "no block is larger than a shard");
    drop(block);
    assert_eq!(pool.scrub_now(usize::MAX).expect("zeroed"), 8 << 20);
}

#[test]
fn what_cannot_be_is_refused() {
    let _alone = alone();
    for shards in [0, MOST_SHARDS + 1] {
        let refused = small_pages().build_sharded(shards).expect_err("no such number");
        assert!(refused.to_string().contains("accepted 1 to 16"), "{refused}");
    }
    let pool = small_pages().capacity(8 << 20).build_sharded(2).expect("a pool");
    let mut elsewhere = [0_u8; 64];
    let start = NonNull::new(elsewhere.as_mut_ptr()).expect("an array");
    // SAFETY: refused, since it is nobody's.
    let refused = unsafe { pool.free_raw(start, 0) };
    assert!(matches!(
        refused,
        Err(PoolError::Free { why: FreeError::Foreign | FreeError::Misaligned, .. })
    ));
    let sane = small_pages().engine(EngineChoice::CpuThrough).build_sharded(2);
    assert!(sane.is_ok());
}
