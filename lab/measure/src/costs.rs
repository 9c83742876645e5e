//! Costs of memory on this machine other than copying: a page fault, a block of the allocator, a
//! byte of libc's. A few milliseconds each; good to some ten per cent, for bounds.

use crate::MeasureError;
use crate::arena::{Arena, PagePolicy};
use crate::stats::median;
use cachewise_host::Room;
use cachewise_kernels::PAGE_SIZE;
use memmap2::MmapMut;
use std::hint::black_box;
use std::io;
use std::time::Instant;

const ROUNDS: usize = 5;
/// Bytes of memory that faults and copies are timed in: more than most caches hold, and at least that many.
const FAULTED: usize = 32 << 20;
const LEAST_FAULTED: usize = 1 << 20;
/// Mappings of a round.
const MAPPINGS: u32 = 256;
/// Blocks that are alive at once, and their sizes' range.
const BLOCKS: usize = 512;
const LARGEST_BLOCK: usize = 2048;

/// Bytes that are timed where a control group or the machine has less: prices are measured with what there is.
fn faulted() -> usize {
    let room = usize::try_from(Room::of_process().available / 16).unwrap_or(FAULTED);
    (room.clamp(LEAST_FAULTED, FAULTED) / PAGE_SIZE) * PAGE_SIZE
}

/// Seconds of a page fault of a base page: memory taken, a byte of each page written, given back.
///
/// # Errors
/// There is no memory.
pub fn page_fault() -> io::Result<f64> {
    let (mut rounds, faulted) = (Vec::new(), faulted());
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        let mut pages = MmapMut::map_anon(faulted)?;
        #[cfg(target_os = "linux")]
        // Without huge pages in the system, there is nothing to refuse.
        let _ = pages.advise(memmap2::Advice::NoHugePage);
        pages.iter_mut().step_by(PAGE_SIZE).for_each(|byte| *byte = 1);
        black_box(&pages);
        drop(pages);
        rounds.push(begun.elapsed().as_secs_f64());
    }
    Ok(median(&rounds) / (faulted / PAGE_SIZE) as f64)
}

/// Seconds of taking memory from the system and giving it back, untouched.
///
/// # Errors
/// There is no memory.
pub fn mapping() -> io::Result<f64> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..MAPPINGS {
            black_box(MmapMut::map_anon(PAGE_SIZE)?);
        }
        rounds.push(begun.elapsed().as_secs_f64());
    }
    Ok(median(&rounds) / f64::from(MAPPINGS))
}

/// Seconds of taking a block of up to 2 KiB from the system's allocator and giving it back, among others.
pub fn block() -> f64 {
    let mut random = fastrand::Rng::with_seed(1);
    let mut blocks: Vec<Vec<u8>> = (0..BLOCKS).map(|_| Vec::with_capacity(64)).collect();
    let (mut rounds, calls) = (Vec::new(), 64 * BLOCKS);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..calls {
            let at = random.usize(..BLOCKS);
            blocks[at] = black_box(Vec::with_capacity(random.usize(1..LARGEST_BLOCK)));
        }
        rounds.push(begun.elapsed().as_secs_f64());
    }
    median(&rounds) / calls as f64
}

/// Seconds of a byte that libc copies, of large operands that no cache holds.
///
/// # Errors
/// There is no memory.
pub fn byte() -> Result<f64, MeasureError> {
    let (mut rounds, faulted) = (Vec::new(), faulted());
    let arena = Arena::new(2 * faulted, PagePolicy::Small, 1)?;
    let start = arena.as_mut_ptr();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        // SAFETY: two halves of the arena.
        unsafe { start.wrapping_add(faulted).copy_from_nonoverlapping(start, faulted) };
        rounds.push(begun.elapsed().as_secs_f64());
    }
    Ok(median(&rounds) / faulted as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_times_of_memory() {
        let fault = page_fault().expect("memory");
        assert!((1e-9..1e-3).contains(&fault), "{fault}");
        assert!((1e-9..1e-3).contains(&mapping().expect("memory")));
        assert!((1e-10..1e-4).contains(&block()));
        assert!((1e-12..1e-6).contains(&byte().expect("memory")));
    }
}
