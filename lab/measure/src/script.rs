//! Small calls as programs make them: sizes, places and overlaps from a distribution, drawn anew for
//! every sample. A CPU that remembers the calls of the last one, as Zen 5 does 8,192 of them, knows
//! nothing of the next: what is timed holds the mispredicted branches that repetition hides, whatever
//! the CPU.

use crate::Place;
use crate::distributions::Distribution;
use cachewise_kernels::Operation;
use fastrand::Rng;

/// Calls in a script, at most: some microseconds.
pub const CALLS: usize = 512;

/// Name of the state in which a result is used before the next call begins.
///
/// Programs load from what they wrote, and branch on what they compared.
pub fn at_once(operation: Operation) -> &'static str {
    match operation {
        Operation::Compare | Operation::Equal => "branched on at once",
        _ => "read at once",
    }
}

/// From this mean size on a script has fewer calls: one takes longer than any misprediction.
const LARGE: usize = 4096;

/// One call of a script.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    to: usize,
    from: usize,
    n: usize,
    /// True where `from` is a place in the destination's span.
    overlaps: bool,
}

impl Step {
    /// The call in buffers that start there.
    pub fn at(&self, dst: *mut u8, src: *const u8) -> Place {
        let base = if self.overlaps { dst.cast_const() } else { src };
        Place { dst: dst.wrapping_add(self.to), src: base.wrapping_add(self.from), n: self.n }
    }
}

/// The number of calls in a script of a distribution.
pub fn calls(distribution: &Distribution) -> usize {
    (CALLS * LARGE / distribution.mean().max(1)).clamp(1, CALLS)
}

/// Ranges of sizes, and how many of a hundred calls are in each; within one all are equally likely.
///
/// A plain mixture, no program's own: every entry's classes of small sizes are met, and most calls are
/// shorter than a line, as every published count of calls has it (Chen et al., "automemcpy", ISMM
/// 2021; glibc's `bench-memcpy-random`). One program's counts are better: `--distribution FILE`.
const PLAIN: [(std::ops::RangeInclusive<usize>, f64); 7] = [
    (0..=3, 10.0),
    (4..=15, 35.0),
    (16..=31, 20.0),
    (32..=64, 16.0),
    (65..=128, 10.0),
    (129..=256, 6.0),
    (257..=1024, 3.0),
];

/// That mixture. A quarter of the places are odd (text), a quarter are words', half are as allocators
/// give them out; a move overlaps in one call of ten.
pub fn plain() -> Distribution {
    let sizes = PLAIN.into_iter().flat_map(|(sizes, calls)| {
        let each = calls / sizes.clone().count() as f64;
        sizes.map(move |size| (size, each))
    });
    Distribution {
        name: "plain".to_owned(),
        sizes: sizes.collect(),
        overlapping: 0.1,
        alignments: vec![(1, 0.25), (8, 0.25), (16, 0.5)],
    }
}

/// Draws so many calls in a span below 4 GiB: what they are, and at which `places`. Compared operands are
/// at one place in both buffers, where they are equal, or at any two (`unequal`).
pub fn draw(
    distribution: &Distribution,
    calls: usize,
    operation: Operation,
    span: usize,
    unequal: bool,
    random: &mut Rng,
    places: &mut Rng,
) -> Vec<Step> {
    let compares = matches!(operation, Operation::Compare | Operation::Equal);
    (0..calls)
        .map(|_| {
            let n = distribution.size(random).min(span / 2);
            let to = distribution.place(n, span, places);
            let overlaps = operation == Operation::Move && n > 0 && distribution.overlaps(random);
            let from = if overlaps {
                // Starts inside the destination or ends there.
                let distance = random.usize(1..=n);
                if random.bool() {
                    to.saturating_sub(distance)
                } else {
                    (to + distance).min(span - n)
                }
            } else if compares && !unequal {
                to
            } else {
                distribution.place(n, span, places)
            };
            Step { to, from, n, overlaps }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_stays_inside_its_span() {
        for operation in cachewise::profile::OPERATIONS {
            let known = plain();
            for span in [4096, 16 << 10, 1 << 20] {
                let (mut random, mut places) = (Rng::with_seed(7), Rng::with_seed(8));
                let mut drawn = |unequal| {
                    draw(&known, CALLS, operation, span, unequal, &mut random, &mut places)
                };
                let steps = drawn(true);
                let inside = |at: usize, n: usize| at + n <= span;
                assert!(steps.iter().all(|s| inside(s.to, s.n) && inside(s.from, s.n)));
                let equal = drawn(false);
                let compares = matches!(operation, Operation::Compare | Operation::Equal);
                assert!(!compares || equal.iter().all(|step| step.to == step.from));
            }
        }
    }

    /// Else the second to make them would find the lines of the first in cache, whatever the span.
    #[test]
    fn the_same_calls_can_be_made_at_other_places() {
        let known = plain();
        let drawn = |seed| {
            let (mut random, mut places) = (Rng::with_seed(7), Rng::with_seed(seed));
            draw(&known, CALLS, Operation::Move, 64 << 20, false, &mut random, &mut places)
        };
        let (ours, theirs) = (drawn(1), drawn(2));
        let same = |what: fn(&Step) -> usize| {
            ours.iter().zip(&theirs).filter(|(a, b)| what(a) == what(b)).count()
        };
        assert_eq!(same(|step| step.n), CALLS);
        assert_eq!(same(|step| usize::from(step.overlaps)), CALLS);
        assert!(same(|step| step.to / 4096) < CALLS / 100);
    }

    #[test]
    fn large_calls_are_few() {
        let of = |size| Distribution { sizes: vec![(size, 1.0)], ..plain() };
        assert_eq!(calls(&plain()), CALLS);
        assert_eq!([4096, 8192, 1 << 30].map(|size| calls(&of(size))), [CALLS, CALLS / 2, 1]);
    }
}
