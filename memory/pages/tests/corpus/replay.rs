//! Calls of a pool, drawn from bytes, held against what a pool promises: blocks apart, zero where it
//! says so, contents kept. The fuzz target and `cargo test` both run this.

use cachewise_pages::{PageSize, Pool, Scrub};
use std::ptr::NonNull;
use std::time::Duration;

/// A block in hand: where, how many pages, and the byte it was filled with.
struct Held {
    start: NonNull<u8>,
    frames: u32,
    byte: u8,
}

fn contents(start: NonNull<u8>, bytes: usize) -> &'static mut [u8] {
    // SAFETY: a block in hand of that many bytes, which nobody else writes to; the slice is dropped
    // before the block is given back.
    unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), bytes) }
}

/// A pool of a megabyte: the first byte says with which caches, pages, highest order and scrubber.
fn pool(settings: u8) -> Pool {
    let scrub = Scrub {
        enabled: settings & 1 != 0,
        start: 0,
        cpu_share: 1.0,
        min_idle: Duration::ZERO,
        ..Scrub::default()
    };
    let pages = if settings & 2 != 0 { PageSize::Base } else { PageSize::Transparent };
    let (blocks, max_order) =
        (usize::from(settings & 12) * 2, if settings & 16 != 0 { 3 } else { 18 });
    let builder = Pool::builder().capacity(1 << 20).cache_blocks(blocks).max_order(max_order);
    let builder = if settings & 32 != 0 { builder.give_back(Duration::ZERO) } else { builder };
    builder.page_size(pages).scrub(scrub).build().expect("a megabyte")
}

/// Two bytes are one call.
pub fn replay(bytes: &[u8]) {
    let pool = pool(bytes.first().copied().unwrap_or_default());
    let page = pool.page_size();
    let mut held: Vec<Held> = Vec::new();
    for call in bytes.chunks_exact(2).take(400) {
        let (what, how) = (call[0], call[1]);
        let (frames, order) = (u32::from(how % 40) + 1, u32::from(how % 6));
        let taken = match what % 12 {
            0 => (true, frames, pool.zalloc_run_raw(frames)),
            1 => (true, 1 << order, pool.zalloc_raw(order)),
            2 => (true, 1 << order, pool.zalloc_to_fill_raw(order)),
            3 => (false, frames, pool.alloc_run_raw(frames)),
            4 => (false, 1 << order, pool.alloc_raw(order)),
            5 => (true, frames * 6, pool.zalloc_run_raw(frames * 6)),
            6..=8 if !held.is_empty() => {
                let Held { start, frames, byte } = held.swap_remove(usize::from(how) % held.len());
                let block = contents(start, frames as usize * page);
                assert!(block.iter().all(|found| *found == byte), "somebody else wrote to it");
                if what % 12 == 6 {
                    block.fill(0);
                    // SAFETY: in hand, of that many pages, zero, and not used again.
                    unsafe { pool.free_zeroed_run_raw(start, frames) }.expect("a block in hand");
                } else {
                    // SAFETY: in hand, of that many pages, and not used again.
                    unsafe { pool.free_run_raw(start, frames) }.expect("a block in hand");
                }
                continue;
            }
            9 => {
                pool.scrub_now(usize::from(how) * page).expect("zeroing");
                continue;
            }
            _ => {
                match how % 4 {
                    0 => drop(pool.trim().expect("a trim")),
                    1 => pool.flush_thread_cache(),
                    2 => drop(pool.pause_scrubber()),
                    _ => pool.resume_scrubber(),
                }
                pool.check().expect("sound");
                continue;
            }
        };
        let (zero, frames, Ok(start)) = taken else { continue };
        let block = contents(start, frames as usize * page);
        assert!(!zero || block.iter().all(|byte| *byte == 0), "a zero block is not zero");
        let byte = how | 1;
        block.fill(byte);
        held.push(Held { start, frames, byte });
    }
    pool.check().expect("sound");
    for Held { start, frames, byte } in held {
        let block = contents(start, frames as usize * page);
        assert!(block.iter().all(|found| *found == byte), "somebody else wrote to it");
        // SAFETY: in hand, of that many pages, and not used again.
        unsafe { pool.free_run_raw(start, frames) }.expect("a block in hand");
    }
    while !pool.pause_scrubber() {}
    pool.flush_thread_cache();
    pool.check_zeros().expect("zero");
    let stats = pool.stats().expect("figures");
    assert_eq!((stats.allocated, stats.cached, stats.in_flight), (0, 0, 0));
}
