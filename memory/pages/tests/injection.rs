//! System calls that fail, and engines that fail, each in each way. One at a time: failures are
//! injected into the whole process.

use crate::alone;
use crate::common::{Asked, Made, Reserved, Zero, eager, is_clean, quiet, until};
use cachewise_pages::engine::faulty::{BatchOutcome, Faulty, Script};
use cachewise_pages::inject::{Call, fail, keep_pages, load};
use cachewise_pages::{
    Builder, EngineChoice, Note, PageSize, Pool, PoolError, Scrub, ScrubberState, Verify,
};
use std::sync::Mutex;
use std::time::Duration;

fn small() -> Builder {
    quiet().capacity(8 << 20).cache_blocks(0).page_size(PageSize::Base)
}

#[test]
fn refused_mapping_is_an_error_and_nothing_is_left_behind() {
    let _alone = alone();
    fail(Call::Map, 1, libc::ENOMEM);
    assert!(matches!(small().build(), Err(PoolError::System { .. })));
    small().build().expect("the next time");
}

#[test]
fn refused_advice_is_a_note() {
    let _alone = alone();
    type Told = fn(&Note) -> bool;
    let cases: [(Call, Builder, Told); 4] = [
        (Call::Huge, small(), |note| matches!(note, Note::NoHugeAdvice(_))),
        (Call::Hugetlb, small().page_size(PageSize::Hugetlb), |note| {
            matches!(note, Note::NoHugetlb(_))
        }),
        (Call::Thread, small().scrub(Scrub::default()), |note| matches!(note, Note::NoScrubber(_))),
        (Call::Populate, small().initial(1 << 20), |note| {
            matches!(note, Note::Prefault { asked: 1048576, .. })
        }),
    ];
    for (call, builder, told) in cases {
        fail(call, 1, libc::EINVAL);
        let pool = builder.made();
        let notes = pool.notes();
        assert!(notes.len() == 1 && told(&notes[0]), "{call:?}: {notes:?}");
        assert!(pool.zalloc(0).expect("works without").is_zero());
        assert!(pool.pause_scrubber());
    }
}

/// A control group that allows fewer explicit huge pages than are reserved ends who touches one more. A pool has
/// ordinary memory from there on, and says so.
#[test]
fn explicit_huge_pages_that_are_not_given_are_small_ones() {
    let _alone = alone();
    let unit = cachewise_pages::hugetlb_size();
    let _reserved = Reserved::more(8);
    let huge = || quiet().capacity(8 * unit).cache_blocks(0).page_size(PageSize::Hugetlb);
    let pool = huge().made();
    if !pool.notes().is_empty() {
        return println!("no explicit huge pages to be had here");
    }
    drop(pool);
    // The first is populated when it is mapped, others when the pool grows.
    for grown in [false, true] {
        let pool = if grown {
            let pool = huge().made();
            drop(pool.alloc_bytes(4 << 20).expect("all that it has grown to"));
            fail(Call::Populate, 1, libc::EFAULT);
            pool
        } else {
            fail(Call::Populate, 1, libc::EFAULT);
            huge().made()
        };
        let mut all: Vec<_> = (0..8).map(|_| pool.zalloc_bytes(unit).expect("room")).collect();
        let notes = pool.notes();
        // The system's own word for it, a bad address, would tell a caller nothing.
        let is_told = matches!(&notes[..], [Note::NoHugetlb(why)] if why.contains("control group"));
        assert!(is_told, "{grown}: {notes:?}");
        assert!(all.iter().all(|block| block.is_zero()));
        all.drain(..).for_each(|block| block.into_dirty().fill(1));
        assert!(pool.trim().expect("returned") >= 4 * unit);
        pool.is_sound();
    }
}

#[test]
fn refused_memory_at_hand_out_is_an_error_value_and_the_block_stays_zero() {
    let _alone = alone();
    let pool = small().made();
    // A pool that may not grow as much as it wants grows by what is needed.
    fail(Call::Open, 1, libc::ENOMEM);
    drop(pool.zalloc(0).expect("a page"));
    assert_eq!(pool.figures().managed, pool.page_size() as u64);
    for (call, times) in [(Call::Open, 4), (Call::Populate, 2)] {
        pool.trim().expect("trimmed");
        fail(call, times, libc::ENOMEM);
        assert!(matches!(pool.zalloc(3), Err(PoolError::NoMemory { .. })), "{call:?}");
        let stats = pool.figures();
        assert_eq!((stats.allocated, stats.in_flight), (0, 0));
        pool.check().expect("sound");
        assert!(pool.zalloc(3).expect("the next time").is_zero());
    }
    pool.trim().expect("trimmed");
    // If many pages are refused, one may still be had.
    fail(Call::Populate, 1, libc::ENOMEM);
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
    assert!(matches!(pool.trim(), Err(PoolError::System { .. })));
    fail(Call::Discard, 0, 0);
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

fn pool_with(outcomes: &[BatchOutcome]) -> Pool {
    let script = Script::new(Mutex::new(outcomes.iter().copied().collect()));
    small()
        .scrub(eager())
        .engine(EngineChoice::Custom(Box::new(Faulty::new(script))))
        .engine_deadline(Duration::from_millis(30))
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
    let well = pool_with(&[BatchOutcome::Good]);
    dirty_and_wait(&well, "good", is_clean);
    assert_eq!(well.figures().engine_faults, 0);
    for outcome in
        [BatchOutcome::Refuse, BatchOutcome::Error, BatchOutcome::Partial, BatchOutcome::Slow]
    {
        let pool = pool_with(&[outcome]);
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
    let pool = pool_with(&[BatchOutcome::Lie]);
    dirty_and_wait(&pool, "Lie", |pool| pool.figures().verify_failed == 1 && is_clean(pool));
    pool.check_zeros().expect("zero");
}

/// The forerunner's driver had no deadline: the daemon "hung once in a while".
#[test]
fn an_engine_that_hangs_is_waited_for_until_its_deadline_and_its_blocks_wait_for_its_end() {
    let _alone = alone();
    let pool = pool_with(&[BatchOutcome::Hang]);
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
    let pool = pool_with(&[BatchOutcome::Error, BatchOutcome::Partial, BatchOutcome::Hang]);
    pool.alloc(5).expect("a block").fill(0x77);
    until("three failures, then the CPU", || {
        if pool.figures().engine_faults < 3 {
            // Work for the next failure.
            drop(pool.alloc(3).map(|mut block| block.fill(0x78)));
        }
        let stats = pool.figures();
        // Memory in flight when it is paused comes back dirty.
        stats.engine_faults >= 3 && stats.quarantined + stats.dirty + stats.in_flight == 0
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
    // A hole is not seen; the last line is.
    for (lie, seen) in [(BatchOutcome::Hole, 0), (BatchOutcome::Lie, 1)] {
        script.lock().expect("no panic").push_back(lie);
        drop(blocks.pop());
        until("zeroed, it says, or caught", || is_clean(&pool));
        assert_eq!(figures().verify_failed, seen);
    }
    until("quiet", || pool.pause_scrubber());
    pool.check_zeros().expect("nothing of it is left");
    let all: Vec<_> = (0..8).map(|_| pool.zalloc(9).expect("a block")).collect();
    assert!(all.iter().all(|block| block.is_zero()));
}

/// The forerunner looked at the load when it woke and never while it worked.
#[test]
fn load_that_rises_while_it_works_makes_it_rest_and_go_on_with_a_small_share() {
    let _alone = alone();
    load(Some(50));
    // Its own limit makes the work last: a page in some milliseconds.
    let limited = Scrub { load: 1.0, cpu_share: 2e-4, chunk: 4 << 10, ..eager() };
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
