//! Calls of a pool, drawn from bytes, held against what a pool promises: blocks apart, zero where it
//! says so, contents kept. The fuzz target and `cargo test` both run this.

use cachewise_pages::Pool;
use std::ptr::NonNull;

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

/// Two bytes are one call.
pub fn replay(bytes: &[u8]) {
    let blocks = bytes.first().map_or(0, |byte| usize::from(byte % 40));
    let builder = Pool::builder().capacity(1 << 20).cache_blocks(blocks);
    let pool = builder.build().expect("a megabyte");
    let page = pool.page_size();
    let mut held: Vec<Held> = Vec::new();
    for call in bytes.chunks_exact(2).take(400) {
        let (what, how) = (call[0], call[1]);
        match what % 8 {
            kind @ 0..=3 => {
                let frames = u32::from(how % 40) + 1;
                let zero = kind < 2;
                let taken =
                    if zero { pool.zalloc_run_raw(frames) } else { pool.alloc_run_raw(frames) };
                let Ok(start) = taken else { continue };
                let block = contents(start, frames as usize * page);
                assert!(!zero || block.iter().all(|byte| *byte == 0), "a zero block is not zero");
                let byte = how | 1;
                block.fill(byte);
                held.push(Held { start, frames, byte });
            }
            4 | 5 if !held.is_empty() => {
                let Held { start, frames, byte } = held.swap_remove(usize::from(how) % held.len());
                let block = contents(start, frames as usize * page);
                assert!(block.iter().all(|found| *found == byte), "somebody else wrote to it");
                // SAFETY: in hand, of that many pages, and not used again.
                unsafe { pool.free_run_raw(start, frames) }.expect("a block in hand");
            }
            4 | 5 => {}
            6 => {
                let _ = pool.scrub_now(usize::from(how) * page).expect("zeroing");
            }
            _ => match how % 3 {
                0 => drop(pool.trim_at_most(usize::from(how) * page).expect("a trim")),
                1 => pool.flush_thread_cache(),
                _ => pool.check().expect("sound"),
            },
        }
    }
    pool.check().expect("sound");
    for Held { start, frames, byte } in held {
        let block = contents(start, frames as usize * page);
        assert!(block.iter().all(|found| *found == byte), "somebody else wrote to it");
        // SAFETY: in hand, of that many pages, and not used again.
        unsafe { pool.free_run_raw(start, frames) }.expect("a block in hand");
    }
    pool.check_zeros().expect("zero");
}
