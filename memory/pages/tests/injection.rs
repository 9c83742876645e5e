//! System calls that fail, and engines that fail, each in each way. One at a time: failures are
//! injected into the whole process.

use crate::alone;
use crate::common::{Asked, Made, Zero, eager, is_clean, quiet, until};
use cachewise_pages::engine::faulty::{BatchOutcome, Faulty, Script};
use cachewise_pages::inject::{Call, fail, keep_pages, load};
use cachewise_pages::{
    Builder, EngineChoice, PageSize, Pool, PoolError, Scrub, ScrubberState, Verify,
};
use std::sync::Mutex;
use std::time::Duration;

fn small() -> Builder {
    quiet().capacity(8 << 20).cache_blocks(0).page_size(PageSize::Base)
}

#[test]
fn mmap_refused_is_an_error_and_nothing_is_left_behind() {
    let _alone = alone();
    fail(Call::Map, 1, libc::ENOMEM);
    let refused = small().build().expect_err("no memory").to_string();
    assert!(refused.contains("mapping the pool"), "{refused}");
    small().build().expect("the next time");
}

#[test]
fn advice_refused_is_a_note() {
    let _alone = alone();
    fail(Call::Huge, 1, libc::EINVAL);
    let pool = small().made();
    assert_eq!(pool.notes().len(), 1);
    fail(Call::Hugetlb, 1, libc::ENOMEM);
    let pool = small().page_size(PageSize::Hugetlb).made();
    assert!(pool.notes()[0].to_string().contains("transparent huge pages instead"));
    fail(Call::Bind, 1, libc::EPERM);
    let pool = small().numa_node(0).made();
    assert!(pool.notes()[0].to_string().contains("NUMA node 0"));
    fail(Call::Thread, 1, libc::EAGAIN);
    let pool = small().scrub(Scrub::default()).made();
    assert!(pool.notes()[0].to_string().contains("no scrubber"));
    fail(Call::Populate, 1, libc::ENOMEM);
    let pool = small().initial(1 << 20).made();
    assert!(pool.notes()[0].to_string().contains("prefaulted 0 of 1048576"));
    assert!(pool.zalloc(0).expect("later").is_zero());
}

#[test]
fn no_memory_at_hand_out_is_an_error_value_and_the_block_stays_zero() {
    let _alone = alone();
    let pool = small().made();
    fail(Call::Populate, 2, libc::ENOMEM);
    assert!(matches!(pool.zalloc(0), Err(PoolError::NoMemory { .. })));
    pool.check().expect("sound");
    let stats = pool.figures();
    assert_eq!((stats.allocated, stats.zero_absent), (0, stats.managed));
    assert!(pool.zalloc(0).expect("the next time").is_zero());
    // If many pages are refused, one may still be had.
    fail(Call::Populate, 1, libc::ENOMEM);
    let trimmed = pool.trim().expect("trimmed");
    assert!(trimmed > 0);
    pool.zalloc(0).expect("a single page");
    pool.check().expect("sound");
}

/// jemalloc #1302, and the swapped page of wasmtime's pull request 14357: memory taken for zero
/// though the system had not dropped it.
#[test]
fn memory_that_the_system_would_not_take_back_is_dirty() {
    let _alone = alone();
    let pool = small().made();
    pool.alloc(5).expect("a block").fill(0xAB);
    // A block that was zero is trusted no more either: part of it may be gone.
    let before = pool.figures();
    assert!(before.dirty > 0);
    fail(Call::Discard, 1000, libc::EINVAL);
    let refused = pool.trim().expect_err("refused").to_string();
    fail(Call::Discard, 0, 0);
    assert!(refused.contains("returning memory"), "{refused}");
    let stats = pool.figures();
    assert_eq!((stats.trimmed, stats.in_flight), (0, 0));
    assert!(stats.dirty >= before.dirty && stats.zero_absent == before.zero_absent);
    pool.is_sound();
    assert!(pool.zalloc(5).expect("hot-zeroed").is_zero());
    // Locked memory is refused by the system itself.
    let held = pool.alloc_raw(4).expect("a block");
    // SAFETY: the block is held and that long.
    let locked = unsafe { libc::mlock(held.as_ptr().cast(), pool.page_size() << 4) };
    // SAFETY: held, that long.
    unsafe { held.as_ptr().write_bytes(0xCD, pool.page_size() << 4) };
    pool.put(held, 4);
    let _ = pool.trim();
    if locked == 0 {
        assert!(pool.figures().dirty >= (pool.page_size() << 4) as u64);
    }
    pool.is_sound();
}

#[test]
fn the_system_as_engine_falls_back_to_stores_when_it_refuses() {
    let _alone = alone();
    let pool = small().engine(EngineChoice::System).made();
    pool.alloc(6).expect("a block").fill(1);
    fail(Call::Discard, 1, libc::EINVAL);
    let done = pool.scrub_now(usize::MAX).expect("scrubbed");
    assert!(done >= pool.page_size() << 6);
    let stats = pool.figures();
    assert_eq!((stats.dirty, stats.engine_faults), (0, 1));
    pool.check_zeros().expect("zero");
}

fn pool_with(outcomes: &[BatchOutcome], strikes: u32) -> Pool {
    let script = Script::new(Mutex::new(outcomes.iter().copied().collect()));
    small()
        .scrub(eager())
        .engine(EngineChoice::Custom(Box::new(Faulty::new(script))))
        .engine_deadline(Duration::from_millis(30))
        .engine_strikes(strikes)
        .verify(Verify::Report(1))
        .made()
}

fn dirty_and_wait(pool: &Pool, what: &str, done: impl Fn(&Pool) -> bool) {
    pool.alloc(5).expect("a block").fill(0x77);
    until(what, || done(pool));
    pool.check().expect("sound");
    assert!(pool.zalloc(5).expect("a block").is_zero(), "{what}");
}

#[test]
fn every_outcome_of_an_engine_ends_in_zero_or_in_quarantine() {
    let _alone = alone();
    let well = pool_with(&[BatchOutcome::Good], 3);
    dirty_and_wait(&well, "good", is_clean);
    assert_eq!(well.figures().engine_faults, 0);
    for outcome in
        [BatchOutcome::Refuse, BatchOutcome::Error, BatchOutcome::Partial, BatchOutcome::Slow]
    {
        let pool = pool_with(&[outcome], 3);
        let context = format!("{outcome:?}");
        dirty_and_wait(&pool, &context, |pool| {
            let stats = pool.figures();
            stats.engine_faults >= 1 && stats.quarantined > 0
        });
        let stats = pool.figures();
        assert!(stats.quarantined_ever > 0, "{context}: withdrawn");
        pool.check().expect("sound");
    }
    // Every byte of the first memory is read; an engine that reports false work goes at once, and the CPU does the work.
    let pool = pool_with(&[BatchOutcome::Lie], 3);
    dirty_and_wait(&pool, "Lie", |pool| pool.figures().verify_failed == 1 && is_clean(pool));
    pool.check_zeros().expect("zero");
}

/// The forerunner's driver had no deadline: the daemon "hung once in a while".
#[test]
fn an_engine_that_hangs_is_waited_for_until_its_deadline_and_its_blocks_wait_for_its_end() {
    let _alone = alone();
    let pool = pool_with(&[BatchOutcome::Hang], 3);
    dirty_and_wait(&pool, "hang", |pool| pool.figures().quarantined > 0);
    // It scribbles on what it has for as long as it lives; nobody else has that.
    for _ in 0..20 {
        assert!(pool.zalloc(5).expect("a block").is_zero());
        std::thread::sleep(Duration::from_millis(1));
    }
    until("quiet", || pool.pause_scrubber());
    pool.check_zeros().expect("zero");
}

#[test]
fn after_its_strikes_the_engine_goes_and_the_cpu_does_all_its_work() {
    let _alone = alone();
    let pool = pool_with(&[BatchOutcome::Error, BatchOutcome::Hang], 2);
    pool.alloc(5).expect("a block").fill(0x77);
    until("two failures, then the CPU", || {
        if pool.figures().engine_faults < 2 {
            // Work for the second failure.
            drop(pool.alloc(3).map(|mut block| block.fill(0x78)));
        }
        let stats = pool.figures();
        // Memory in flight when it is paused comes back dirty.
        stats.engine_faults >= 2 && stats.quarantined + stats.dirty + stats.in_flight == 0
    });
    until("quiet", || pool.pause_scrubber());
    let stats = pool.figures();
    assert!(stats.quarantined_ever > 0 && stats.scrubbed > 0);
    pool.is_sound();
}

/// A lie that nobody saw is undone when another one is seen.
#[test]
fn what_a_caught_engine_zeroed_before_is_not_believed_either() {
    let _alone = alone();
    let script = Script::default();
    let engine = Box::new(Faulty::new(Script::clone(&script)));
    let pool = Pool::builder()
        .capacity(16 << 20)
        .max_order(9)
        .scrub(Scrub { chunk: 4 << 20, unused_limit: u64::MAX, ..eager() })
        .engine(EngineChoice::Custom(engine))
        .made();
    let figures = || pool.figures();
    while figures().scrubbed < 64 << 20 {
        let blocks: Vec<_> = (0..4).filter_map(|_| pool.alloc(9).ok()).collect();
        blocks.into_iter().for_each(|mut block| block.fill(0x55));
        until("zeroed", || is_clean(&pool));
    }
    let mut blocks: Vec<_> = (0..2).map(|_| pool.alloc(9).expect("a block")).collect();
    blocks.iter_mut().for_each(|block| block.fill(0x66));
    for lie in [BatchOutcome::Hole, BatchOutcome::Lie] {
        assert_eq!(figures().verify_failed, 0, "one batch in 64 is read whole");
        script.lock().expect("no panic").push_back(lie);
        drop(blocks.pop());
        until("zeroed, it says, or caught", || is_clean(&pool) || figures().verify_failed != 0);
        if figures().verify_failed != 0 {
            break;
        }
    }
    assert_eq!(figures().verify_failed, 1);
    until("quiet", || pool.pause_scrubber());
    pool.check_zeros().expect("nothing of it is left");
    // One is left where the first lie was caught at once.
    drop(blocks);
    let all: Vec<_> = (0..8).map(|_| pool.zalloc(9).expect("a block")).collect();
    assert!(all.iter().all(|block| block.is_zero()));
}

/// The forerunner looked at the load when it woke and never while it worked.
#[test]
fn load_that_rises_while_it_works_makes_it_rest_and_go_on_with_a_small_share() {
    let _alone = alone();
    load(Some(50));
    // Its own limit makes the work last: a page in some 30 ms.
    let limited = Scrub { load: 1.0, bytes_per_second: 128 << 10, chunk: 4 << 10, ..eager() };
    let pool = small().scrub(limited).made();
    pool.alloc_bytes(8 << 20).expect("much").fill(1);
    let figures = || pool.figures();
    until("work begun", || figures().scrubbed > 0);
    assert_eq!(figures().load_rests, 0);
    load(Some(150));
    until("rest", || figures().scrubber == ScrubberState::Load);
    let (at, rests) = (figures().scrubbed, figures().load_rests);
    until("rest is not for ever", || figures().scrubbed > at && figures().load_rests > rests);
    load(Some(100));
    until("the limit itself is no excess", || figures().scrubber == ScrubberState::Working);
    load(None);
}

/// A container is told the load of the whole host, which says nothing of its own CPUs.
#[test]
fn the_load_of_the_machine_holds_nothing_back_unless_a_limit_is_set() {
    let _alone = alone();
    load(Some(100_000));
    let pool = small().scrub(Scrub { min_idle: Duration::ZERO, ..Scrub::default() }).made();
    pool.alloc_bytes(4 << 20).expect("much").fill(1);
    until("zeroed", || is_clean(&pool));
    load(None);
}

/// A block that somebody needs as a whole is not kept from them by a scrubber that always has one
/// part of it or another.
#[test]
fn an_allocation_gets_what_the_scrubber_has_in_flight() {
    let _alone = alone();
    let pool = small().scrub(Scrub { chunk: 16 << 10, ..eager() }).made();
    for round in 0..100 {
        pool.alloc_bytes(8 << 20).unwrap_or_else(|error| panic!("round {round}: {error}"))[..4096]
            .fill(1);
    }
}

/// Growth ahead of need whose second look at the pool fails has ended: tried again and again, it
/// would leave portion after portion in flight until none was left.
#[test]
fn growth_ahead_that_cannot_bring_its_portion_back_ends_until_the_next_hand_out() {
    let _alone = alone();
    let scrub = Scrub { start: 18, ..eager() };
    let builder = Pool::builder().capacity(32 << 20).page_size(PageSize::Base).scrub(scrub);
    let pool = builder.grow_ahead(2 << 20).made();
    let in_flight = || pool.figures().in_flight;
    fail(Call::Land, u32::MAX, libc::EIO);
    let held = pool.zalloc_bytes(8 << 20).expect("8 MiB");
    until("a portion in flight", || in_flight() > 0);
    let portion = in_flight();
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(in_flight(), portion, "one portion, and no second try");
    fail(Call::Land, 0, 0);
    let other = pool.zalloc_bytes(1 << 20).expect("1 MiB");
    until("growth after the next hand-out", || pool.figures().grown_ahead > 0);
    until("the lost portion only", || in_flight() == portion);
    drop((held, other));
    pool.check().expect("sound");
}

/// The rest of a run, most of which is there, cannot be had: an error value, and all of it is free
/// again.
#[test]
fn no_memory_for_the_rest_of_a_run_is_an_error_value_and_loses_nothing() {
    let _alone = alone();
    let pool = small().made();
    drop(pool.alloc_bytes(3 << 20).expect("3 MiB"));
    fail(Call::Populate, 1, libc::ENOMEM);
    let refused = pool.zalloc_bytes(4 << 20).map(|block| block.len());
    assert!(matches!(refused, Err(PoolError::NoMemory { .. })), "{refused:?}");
    assert_eq!(pool.check().map(|()| pool.figures().allocated).ok(), Some(0));
    let block = pool.zalloc_bytes(4 << 20).expect("the next time");
    assert!(block.is_zero());
}

/// Emulators and kernels in user space have said so, and kept what was in the pages.
#[test]
fn a_system_that_only_says_that_it_dropped_pages_is_not_believed() {
    let _alone = alone();
    keep_pages(true);
    for engine in [EngineChoice::CpuAround, EngineChoice::System] {
        let pool = small().engine(engine).made();
        pool.alloc_bytes(4 << 20).expect("room").fill(0xA5);
        assert!(pool.trim().is_err(), "nothing was returned");
        let block = pool.zalloc_bytes(2 << 20).expect("room");
        assert!(block.is_zero());
        drop(block);
        pool.scrub_now(usize::MAX).expect("zeroed in another way");
        pool.is_sound();
    }
    keep_pages(false);
    let pool = small().made();
    pool.alloc_bytes(4 << 20).expect("room").fill(0xA5);
    assert!(pool.trim().expect("returned") >= 4 << 20);
}

/// As where the commit limit is reached (`vm.overcommit_memory` 2).
#[test]
fn memory_that_the_system_refuses_to_open_is_an_error_value_and_passes() {
    let _alone = alone();
    let pool = small().capacity(64 << 20).made();
    fail(Call::Open, 4, libc::ENOMEM);
    assert!(matches!(pool.alloc(0), Err(PoolError::NoMemory { .. })));
    fail(Call::Open, 0, 0);
    assert!(pool.zalloc(0).expect("the next time").is_zero());
    pool.check().expect("sound");
    // Returned memory serves a new run and one that becomes longer; memory that cannot be closed stays open.
    for refused in [Call::Open, Call::Close] {
        pool.alloc_bytes(32 << 20).expect("room").fill(0xA5);
        fail(refused, 1, libc::ENOMEM);
        pool.trim().expect("returned");
        let run = pool.alloc_run_raw(3).expect("room");
        fail(Call::Open, 1, libc::ENOMEM);
        // SAFETY: nothing is cut off.
        let longer = unsafe { pool.resize_run_raw(run, 3, 4096) }.expect("an answer");
        fail(Call::Open, 1, libc::ENOMEM);
        let _ = pool.zalloc_bytes(32 << 20);
        fail(Call::Open, 0, 0);
        fail(Call::Close, 0, 0);
        let frames = if longer { 4096 } else { 3 };
        pool.put_run(run, frames);
        assert!(pool.zalloc_bytes(32 << 20).expect("room").is_zero());
        pool.is_sound();
    }
}
