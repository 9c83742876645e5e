//! Every kernel over lengths, alignments, page edges, overlaps, values and first differences.

use crate::runner::{Effort, each_kernel, random_for};
use crate::support::Checked;
use crate::support::arena::{Arena, Call, MARGIN};
use crate::support::cases::{Edge, Place};
use cachewise_kernels::{Kernel, Operation, PAGE_SIZE};
use fastrand::Rng;

/// Every length up to here is visited at every alignment of the destination.
const DENSE: usize = 1024;

/// Alignments are taken modulo one cache line.
const ALIGNMENTS: usize = 64;

/// Up to here every length is visited at all 64 x 64 pairs of alignments: two cache lines.
const ALL_PAIRS: usize = 128;

/// Longer lengths visited at all pairs of alignments: around the multiples of a register, of a
/// cache line and of the unrolled steps the kernels take (64 to 512 bytes).
const CORE: [usize; 26] = [
    129, 191, 192, 193, 255, 256, 257, 319, 320, 321, 383, 384, 385, 511, 512, 513, 575, 639, 640,
    704, 767, 768, 895, 960, 1023, 1024,
];

/// Values whose low byte is not the whole of them, beside ordinary ones.
const VALUES: [i32; 10] =
    [0, 0xff, 0xa5, 0x5a, 1, 0x80, 0x1a5, -1, i32::MIN | 0x7f, 0x7fff_ff00_u32 as i32];

/// Pairs of bytes in unsigned order that other orders get wrong: by sign (0x7f, 0x80), by the
/// difference of the two as a byte (0, 0xff), by one bit.
const PAIRS: [(u8, u8); 6] =
    [(0x7f, 0x80), (0, 0xff), (0, 1), (0xfe, 0xff), (0x40, 0xc0), (0x0f, 0x10)];

macro_rules! sweeps {
    ($($name:ident: $operation:ident;)*) => {$(
        #[test]
        fn $name() {
            each_kernel(Operation::$operation, |kernel, arena, effort| {
                Sweep { kernel, arena, effort, random: random_for(kernel), turn: 0 }.run()
            });
        }
    )*};
}

sweeps! {
    every_copy_kernel_copies: Copy;
    every_move_kernel_copies_and_moves: Move;
    every_fill_kernel_fills: Fill;
    every_zero_kernel_zeroes: Zero;
    every_compare_kernel_orders: Compare;
    every_equal_kernel_tells_equality: Equal;
    every_page_copy_kernel_copies: CopyPages;
    every_page_zero_kernel_zeroes: ZeroPages;
}

/// One kernel's calls.
struct Sweep<'a> {
    kernel: &'static Kernel,
    arena: &'a mut Arena,
    effort: Effort,
    random: Rng,
    turn: usize,
}

impl Sweep<'_> {
    fn run(&mut self) -> Checked {
        let effort = self.effort;
        let operation = self.kernel.operation();
        if matches!(operation, Operation::CopyPages | Operation::ZeroPages) {
            return self.pages();
        }
        let has_source = !matches!(operation, Operation::Fill | Operation::Zero);
        // Inside the room, surroundings checked: first all pairs of alignments at the core lengths ...
        let core: Vec<usize> = match effort {
            Effort::Small => vec![1, 17, 64, 129, 257],
            Effort::Normal => (1..=ALL_PAIRS).chain(CORE).collect(),
            Effort::Thorough => (1..=DENSE).collect(),
        };
        for n in core.into_iter().filter(|_| has_source) {
            for d in 0..ALIGNMENTS {
                for s in 0..ALIGNMENTS {
                    self.at(n, MARGIN + d, MARGIN + s)?;
                }
            }
        }
        // ... then all lengths at all destination alignments, with the same alignment of the source, as many fast paths
        // want, and random ones. 7 is prime to every power of two, so that a sample still meets all remainders.
        for n in (0..=DENSE).step_by(effort.pick(7, 1, 1)) {
            for d in (0..ALIGNMENTS).step_by(if has_source { effort.pick(5, 1, 1) } else { 1 }) {
                self.at(n, MARGIN + d, MARGIN + d)?;
                for _ in 0..if has_source { 2 } else { 0 } {
                    let s = self.random.usize(0..ALIGNMENTS);
                    self.at(n, MARGIN + d, MARGIN + s)?;
                }
            }
        }
        // Against the guard pages: short buffers at all pairs of edges; of long ones one, the exact ends always among them.
        let room = self.arena.room();
        for n in (0..=DENSE).chain(self.large()) {
            let (to, from) = (self.edges(), self.edges());
            let pairs = if n <= DENSE { 4 } else { 1 };
            for (at, d) in to.into_iter().enumerate() {
                let from = if n <= DENSE { &from[..pairs] } else { &from[at..=at] };
                for s in from.iter().take(if has_source { pairs } else { 1 }) {
                    self.at(n, d.offset(room, n, 1), s.offset(room, n, 1))?;
                }
            }
        }
        match operation {
            Operation::Move => self.moves(),
            Operation::Fill => self.values(),
            Operation::Compare | Operation::Equal => self.first_differences(),
            _ => Ok(()),
        }
    }

    /// One place: a call, and of a comparison of bytes one that differs as well.
    fn at(&mut self, n: usize, dst: usize, src: usize) -> Checked {
        self.turn += 1;
        let byte = VALUES[self.turn % VALUES.len()];
        self.arena.check(self.kernel, &Call { n, dst, src, byte, ..Call::default() })?;
        let compares = matches!(self.kernel.operation(), Operation::Compare | Operation::Equal);
        if !compares || n == 0 {
            return Ok(());
        }
        let at = self.random.usize(0..n);
        [0, n - 1, at].into_iter().try_for_each(|at| self.differs(n, dst, src, at))
    }

    /// First difference at `at`, once with the left side smaller and once with it greater; what
    /// differs afterwards differs the other way round, so that only the first one is right.
    fn differs(&mut self, n: usize, dst: usize, src: usize, at: usize) -> Checked {
        self.turn += 1;
        let (low, high) = PAIRS[self.turn % PAIRS.len()];
        // None, the next byte, the last byte, both; a little later within the same vector.
        let later = match self.turn % 5 {
            0 => [n, n],
            1 => [at + 1, n],
            2 => [n, (n - 1).max(at + 1)],
            3 => [at + 1, (n - 1).max(at + 2)],
            _ => [at + 7, at + 19],
        };
        for (left, right) in [(low, high), (high, low)] {
            let mut edits = vec![(at, left, right)];
            edits.extend(later.into_iter().filter(|at| *at < n).map(|at| (at, right, left)));
            let call = Call { n, dst, src, edits: &edits, ..Call::default() };
            self.arena.check(self.kernel, &call)?;
        }
        Ok(())
    }

    /// Every place of the first difference, at some pairs of alignments.
    fn first_differences(&mut self) -> Checked {
        for n in (0..=DENSE).step_by(self.effort.pick(7, 1, 1)) {
            for _ in 0..self.effort.pick(1, if n <= 160 { 6 } else { 1 }, 16) {
                let mut place = || MARGIN + self.random.usize(0..ALIGNMENTS);
                let (d, s) = (place(), place());
                for at in (0..n).step_by(self.effort.pick(5, 1, 1)) {
                    self.differs(n, d, s, at)?;
                }
            }
        }
        Ok(())
    }

    fn values(&mut self) -> Checked {
        for byte in 0..=255 {
            for n in [1, 3, 8, 17, 64, 200, 517] {
                let dst = MARGIN + (byte as usize + n) % ALIGNMENTS;
                self.arena.check(self.kernel, &Call { n, dst, byte, ..Call::default() })?;
            }
        }
        Ok(())
    }

    /// Within one buffer, overlapping by every distance.
    fn moves(&mut self) -> Checked {
        /// Two cache lines and a little: beyond, the distance exceeds every unrolled step's overlap.
        const NEAR: isize = 130;
        let inside = MARGIN + NEAR as usize;
        for n in (0..=600).step_by(self.effort.pick(5, 1, 1)) {
            for distance in -NEAR..=NEAR {
                let from = inside + self.random.usize(0..ALIGNMENTS);
                self.moved(n, from.strict_add_signed(distance), from)?;
            }
        }
        // Longer lengths, longer distances, and the region that both buffers cover against an edge.
        let room = self.arena.room();
        let short = (0..=DENSE).step_by(self.effort.pick(31, 3, 1));
        for n in short.chain(self.large()) {
            let near = self.random.usize(1..=256);
            let any = self.random.usize(1..=n.max(1));
            let distances = [1, near, any, 64, n / 2, n.saturating_sub(1), 4095, 4096, 4097];
            // The longest lengths take milliseconds a call: two distances each are enough there.
            let taken = if n > 256 << 10 { 2 } else { distances.len() };
            for distance in distances.into_iter().take(taken).filter(|far| n + far <= room) {
                for low in [room - n - distance, 0] {
                    self.moved(n, low + distance, low)?;
                    self.moved(n, low, low + distance)?;
                }
            }
        }
        Ok(())
    }

    fn moved(&mut self, n: usize, dst: usize, src: usize) -> Checked {
        self.arena.check(self.kernel, &Call { n, dst, src, within: true, ..Call::default() })
    }

    /// Orders 0 to 6, at the start, at the end, and one page away from each.
    fn pages(&mut self) -> Checked {
        for order in 0..self.effort.pick(4, 7, 7) {
            let (n, room) = (PAGE_SIZE << order, self.arena.room());
            // The room ends at a page of the system, which is a multiple of ours.
            let places = [0, PAGE_SIZE, room - n, room - n - PAGE_SIZE];
            for dst in places {
                for src in places {
                    self.arena.check(self.kernel, &Call { n, dst, src, ..Call::default() })?;
                }
            }
        }
        Ok(())
    }

    /// Both edges exactly, and both at a random small distance.
    fn edges(&mut self) -> [Place; 4] {
        let mut gap = || self.random.u8(1..ALIGNMENTS as u8);
        let place = |edge, shift| Place { edge, shift };
        let (end, start) = (gap(), gap());
        [(Edge::End, 0), (Edge::Start, 0), (Edge::End, end), (Edge::Start, start)]
            .map(|(edge, shift)| place(edge, shift))
    }

    /// Longer lengths: one step around the powers of two where kernels switch method and around the
    /// block sizes they work in, then random ones, as many of each magnitude.
    fn large(&mut self) -> Vec<usize> {
        let longest = self.effort.longest();
        let mut lengths = Vec::new();
        for exponent in 11..=self.effort.pick(13, 17, 20) {
            lengths.extend([(1 << exponent) - 1, 1 << exponent, (1 << exponent) + 1]);
        }
        // Chunks of the period's kernels: 2048 at least, 3840 at most, 320 bytes ahead (seed 000.5,
        // 002.6, 002.7); blocks of 512 B to 64 KiB touched before they are copied (seed 002.8).
        for step in [320, 1280, 1920, 2048, 3840, 4096, 8192] {
            lengths.extend([step - 1, step, step + 1, 3 * step + 65, 2 * step - 1]);
        }
        let span = (longest as f64 / DENSE as f64).ln();
        for _ in 0..self.effort.pick(12, 48, 400) {
            lengths.push((DENSE as f64 * (self.random.f64() * span).exp()) as usize);
        }
        lengths.push(longest - 1);
        lengths.retain(|&n| n <= longest);
        lengths
    }
}
