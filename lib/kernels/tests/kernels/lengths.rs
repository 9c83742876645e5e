//! The lengths, alignments and places that the sweeps visit.

use crate::runner::Effort;
use fastrand::Rng;

/// Every length up to here is visited at every alignment of the destination.
pub const DENSE: usize = 1024;

/// Alignments are taken modulo one cache line.
pub const ALIGNMENTS: usize = 64;

/// Up to here every length is visited at all 64 x 64 pairs of alignments: two cache lines.
const ALL_PAIRS: usize = 128;

/// Longer lengths visited at all pairs of alignments: around the multiples of a register, of a
/// cache line and of the unrolled steps the kernels take (64 to 512 bytes).
const CORE: &[usize] = &[
    129, 191, 192, 193, 255, 256, 257, 319, 320, 321, 383, 384, 385, 511, 512, 513, 575, 639, 640,
    704, 767, 768, 895, 960, 1023, 1024,
];

/// The lengths that are visited at all pairs of alignments.
pub fn core(effort: Effort) -> Box<dyn Iterator<Item = usize>> {
    match effort {
        Effort::Small => Box::new([1, 17, 64, 129, 257].into_iter()),
        Effort::Normal => Box::new((1..=ALL_PAIRS).chain(CORE.iter().copied())),
        Effort::Thorough => Box::new(1..=DENSE),
    }
}

/// The lengths that are visited at sampled pairs of alignments.
pub fn dense(effort: Effort) -> impl Iterator<Item = usize> {
    // 7 is prime to every power of two, so that a sample still meets all remainders.
    (0..=DENSE).step_by(effort.pick(7, 1, 1))
}

/// The source alignments that go with one destination alignment at one length: the same one, as
/// many fast paths want, and random ones.
pub fn partners(random: &mut Rng, alignment: usize) -> [usize; 3] {
    [alignment, random.usize(0..ALIGNMENTS), random.usize(0..ALIGNMENTS)]
}

/// Longer lengths: one step around the powers of two where kernels switch method and around the
/// block sizes they work in, then random ones, as many of each magnitude.
pub fn large(effort: Effort, random: &mut Rng) -> Vec<usize> {
    let longest = effort.longest();
    let mut lengths = Vec::new();
    for exponent in 11..=effort.pick(13, 17, 20) {
        lengths.extend([(1 << exponent) - 1, 1 << exponent, (1 << exponent) + 1]);
    }
    // Chunks of the period's kernels: 2048 at least, 3840 at most, 320 bytes ahead (seed 000.5,
    // 002.6, 002.7); blocks of 512 B to 64 KiB touched before they are copied (seed 002.8).
    for step in [320, 1280, 1920, 2048, 3840, 4096, 8192] {
        lengths.extend([step - 1, step, step + 1, 3 * step + 65, 2 * step - 1]);
    }
    let span = (longest as f64 / DENSE as f64).ln();
    for _ in 0..effort.pick(12, 48, 400) {
        lengths.push((DENSE as f64 * (random.f64() * span).exp()) as usize);
    }
    lengths.push(longest - 1);
    lengths.retain(|&n| n <= longest);
    lengths
}

/// Position of a buffer of n bytes in its guarded room.
#[derive(Clone, Copy, Debug)]
pub enum Edge {
    /// This many bytes after the guard page before it.
    Start(usize),
    /// Ends this many bytes before the guard page after it.
    End(usize),
}

impl Edge {
    pub fn offset(self, room: usize, n: usize) -> usize {
        match self {
            Edge::Start(gap) => gap,
            Edge::End(gap) => room - n - gap,
        }
    }

    /// Both edges exactly, and both at a random small distance.
    pub fn sample(random: &mut Rng) -> [Edge; 4] {
        let mut gap = || random.usize(1..ALIGNMENTS);
        [Edge::End(0), Edge::Start(0), Edge::End(gap()), Edge::Start(gap())]
    }
}
