//! Resident parts of a pool, address space alone, and the places of runs.

use super::*;

#[test]
fn a_run_finds_its_place_though_no_block_of_the_next_power_of_two_is_free() {
    let pool = uncached().capacity(4 << 20).initial(4 << 20).page_size(PageSize::Base).made();
    let page = pool.page_size();
    let last = (4 << 20) / page - 1;
    let single: Vec<_> = (0..=last).map(|_| pool.zalloc_raw(0).expect("a page")).collect();
    let base = pool.base() as usize;
    let (kept, others): (Vec<_>, Vec<_>) =
        single.into_iter().partition(|start| start.as_ptr() as usize == base + last * page);
    others.into_iter().for_each(|start| free(&pool, start, 0).expect("ours"));
    // 3 MiB of 4 MiB less a page: its rounded size is all of the pool.
    let mut run = pool.alloc_bytes(3 << 20).expect("there is room");
    run.fill(0x77);
    pool.check().expect("sound");
    drop(run);
    let run = pool.zalloc_bytes(3 << 20).expect("there is room");
    assert!(run.is_zero());
    drop(run);
    kept.into_iter().for_each(|start| free(&pool, start, 0).expect("ours"));
    pool.check().expect("sound");
}

#[test]
fn a_huge_page_is_counted_as_broken_once_when_a_part_of_it_goes_back() {
    let pool = uncached().capacity(8 << 20).initial(8 << 20).made();
    let broken = |pool: &Pool| pool.figures().huge_broken;
    let kept = pool.zalloc_raw(0).expect("a page");
    pool.trim().expect("the rest goes back, in parts where the page is");
    assert_eq!(broken(&pool), 1, "the other three went whole");
    free(&pool, kept, 0).expect("ours");
    pool.trim().expect("what is left");
    assert_eq!(broken(&pool), 1, "it was broken already");
    let base = uncached().capacity(8 << 20).initial(8 << 20).page_size(PageSize::Base).made();
    let kept = base.zalloc_raw(0).expect("a page");
    base.trim().expect("the rest");
    assert_eq!(broken(&base), 0, "there was none to break");
    free(&base, kept, 0).expect("ours");
}

/// A vector that doubles leaves its smaller selves: what is resident follows what is in use.
#[test]
fn a_larger_run_uses_what_smaller_ones_left_resident() {
    let scrub = Scrub { enabled: false, ..Scrub::default() };
    let builder = Pool::builder().capacity(64 << 20).cache_blocks(0).page_size(PageSize::Base);
    let pool = builder.scrub(scrub).made();
    for (freed, asked) in [(3 << 20, 4 << 20), (5 << 20, 6 << 20), (12 << 20, 15 << 20)] {
        pool.trim().expect("all of it goes back");
        let block = pool.alloc_bytes(freed).expect("a run");
        drop(block);
        let before = pool.figures();
        for zeroed in [false, true] {
            let start = if zeroed {
                let block = pool.zalloc_bytes(asked).expect("a run");
                assert!(block.is_zero());
                block.as_ptr() as usize
            } else {
                pool.alloc_bytes(asked).expect("a run").as_ptr() as usize
            };
            let after = pool.figures();
            assert_eq!(after.resident, asked as u64, "{freed} freed, {asked} asked, {start:x}");
            assert_eq!(after.populated - before.populated, (asked - freed) as u64);
        }
        pool.check().expect("sound");
    }
}

/// Runs that are made of blocks in different states, with and without huge pages, of which the
/// system brings more than was asked for: the pool holds no more of the machine's memory than it
/// says, and what it made resident it says too.
#[test]
fn what_is_resident_is_counted_however_runs_are_put_together() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        let pool = uncached().capacity(256 << 20).page_size(pages).made();
        let mut random = fastrand::Rng::with_seed(9);
        let mut held: Vec<(NonNull<u8>, u32)> = Vec::new();
        for step in 0..600 {
            // Up to 16 MiB, every size as likely as its half.
            let frames = (1 + random.u32(0..4096)) >> random.u32(0..8);
            let taken = pool.alloc_run_raw(frames.max(1)).expect("a run");
            held.push((taken, frames.max(1)));
            while held.len() > 12 {
                let (start, frames) = held.swap_remove(random.usize(0..held.len()));
                pool.put_run(start, frames);
            }
            let stats = pool.figures();
            let there = pool.resident().expect("the system says so") as u64;
            assert!(there <= stats.resident, "{pages:?}, step {step}: {there} of {stats:?}");
            // The rest of a huge page beyond the run was not requested.
            let counted = pages == PageSize::Transparent || stats.populated >= stats.resident;
            assert!(counted, "{pages:?}, step {step}: {stats:?}");
        }
        for (start, frames) in held {
            pool.put_run(start, frames);
        }
        pool.check().expect("sound");
    }
}

/// Small programs have small pages: whatever they ask for and touch, an allocator's pool holds no more
/// than a quarter more, in which a huge page would not fit. (What is in use at most, then asked for in
/// another way, is not counted here.)
#[test]
fn an_allocators_pool_holds_little_more_than_a_small_program_touches() {
    for steps in [1, 5, 16, 40, 80] {
        let pool = quiet().for_allocator().capacity(256 << 20).made();
        let page = pool.page_size();
        let mut touched = 0;
        for step in 0..steps {
            let frames = 37 + 13 * (step % 7);
            let run = pool.alloc_run_raw(frames).expect("room");
            bytes(run, frames as usize * page).fill(3);
            touched += frames as usize * page;
            let there = pool.resident().expect("the system says so");
            let most = touched + touched / 4 + 2 * page * (step as usize + 1);
            assert!(there <= most, "{there} of {touched} after {step}");
            let stats = pool.figures();
            assert!(stats.resident >= there as u64, "{there}: {stats:?}");
        }
        pool.check().expect("sound");
    }
}

/// Programs ask allocators for more than they touch: what nobody touches is not there, whatever pages the
/// system has.
#[test]
fn an_allocators_pool_leaves_absent_memory_to_the_touch() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        let pool = quiet().for_allocator().capacity(64 << 20).page_size(pages).made();
        for zeroed in [false, true] {
            pool.trim().expect("given back");
            let frames = ((16 << 20) / pool.page_size()) as u32;
            let run = if zeroed { pool.zalloc_run_raw(frames) } else { pool.alloc_run_raw(frames) };
            let run = run.expect("all of it is free");
            let there = pool.resident().expect("the system says so");
            assert_eq!((there, pool.figures().populated), (0, 0), "{pages:?}");
            if zeroed {
                assert!(bytes(run, 16 << 20).is_zero());
            }
            bytes(run, 16 << 20).fill(7);
            pool.put_run(run, frames);
        }
        // Memory given back dirty is zeroed, wherever it is.
        let again = pool.zalloc_bytes(16 << 20).expect("all of it is free");
        assert!(again.is_zero());
    }
}

/// A byte of each block: no more than its page, where pages are small.
#[test]
fn sparse_blocks_stay_sparse() {
    let pool = quiet().for_allocator().capacity(64 << 20).page_size(PageSize::Base).made();
    for _ in 0..200 {
        let run = pool.alloc_run_raw(64).expect("room");
        bytes(run, 1).fill(1);
    }
    assert_eq!(pool.resident().expect("figures"), 200 * pool.page_size());
}

/// The capacity of a pool is address space: it counts for nothing, and no core dump has it.
#[test]
fn memory_that_is_not_managed_yet_is_address_space_alone() {
    let pool = quiet().capacity(256 << 20).made();
    let mut block = pool.alloc_bytes(1 << 20).expect("room");
    block.fill(1);
    let managed = pool.figures().managed as usize;
    assert!(managed < 64 << 20, "{managed}");
    assert!(charged(&pool) <= 4 << 20, "{} of {managed}", charged(&pool));
}

/// Bytes of the pool that count where `vm.overcommit_memory` is 2, all of which a core dump may have.
fn charged(pool: &Pool) -> usize {
    let whole = pool.base().addr()..pool.base().addr() + pool.capacity();
    let mappings = cachewise_pages::smaps::mappings();
    mappings
        .iter()
        .filter(|mapped| mapped.has_flag("ac"))
        .map(|mapped| mapped.between(&whole))
        .sum()
}

/// Memory that was used and returned counts for nothing, is in no core dump, and can be used again; also where a
/// child was forked meanwhile, and by blocks that are less than a unit.
#[test]
fn memory_that_was_returned_is_address_space_alone_until_it_is_used_again() {
    for pages in [PageSize::Base, PageSize::Transparent] {
        let pool = quiet().capacity(256 << 20).page_size(pages).made();
        for round in 0..3 {
            let kept = pool.zalloc_bytes(12 << 10).expect("room");
            let large = pool.zalloc_bytes(100 << 20).expect("room");
            assert!(charged(&pool) >= 100 << 20);
            drop(large);
            let small: Vec<_> = (0..4096).map(|_| pool.zalloc_raw(0).expect("room")).collect();
            small.iter().for_each(|block| {
                // SAFETY: a page of this pool's.
                assert_eq!(unsafe { block.as_ptr().cast::<u64>().read() }, 0, "round {round}");
                // SAFETY: as above, and nobody else's.
                unsafe { block.as_ptr().write(1) };
            });
            for block in small {
                pool.put(block, 0);
            }
            assert!(pool.trim().expect("returned") >= 16 << 20);
            // Two blocks at most are in units that are not free as a whole.
            assert!(charged(&pool) <= 8 << 20, "{pages:?}, {round}: {}", charged(&pool));
            pool.is_sound();
            assert!(kept.is_zero());
        }
    }
}
