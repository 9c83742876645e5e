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

/// The libc function whose calls an operation stands for.
pub(super) fn function(operation: Operation) -> &'static str {
    match operation {
        Operation::Copy | Operation::CopyPages => "memcpy",
        Operation::Move => "memmove",
        Operation::Fill | Operation::Zero | Operation::ZeroPages => "memset",
        Operation::Compare => "memcmp",
        Operation::Equal => "bcmp",
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
            let known = Distribution::built_in(function(operation)).expect("built in");
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
