//! Small calls as programs make them: sizes, places and overlaps drawn for every sample, so that what
//! is timed holds the mispredicted branches that one size over and over hides.

use crate::distributions::Distribution;
use cachewise_kernels::Operation;
use fastrand::Rng;

/// Calls in a sample: some ten microseconds, whose ends do not count.
pub(super) const CALLS: usize = 512;

/// One call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub to: usize,
    pub from: usize,
    pub n: usize,
    /// Whether `from` is a place in the destination's span.
    pub overlaps: bool,
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
pub(super) fn plain() -> Distribution {
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

/// Draws the calls of one sample in a span. Compared operands are at one place in both buffers, where
/// they are equal, or at any two (`unequal`).
pub(super) fn draw(
    distribution: &Distribution,
    operation: Operation,
    span: usize,
    unequal: bool,
    random: &mut Rng,
) -> Vec<Step> {
    let compares = matches!(operation, Operation::Compare | Operation::Equal);
    (0..CALLS)
        .map(|_| {
            let n = distribution.size(random).min(span / 2);
            let to = distribution.place(n, span, random);
            let overlaps = operation == Operation::Move && n > 0 && distribution.overlaps(random);
            let from = if overlaps {
                let distance = random.usize(1..=n);
                if random.bool() {
                    to.saturating_sub(distance)
                } else {
                    (to + distance).min(span - n)
                }
            } else if compares && !unequal {
                to
            } else {
                distribution.place(n, span, random)
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
                let mut random = Rng::with_seed(7);
                let steps = draw(&known, operation, span, true, &mut random);
                assert_eq!(steps.len(), CALLS);
                assert!(steps.iter().all(|s| s.to + s.n <= span && s.from + s.n <= span));
                let equal = draw(&known, operation, span, false, &mut random);
                let compares = matches!(operation, Operation::Compare | Operation::Equal);
                assert!(!compares || equal.iter().all(|step| step.to == step.from));
            }
        }
    }
}
