//! Work after the operation: the [`Reader`] of its destination, and the [`Bystander`] whose
//! working set it may have evicted.

use crate::{Arena, LINE, MeasureError, PagePolicy};
use std::hint::black_box;

/// Someone else's working set.
///
/// Used in three steps: walk it (it is warm now), let the operation run, walk it again and compare
/// the times. Its lines form four independent chains in random order, each line holding the
/// address of the next: no prefetcher can hide an eviction, while four misses may overlap, as in
/// ordinary code.
#[derive(Debug)]
pub struct Bystander {
    arena: Arena,
    starts: [*const u8; CHAINS],
    lines_per_chain: usize,
}

const CHAINS: usize = 4;

impl Bystander {
    /// A working set of `bytes` bytes (rounded to a multiple of four lines, four at least) within
    /// the process's memory budget.
    pub fn new(bytes: usize, seed: u64) -> Result<Bystander, MeasureError> {
        let lines_per_chain = (bytes / LINE / CHAINS).max(1);
        let lines = lines_per_chain * CHAINS;
        let arena = Arena::new(lines * LINE, PagePolicy::Huge, seed)?;
        let mut order: Vec<usize> = (0..lines).collect();
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        let line = |index: usize| arena.as_mut_ptr().wrapping_add(index * LINE);
        for chain in order.chunks(lines_per_chain) {
            for (at, index) in chain.iter().enumerate() {
                let next = line(chain[(at + 1) % lines_per_chain]);
                // SAFETY: the index is below the number of lines the arena holds, and a line is
                // aligned for a pointer.
                unsafe { line(*index).cast::<*mut u8>().write(next) };
            }
        }
        let starts = std::array::from_fn(|chain| line(order[chain * lines_per_chain]).cast_const());
        Ok(Bystander { arena, starts, lines_per_chain })
    }

    /// Bytes of the working set.
    pub fn bytes(&self) -> usize {
        self.lines_per_chain * CHAINS * LINE
    }

    pub fn walk(&self) {
        let mut at = self.starts;
        for _ in 0..self.lines_per_chain {
            for place in &mut at {
                // SAFETY: every pointer in a chain is a line of the arena whose first word is the
                // next such pointer.
                *place = unsafe { place.cast::<*const u8>().read_volatile() };
            }
        }
        black_box(at);
        debug_assert_eq!(at, self.starts, "a chain is a cycle in {:?}", self.arena);
    }
}

// SAFETY: its pointers lead into its own arena, which moves with it and which it only reads.
unsafe impl Send for Bystander {}

/// The code that uses the destination afterwards.
///
/// A walk loads one 8-byte word of each line it touches, in ascending order, and sums them up in four
/// independent sums: enough to bring every touched line to the core, little enough that memory,
/// not arithmetic, is the limit. The loads are volatile, so none is optimised away.
#[derive(Clone, Copy, Debug)]
pub struct Reader;

impl Reader {
    /// Reads the fraction `fraction` (0 to 1, clamped) of the lines of `n` bytes at `ptr`, spread
    /// evenly, and returns the sum of what it read. A buffer shorter than a word is read bytewise.
    ///
    /// # Safety
    /// `ptr` is readable and initialised for `n` bytes.
    pub unsafe fn touch(ptr: *const u8, n: usize, fraction: f64) -> u64 {
        if fraction.is_nan() || fraction <= 0.0 || n == 0 {
            return 0;
        }
        let head = ptr.align_offset(8);
        if head.saturating_add(8) > n {
            return (0..n).map(|at| u64::from(byte_at(ptr, at))).sum();
        }
        let words = (n - head) / 8;
        let lines = words.div_ceil(LINE / 8);
        let first = ptr.wrapping_add(head);
        let mut sums = [0_u64; 4];
        if fraction >= 1.0 {
            let whole = lines / 4 * 4;
            for line in (0..whole).step_by(4) {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    *sum = sum.wrapping_add(word_at(first, line + lane));
                }
            }
            for line in whole..lines {
                sums[0] = sums[0].wrapping_add(word_at(first, line));
            }
        } else {
            let touched = ((lines as f64 * fraction).round() as usize).clamp(1, lines);
            // 32.32 fixed point: a division per line would be slower than the load.
            let step = ((lines as u128) << 32) / touched as u128;
            let mut position = 0_u128;
            for count in 0..touched {
                let line = (position >> 32) as usize;
                sums[count % 4] = sums[count % 4].wrapping_add(word_at(first, line));
                position += step;
            }
        }
        black_box(sums.iter().fold(0_u64, |total, sum| total.wrapping_add(*sum)))
    }

    /// Reads every `step`-th byte of `n` bytes at `ptr`, ascending (seed 000.11 reads every 32nd),
    /// and returns their sum.
    ///
    /// # Safety
    /// Requires the same as [`touch`](Reader::touch).
    pub unsafe fn every(ptr: *const u8, n: usize, step: usize) -> u64 {
        let mut sums = [0_u64; 4];
        for (count, at) in (0..n).step_by(step.max(1)).enumerate() {
            sums[count % 4] = sums[count % 4].wrapping_add(u64::from(byte_at(ptr, at)));
        }
        black_box(sums.iter().fold(0_u64, |total, sum| total.wrapping_add(*sum)))
    }
}

/// The first word of a line, `line` lines after `first`.
#[inline(always)]
fn word_at(first: *const u8, line: usize) -> u64 {
    // SAFETY: callers stay below the number of lines that start with a whole word inside the
    // buffer, and `first` is aligned for a word.
    unsafe { first.wrapping_add(line * LINE).cast::<u64>().read_volatile() }
}

#[inline(always)]
fn byte_at(ptr: *const u8, at: usize) -> u8 {
    // SAFETY: callers stay below the buffer's length.
    unsafe { ptr.wrapping_add(at).read_volatile() }
}

/// Reads one word of every line of an arena's part, in ascending order.
pub(crate) fn read_lines(start: *const u8, bytes: usize) {
    // SAFETY: callers pass a part of an arena of theirs, which is mapped and written.
    unsafe { Reader::touch(start, bytes, 1.0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_visit_every_line_once() {
        let bystander = Bystander::new(100 * LINE + 1, 3).expect("a bystander");
        assert_eq!(bystander.bytes(), 100 * LINE);
        let mut seen = std::collections::BTreeSet::new();
        for start in bystander.starts {
            let mut at = start;
            for _ in 0..bystander.lines_per_chain {
                assert!(seen.insert(at), "a line twice");
                // SAFETY: as in walk.
                at = unsafe { at.cast::<*const u8>().read() };
            }
            assert_eq!(at, start);
        }
        assert_eq!(seen.len(), 100);
        bystander.walk();
    }

    /// Words with distinct bits, so that the sum tells which were read.
    fn marked(lines: usize) -> Vec<u64> {
        (0..lines * 8).map(|word| if word % 8 == 0 { 1 << 40 } else { 1 }).collect()
    }

    #[test]
    fn the_reader_reads_one_word_of_each_line_it_touches() {
        let whole = [1, 2, 3, 4, 5, 31].map(|lines| (lines, 1.0, lines as u64));
        let parts = [(0.25, 25), (0.5, 50), (0.001, 1), (0.0, 0), (-1.0, 0)];
        let parts = parts.map(|(fraction, expected)| (100, fraction, expected));
        for (lines, fraction, expected) in whole.into_iter().chain(parts) {
            let words = marked(lines);
            // SAFETY: the vector is that long.
            let sum = unsafe { Reader::touch(words.as_ptr().cast(), lines * LINE, fraction) };
            assert_eq!(sum, expected << 40, "{fraction} of {lines}");
        }
    }

    #[test]
    fn every_nth_byte_is_read_once() {
        let mut bytes = [0_u8; 100];
        bytes.iter_mut().step_by(32).for_each(|byte| *byte = 1);
        // A step of 0 is every byte.
        for (n, step, expected) in [(100, 32, 4), (100, 0, 4), (0, 32, 0)] {
            // SAFETY: the array is that long.
            assert_eq!(unsafe { Reader::every(bytes.as_ptr(), n, step) }, expected, "{n} {step}");
        }
    }

    #[test]
    fn odd_lengths_and_alignments_stay_inside() {
        let bytes: Vec<u8> = vec![1; 300];
        for start in 0..16 {
            for n in 0..200 {
                for fraction in [0.3, 1.0] {
                    // SAFETY: start + n is below the vector's length.
                    unsafe { Reader::touch(bytes[start..].as_ptr(), n, fraction) };
                }
            }
        }
        // SAFETY: three bytes of the vector.
        assert_eq!(unsafe { Reader::touch(bytes.as_ptr(), 3, 1.0) }, 3);
    }
}
