//! The pool as part of this test program's global allocator.

use cachewise_pages::global::{PoolAlloc, SMALLEST};
use cachewise_pages::{Pool, Scrub};
use std::alloc::System;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: PoolAlloc = PoolAlloc::new(System, settings).between(SMALLEST, 16 << 20);

fn settings() -> cachewise_pages::Builder {
    let scrub = Scrub { load: f64::INFINITY, ..Scrub::default() };
    Pool::builder().capacity(128 << 20).scrub(scrub)
}

/// The pool, made if need be. While one test makes it, what the others ask for goes elsewhere.
fn pool() -> &'static Pool {
    let begun = Instant::now();
    loop {
        drop(std::hint::black_box(vec![0u8; SMALLEST]));
        if let Some(pool) = ALLOCATOR.pool() {
            return pool;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no pool is made");
        std::thread::yield_now();
    }
}

/// One test fills the pool, and another looks where its blocks come from.
static WHOLE: Mutex<()> = Mutex::new(());

/// A static that allocates when it is made, which may be before the pool is.
static EARLY: LazyLock<Vec<u64>> = LazyLock::new(|| (0..100_000).collect());

#[test]
fn large_blocks_come_from_the_pool_and_small_ones_do_not() {
    let _whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(EARLY[99_999], 99_999);
    let small: Box<u64> = Box::new(3);
    let pool = pool();
    // While another thread is in the pool, the other allocator serves.
    let begun = Instant::now();
    let large = loop {
        let large = vec![0u8; 3 << 20];
        if pool.contains(large.as_ptr()) {
            break large;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no block is the pool's");
    };
    assert!(!pool.contains((&raw const *small).cast()));
    assert!(large.iter().all(|byte| *byte == 0));
    let giant = vec![0u8; 17 << 20];
    assert!(!pool.contains(giant.as_ptr()), "above the limit: mapped when touched");
    drop((large, giant));
}

#[test]
fn vectors_grow_through_all_sizes_and_keep_their_bytes() {
    let mut numbers: Vec<u32> = Vec::new();
    for number in 0..5_000_000 {
        numbers.push(number);
    }
    numbers.truncate(40_000);
    numbers.shrink_to_fit();
    assert!(numbers.iter().copied().eq(0..40_000));
    for size in (SMALLEST - 3..SMALLEST + 9000).step_by(1111) {
        let mut bytes = vec![0u8; size];
        assert!(bytes.iter().all(|byte| *byte == 0));
        bytes.fill(0xFF);
        bytes.resize(size + 5000, 1);
        assert!(bytes[..size].iter().all(|byte| *byte == 0xFF));
    }
}

/// The memory behind a block is free, or the block moves.
#[test]
fn a_vector_that_grows_by_small_steps_moves_seldom() {
    let _whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = pool();
    let begun = Instant::now();
    let mut bytes = loop {
        let bytes = vec![7u8; SMALLEST];
        if pool.contains(bytes.as_ptr()) {
            break bytes;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "no block is the pool's");
    };
    let (mut steps, mut moves) = (0, 0);
    while bytes.len() < 12 << 20 && pool.contains(bytes.as_ptr()) {
        let before = bytes.as_ptr();
        bytes.reserve_exact(4096);
        bytes.resize(bytes.len() + 4096, 7);
        (steps, moves) = (steps + 1, moves + u32::from(before != bytes.as_ptr()));
    }
    assert!(moves <= 5 + steps / 20, "{moves} moves of {steps} steps");
    assert!(bytes.iter().all(|byte| *byte == 7));
    let before = bytes.as_ptr();
    let ours = pool.contains(before);
    bytes.truncate(1000);
    bytes.shrink_to_fit();
    assert!(!ours || bytes.as_ptr() == before, "to become shorter moves nothing");
}

#[test]
fn threads_and_maps_and_a_full_pool() {
    let _whole = WHOLE.lock().unwrap_or_else(PoisonError::into_inner);
    let threads: Vec<_> = (0..4u8)
        .map(|thread| {
            std::thread::spawn(move || {
                let mut kept = HashMap::new();
                for round in 0..60usize {
                    let mut bytes = vec![0u8; SMALLEST + round * 50_000];
                    assert!(bytes.iter().all(|byte| *byte == 0));
                    bytes.fill(thread + 1);
                    kept.insert(round % 7, bytes);
                }
                kept.values().flatten().all(|byte| *byte == thread + 1)
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().expect("no panic"));
    }
    // More than the pool has: the other allocator helps out.
    let pool = pool();
    let many: Vec<_> = (0..20).map(|_| vec![0u8; 8 << 20]).collect();
    assert!(many.iter().any(|bytes| !pool.contains(bytes.as_ptr())));
    drop(many);
    pool.check().expect("sound");
}

#[test]
fn alignments_larger_than_a_page() {
    for shift in 12..24 {
        let layout = std::alloc::Layout::from_size_align(200_000, 1 << shift).expect("a layout");
        // SAFETY: the layout has a size.
        let block = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!block.is_null() && (block as usize).is_multiple_of(1 << shift), "2^{shift}");
        // SAFETY: the block is that long.
        let bytes = unsafe { std::slice::from_raw_parts(block, 200_000) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        // SAFETY: allocated above with this layout.
        unsafe { std::alloc::dealloc(block, layout) };
    }
}
