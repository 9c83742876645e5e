//! Fill and zero, every kernel: lengths x alignments x values x page edges.

use crate::lengths::{self, ALIGNMENTS, DENSE, Edge};
use crate::runner::{Effort, each_kernel, random_for};
use crate::support::Checked;
use crate::support::arena::{Arena, MARGIN};
use cachewise_kernels::{Function, Operation};

/// Values whose low byte is not the whole of them, beside ordinary ones.
const VALUES: [i32; 10] =
    [0, 0xff, 0xa5, 0x5a, 1, 0x80, 0x1a5, -1, i32::MIN | 0x7f, 0x7fff_ff00_u32 as i32];

#[test]
fn every_fill_kernel_fills() {
    each_kernel(Operation::Fill, |kernel, arena, effort| {
        let Function::Fill(f) = kernel.function else { unreachable!("the operation is fill") };
        let mut filled = Filled::new(effort);
        let mut turn = 0;
        sweep(&mut random_for(kernel), arena, effort, |arena, d, n| {
            turn += 1;
            let value = VALUES[turn % VALUES.len()];
            arena.fill(kernel, f, d, value, filled.with(value as u8, n))
        })?;
        for value in 0..=255 {
            for n in [1, 3, 8, 17, 64, 200, 517] {
                let d = MARGIN + (value as usize + n) % ALIGNMENTS;
                arena.fill(kernel, f, d, value, filled.with(value as u8, n))?;
            }
        }
        Ok(())
    });
}

#[test]
fn every_zero_kernel_zeroes() {
    each_kernel(Operation::Zero, |kernel, arena, effort| {
        let Function::Zero(f) = kernel.function else { unreachable!("the operation is zero") };
        let zeroes = vec![0; effort.longest()];
        sweep(&mut random_for(kernel), arena, effort, |arena, d, n| {
            arena.zero(kernel, f, d, &zeroes[..n])
        })
    });
}

/// One long run of each byte value that has been asked for.
struct Filled {
    runs: Vec<Vec<u8>>,
    longest: usize,
}

impl Filled {
    fn new(effort: Effort) -> Filled {
        Filled { runs: vec![Vec::new(); 256], longest: effort.longest() }
    }

    fn with(&mut self, value: u8, n: usize) -> &[u8] {
        let run = &mut self.runs[usize::from(value)];
        if run.len() < n {
            // Nearly all lengths are short; only a value that meets a long one pays for it.
            let length = if n <= 2 * DENSE { 2 * DENSE } else { self.longest };
            *run = vec![value; length];
        }
        &run[..n]
    }
}

/// Calls `check(arena, offset, n)` for every length at every alignment and at the page edges.
fn sweep(
    random: &mut fastrand::Rng,
    arena: &mut Arena,
    effort: Effort,
    mut check: impl FnMut(&mut Arena, usize, usize) -> Checked,
) -> Checked {
    for n in lengths::dense(effort) {
        for d in 0..ALIGNMENTS {
            check(arena, MARGIN + d, n)?;
        }
    }
    let room = arena.room();
    for n in (0..=DENSE).chain(lengths::large(effort, random)) {
        for edge in Edge::sample(random) {
            check(arena, edge.offset(room, n), n)?;
        }
    }
    Ok(())
}
