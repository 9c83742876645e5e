//! Compare and equal, every kernel: lengths x alignments x the place and sign of the first
//! difference x what differs after it x page edges.

use crate::lengths::{self, ALIGNMENTS, DENSE, Edge};
use crate::runner::{Effort, each_kernel, random_for};
use crate::support::Checked;
use crate::support::arena::{Arena, Difference, MARGIN, fail};
use cachewise_kernels::kernel::CompareFn;
use cachewise_kernels::{Function, Kernel, Operation};
use std::cmp::Ordering;

/// Pairs of bytes in unsigned order that other orders get wrong: by sign (0x7f, 0x80), by the
/// difference of the two as a byte (0, 0xff), by one bit.
const PAIRS: [(u8, u8); 6] =
    [(0x7f, 0x80), (0, 0xff), (0, 1), (0xfe, 0xff), (0x40, 0xc0), (0x0f, 0x10)];

/// Check of a comparison's result for two bytes that differ.
type Judge = fn(i32, Ordering) -> bool;

#[test]
fn every_compare_kernel_orders() {
    each_kernel(Operation::Compare, |kernel, arena, effort| {
        let Function::Compare(f) = kernel.function else { unreachable!("it is compare") };
        compares(kernel, f, arena, effort, |returned, order| returned.cmp(&0) == order)
    });
}

#[test]
fn every_equal_kernel_tells_equality() {
    each_kernel(Operation::Equal, |kernel, arena, effort| {
        let Function::Equal(f) = kernel.function else { unreachable!("it is equal") };
        compares(kernel, f, arena, effort, |returned, order| {
            returned == i32::from(order == Ordering::Equal)
        })
    });
}

fn compares(
    kernel: &'static Kernel,
    f: CompareFn,
    arena: &mut Arena,
    effort: Effort,
    judge: Judge,
) -> Checked {
    let mut random = random_for(kernel);
    let mut trial = Trial { kernel, f, judge, turn: 0 };
    // Equal buffers whose surroundings differ, at all pairs of alignments.
    for n in lengths::core(effort) {
        for d in 0..ALIGNMENTS {
            for s in 0..ALIGNMENTS {
                let place = (MARGIN + d, MARGIN + s, n);
                arena.make_equal(place.0, place.1, n);
                trial.equal(arena, place)?;
                trial.differs(arena, place, random.usize(0..n))?;
                arena.compared(place.0, place.1, n)?;
            }
        }
    }
    // Every place of the first difference, at some pairs of alignments.
    for n in lengths::dense(effort) {
        for _ in 0..effort.pick(1, if n <= 160 { 6 } else { 1 }, 16) {
            let (d, s) = (random.usize(0..ALIGNMENTS), random.usize(0..ALIGNMENTS));
            let place = (MARGIN + d, MARGIN + s, n);
            arena.make_equal(place.0, place.1, n);
            trial.equal(arena, place)?;
            for at in (0..n).step_by(effort.pick(5, 1, 1)) {
                trial.differs(arena, place, at)?;
            }
            arena.compared(place.0, place.1, n)?;
        }
    }
    // Against the guard pages: equal, and different at both ends and somewhere between.
    let room = arena.room();
    for n in (0..=DENSE).chain(lengths::large(effort, &mut random)) {
        let (left, right) = (Edge::sample(&mut random), Edge::sample(&mut random));
        let pairs = if n <= DENSE { 4 } else { 2 };
        for d in right.into_iter().take(pairs) {
            for s in left.into_iter().take(pairs) {
                let place = (d.offset(room, n), s.offset(room, n), n);
                arena.make_equal(place.0, place.1, n);
                trial.equal(arena, place)?;
                if n > 0 {
                    for at in [0, n - 1, random.usize(0..n), random.usize(0..n)] {
                        trial.differs(arena, place, at)?;
                    }
                }
                arena.compared(place.0, place.1, n)?;
            }
        }
    }
    Ok(())
}

/// One kernel's calls.
struct Trial {
    kernel: &'static Kernel,
    f: CompareFn,
    judge: Judge,
    turn: usize,
}

impl Trial {
    fn equal(&mut self, arena: &mut Arena, place: (usize, usize, usize)) -> Checked {
        let returned = arena.compare(self.kernel, self.f, place, None)?;
        self.judged(returned, Ordering::Equal)
    }

    /// First difference at `at`, once with the left side smaller and once with it greater; what
    /// differs afterwards differs the other way round, so that only the first one is right.
    fn differs(&mut self, arena: &mut Arena, place: (usize, usize, usize), at: usize) -> Checked {
        self.turn += 1;
        let n = place.2;
        let (low, high) = PAIRS[self.turn % PAIRS.len()];
        // None, the next byte, the last byte, both; a little later within the same vector.
        let later = match self.turn % 5 {
            0 => [n, n],
            1 => [at + 1, n],
            2 => [n, (n - 1).max(at + 1)],
            3 => [at + 1, (n - 1).max(at + 2)],
            _ => [at + 7, at + 19],
        };
        for (bytes, order) in [((low, high), Ordering::Less), ((high, low), Ordering::Greater)] {
            let difference = Difference { at, bytes, later };
            let returned = arena.compare(self.kernel, self.f, place, Some(difference))?;
            self.judged(returned, order)?;
        }
        Ok(())
    }

    #[inline]
    fn judged(&self, returned: i32, order: Ordering) -> Checked {
        if (self.judge)(returned, order) {
            Ok(())
        } else {
            fail(&format!("it returned {returned} where left is {order:?} to right"))
        }
    }
}
