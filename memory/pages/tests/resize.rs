//! Runs that become longer and shorter where they are.

use crate::common::{Asked, Made, quiet};
use cachewise_pages::buddy::FreeError;
use cachewise_pages::heap::Heap;
use cachewise_pages::{GiveBack, PageSize, Pool, PoolError};
use std::ptr::NonNull;

fn small(capacity: usize) -> Pool {
    quiet().capacity(capacity).cache_blocks(0).page_size(PageSize::Base).made()
}

struct Held {
    start: NonNull<u8>,
    frames: u32,
    word: u64,
}

fn words(pool: &Pool, start: NonNull<u8>, frames: u32) -> impl Iterator<Item = *mut u64> {
    let page = pool.page_size();
    (0..frames as usize).map(move |frame| start.as_ptr().wrapping_add(frame * page).cast())
}

fn write(pool: &Pool, held: &Held) {
    for word in words(pool, held.start, held.frames) {
        // SAFETY: a page of a run that this test holds.
        unsafe { word.write(held.word) };
    }
}

fn check(pool: &Pool, held: &Held) {
    for word in words(pool, held.start, held.frames) {
        // SAFETY: as above.
        assert_eq!(unsafe { word.read() }, held.word, "somebody else wrote there");
    }
}

/// Whatever is resized, taken and freed: nobody's pages are anybody else's, and the bookkeeping is sound.
#[test]
fn runs_resize_and_keep_what_is_in_them() {
    let pool = small(8 << 20);
    let mut random = fastrand::Rng::with_seed(11);
    let (mut held, mut grown, mut cut): (Vec<Held>, u32, u32) = (Vec::new(), 0, 0);
    for step in 0..20_000u64 {
        match random.u8(0..6) {
            0 | 1 => {
                let frames = random.u32(1..90);
                if let Ok(start) = pool.alloc_run_raw(frames) {
                    held.push(Held { start, frames, word: step });
                    write(&pool, held.last().expect("just put there"));
                }
            }
            2 if !held.is_empty() => {
                let gone = held.swap_remove(random.usize(0..held.len()));
                check(&pool, &gone);
                pool.put_run(gone.start, gone.frames);
            }
            3 if step % 7 == 0 => drop(pool.trim()),
            _ if !held.is_empty() => {
                let place = random.usize(0..held.len());
                let of = &mut held[place];
                let wanted = random.u32(1..of.frames + 40);
                // SAFETY: held; what is cut off is not used any more.
                let resized = unsafe { pool.resize_run_raw(of.start, of.frames, wanted) };
                if resized.expect("a run of ours") {
                    let (before, after) = (of.frames, wanted);
                    (grown, cut) =
                        (grown + u32::from(after > before), cut + u32::from(after < before));
                    of.frames = before.min(after);
                    check(&pool, of);
                    of.frames = after;
                    write(&pool, of);
                } else {
                    assert!(wanted > of.frames, "to become shorter needs no room");
                }
            }
            _ => {}
        }
        if step % 200 == 0 {
            pool.check().expect("sound");
            held.iter().for_each(|held| check(&pool, held));
        }
    }
    assert!(grown > 500 && cut > 500, "{grown} grown, {cut} cut");
    for gone in held {
        pool.put_run(gone.start, gone.frames);
    }
    pool.check().expect("sound");
    assert_eq!(pool.figures().allocated, 0);
}

#[test]
fn what_is_no_such_run_is_refused_and_left_alone() {
    let pool = small(4 << 20);
    let start = pool.alloc_run_raw(12).expect("room");
    let inside = NonNull::new(start.as_ptr().wrapping_add(pool.page_size())).expect("an address");
    let resize = |start, frames, wanted| {
        // SAFETY: refused, or without a change.
        unsafe { pool.resize_run_raw(start, frames, wanted) }
    };
    for (start, frames) in [(start, 11), (start, 20), (inside, 11)] {
        let refused = resize(start, frames, 4);
        assert!(matches!(refused, Err(PoolError::Free { .. })), "{frames}: {refused:?}");
    }
    assert!(!resize(start, 12, 0).expect("an answer") && !resize(start, 12, 1 << 30).expect("one"));
    let other = pool.alloc_run_raw(1000).expect("nearly all of the rest");
    assert!(!resize(start, 12, 40).expect("an answer"), "something is behind it");
    pool.put_run(other, 1000);
    pool.put_run(start, 12);
    let refused = resize(start, 12, 4);
    let freed = matches!(refused, Err(PoolError::Free { why: FreeError::DoubleFree, .. }));
    assert!(freed, "{refused:?}");
    pool.check().expect("sound");
}

/// By 4 KiB from 128 KiB to 24 MiB, with other blocks that come and go: as `realloc` is called.
#[test]
fn a_block_that_grows_by_small_steps_moves_seldom() {
    let heap = Heap::new(128 << 20, GiveBack::default()).expect("a heap");
    let take = |size| loop {
        // A heap that its own thread is in answers Busy.
        if let Ok(block) = heap.take(size, false) {
            return block;
        }
        std::thread::yield_now();
    };
    let (mut block, mut moves, mut size) = (take(128 << 10), 0, 128 << 10);
    // SAFETY: the block is that long.
    unsafe { block.as_ptr().write_bytes(7, size) };
    while size < 24 << 20 {
        size += 4 << 10;
        // SAFETY: what moved is not used any more.
        let Some(resized) = unsafe { heap.resize(block, size) }.expect("a block of this heap")
        else {
            size -= 4 << 10;
            std::thread::yield_now();
            continue;
        };
        moves += u32::from(resized != block);
        block = resized;
        let last = block.as_ptr().wrapping_add(size - 1);
        // SAFETY: inside the block.
        unsafe { last.write(7) };
        if size.is_multiple_of(1 << 20) {
            let other = take(200 << 10);
            // SAFETY: taken above.
            unsafe { heap.give_back(other) }.expect("ours");
        }
    }
    assert!(moves < 100, "{moves} moves of {} steps", (24 << 20) / (4 << 10));
    // SAFETY: the block is that long, and these bytes were written.
    let first = unsafe { std::slice::from_raw_parts(block.as_ptr(), 128 << 10) };
    assert!(first.iter().all(|byte| *byte == 7));
    // SAFETY: not used any more.
    unsafe { heap.give_back(block) }.expect("ours");
}

/// Untouched memory does not become resident when it is cut down.
#[test]
fn to_become_shorter_copies_nothing_and_brings_nothing() {
    let heap = Heap::new(256 << 20, GiveBack::default()).expect("a heap");
    let block = heap.take(128 << 20, false).expect("a new heap has room");
    // SAFETY: inside the block.
    unsafe { block.as_ptr().write(1) };
    let before = heap.pool().resident().expect("figures");
    let mut size = 128 << 20;
    while size > 256 << 10 {
        size /= 2;
        // SAFETY: what is cut off is not used.
        let resized = unsafe { heap.resize(block, size) }.expect("ours");
        assert_eq!(resized, Some(block));
        assert_eq!(heap.bytes(block.as_ptr()), Ok(size));
    }
    assert_eq!(heap.in_use(), size as u64);
    // Nor when it is zeroed in the background, in a while.
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 300 {
        assert!(heap.pool().resident().expect("figures") <= before);
        std::thread::yield_now();
    }
    // SAFETY: not used any more.
    unsafe { heap.give_back(block) }.expect("ours");
}

/// Bytes resident after the first of eight rounds in which a block grows, and after the round with the most.
fn most_resident_of_eight_rounds() -> (u64, u64) {
    let heap = Heap::new(512 << 20, GiveBack::default()).expect("a heap");
    let (mut first, mut most) = (0, 0);
    for _ in 0..8 {
        let mut block = loop {
            match heap.take(128 << 10, false) {
                Ok(block) => break block,
                Err(_) => std::thread::yield_now(),
            }
        };
        let mut size = 128 << 10;
        while size < 24 << 20 {
            // SAFETY: what moved is not used any more.
            match unsafe { heap.resize(block, size + (4 << 10)) }.expect("a block of this heap") {
                Some(resized) => (block, size) = (resized, size + (4 << 10)),
                None => std::thread::yield_now(),
            }
            // SAFETY: inside the block.
            unsafe { block.as_ptr().wrapping_add(size - 1).write(7) };
        }
        // SAFETY: not used any more.
        unsafe { heap.give_back(block) }.expect("ours");
        let resident = heap.pool().figures().resident;
        first = if first == 0 { resident } else { first };
        most = most.max(resident);
    }
    (first, most)
}

/// A block that grows, goes and grows again is made of what it gave back, and not of new memory each time.
#[test]
fn a_block_that_grows_again_takes_what_it_gave_back() {
    // Beside other programs the heap's own thread may be in the way, so that a round takes new memory: not in every heap.
    let found: Vec<_> = std::iter::repeat_with(most_resident_of_eight_rounds).take(5).collect();
    let stays = |(first, most): &(u64, u64)| *most < 3 * first;
    assert!(found.iter().any(stays), "bytes resident first and at most: {found:?}");
}
