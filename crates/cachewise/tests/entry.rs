//! The way in, in each of its states: before the table is filled (SSE2 blocks only), with the plain
//! loop written out (AVX2), with a profile that takes it back, without AVX2, and as
//! under a checker of memory. Every length to 1200 at either
//! edge of pages that must not be left, every alignment to a line, overlaps in both directions.
//!
//! One test, because the states are the process's and come in this order.

#![cfg(feature = "std")]

use cachewise::cpu::{Caches, Cpu};
use cachewise::profile::{Decision, MAX_SIZE, Profile};
use cachewise::{Reuse, raw};
use cachewise_kernels::Operation;

const PAGE: usize = 4096;
/// Longer than every class, and two steps of the loop.
const LONGEST: usize = 1200;

/// Two pages between two that may not be touched.
struct Fenced(*mut u8);

impl Fenced {
    fn new() -> Fenced {
        // SAFETY: a new mapping.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4 * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(start, libc::MAP_FAILED);
        let inside = start.cast::<u8>().wrapping_add(PAGE);
        // SAFETY: inside the mapping.
        let changed =
            unsafe { libc::mprotect(inside.cast(), 2 * PAGE, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(changed, 0);
        Fenced(inside)
    }

    fn all(&mut self) -> &mut [u8] {
        // SAFETY: two mapped pages that nobody else uses.
        unsafe { std::slice::from_raw_parts_mut(self.0, 2 * PAGE) }
    }
}

fn noise(into: &mut [u8], seed: u64) {
    fastrand::Rng::with_seed(seed).fill(into);
}

struct Buffers {
    dst: Fenced,
    src: Fenced,
    clean: Vec<u8>,
    /// Longest comparison: one of a single byte fills the table.
    longest_comparison: usize,
}

impl Buffers {
    fn new() -> Buffers {
        let mut buffers = Buffers {
            dst: Fenced::new(),
            src: Fenced::new(),
            clean: vec![0; 2 * PAGE],
            longest_comparison: 0,
        };
        noise(&mut buffers.clean, 1);
        noise(buffers.src.all(), 2);
        buffers.dst.all().copy_from_slice(&buffers.clean);
        buffers
    }

    /// What is done to `dst[to..to + n]` must leave `expected` there and touch nothing around.
    fn check(&mut self, to: usize, expected: &[u8], what: &str, work: impl Fn(*mut u8) -> *mut u8) {
        let n = expected.len();
        let place = self.dst.0.wrapping_add(to);
        assert_eq!(work(place), place, "{what} returns dst");
        let all = self.dst.all();
        assert!(all[to..to + n] == *expected, "{what}: {n} bytes at {to}");
        let (low, high) = (to.saturating_sub(300), (to + n + 300).min(2 * PAGE));
        assert!(all[low..to] == self.clean[low..to], "{what}: before {n} bytes at {to}");
        assert!(all[to + n..high] == self.clean[to + n..high], "{what}: after {n} bytes at {to}");
        all[to..to + n].copy_from_slice(&self.clean[to..to + n]);
    }

    fn one(&mut self, to: usize, from: usize, n: usize) {
        let source = self.src.all()[from..from + n].to_vec();
        let src = self.src.0.wrapping_add(from).cast_const();
        // SAFETY: n bytes are mapped at both places, which lie apart.
        self.check(to, &source, "copy", |dst| unsafe { raw::copy_nonoverlapping(dst, src, n) });
        // SAFETY: as above.
        self.check(to, &source, "move", |dst| unsafe { raw::copy(dst, src, n) });
        // SAFETY: as above.
        self.check(to, &vec![0xA5; n], "fill", |dst| unsafe { raw::fill(dst, 0x1A5, n) });
        // SAFETY: as above.
        self.check(to, &vec![0; n], "zero", |dst| unsafe { raw::zero(dst, n) });
        if n <= self.longest_comparison {
            self.compare(to, from, n);
        }
    }

    /// Every place of a difference, with a later one of the other sign, where the buffers end at
    /// pages that must not be read.
    fn compare_everywhere(&mut self, longest: usize) {
        for n in 1..=longest.min(self.longest_comparison) {
            let edge = 2 * PAGE - n;
            let source = self.src.all()[edge..].to_vec();
            self.dst.all()[edge..].copy_from_slice(&source);
            let (a, b) = (self.dst.0.wrapping_add(edge), self.src.0.wrapping_add(edge));
            for at in 0..n {
                let place = &mut self.dst.all()[edge + at];
                *place ^= 0x40;
                let sign = if *place > source[at] { 1 } else { -1 };
                if at + 1 < n {
                    let last = &mut self.dst.all()[2 * PAGE - 1];
                    *last = if sign > 0 { source[n - 1].saturating_sub(1) } else { 255 };
                }
                // SAFETY: n bytes are mapped at both places.
                let order = unsafe { raw::compare(a, b, n) };
                assert_eq!(order.signum(), sign, "{n} bytes, {at} differs");
                // SAFETY: as above.
                assert_eq!(unsafe { raw::equal_int(a, b, n) }, 0, "{n} bytes, {at} differs");
                self.dst.all()[edge + at] = source[at];
                self.dst.all()[2 * PAGE - 1] = source[n - 1];
            }
        }
        let clean = self.clean.clone();
        self.dst.all().copy_from_slice(&clean);
    }

    fn compare(&mut self, to: usize, from: usize, n: usize) {
        let source = self.src.all()[from..from + n].to_vec();
        self.dst.all()[to..to + n].copy_from_slice(&source);
        let a = self.dst.0.wrapping_add(to);
        let b = self.src.0.wrapping_add(from);
        let both = || {
            // SAFETY: n bytes are mapped at both places.
            let order = unsafe { raw::compare(a, b, n) };
            // SAFETY: as above.
            (order.signum(), unsafe { raw::equal_int(a, b, n) })
        };
        assert_eq!(both(), (0, 1), "compare {n} at {to}, {from}");
        for at in [0, n / 3, n / 2, n.saturating_sub(33), n.saturating_sub(1)] {
            if at < n {
                self.dst.all()[to + at] ^= 0x80;
                let sign = if self.dst.all()[to + at] > source[at] { 1 } else { -1 };
                assert_eq!(both(), (sign, 0), "compare {n} at {to}, {from}: {at} differs");
                self.dst.all()[to + at] ^= 0x80;
            }
        }
        self.dst.all()[to..to + n].copy_from_slice(&self.clean[to..to + n]);
    }

    fn overlapping(&mut self, n: usize, distance: usize) {
        let low = 700;
        for (to, from) in [(low, low + distance), (low + distance, low)] {
            let mut expected = self.clean.clone();
            expected.copy_within(from..from + n, to);
            let (dst, src) = (self.dst.0.wrapping_add(to), self.dst.0.wrapping_add(from));
            // SAFETY: both places are mapped for n bytes.
            assert_eq!(unsafe { raw::copy(dst, src, n) }, dst);
            assert!(self.dst.all() == expected, "move {n} bytes from {from} to {to}");
            self.dst.all().copy_from_slice(&self.clean);
        }
    }

    fn everything(&mut self, longest: usize) {
        self.compare_everywhere(longest.min(700));
        if longest == LONGEST {
            alike_in_the_low_bits();
        }
        for n in 0..=longest {
            // The start of both, the end of both, and against each other.
            for (to, from) in [(0, 0), (2 * PAGE - n, 2 * PAGE - n), (0, 2 * PAGE - n)] {
                self.one(to, from, n);
            }
            let (to, from) = (PAGE - 7 - n / 2, PAGE - 100 + n % 64);
            self.one(to, from, n);
        }
        let sizes = [1, 3, 15, 16, 64, 65, 128, 129, 256, 257, 300, 352, 353, 384, 385, 512, 513];
        for n in sizes.into_iter().chain([768, LONGEST]).filter(|n| *n <= longest) {
            for to in 0..64 {
                self.one(600 + to, 900 + (to * 7 + n) % 64, n);
            }
            for distance in [1, 2, 8, 16, 31, 32, 33, 64, 100, 127, 128, 129, 255, 300, 600] {
                self.overlapping(n, distance);
            }
        }
    }
}

/// Distances of a multiple of 4096 and a little more or less, overlapping and apart: where a loop goes
/// downwards although it would not have to, and where it must not.
fn alike_in_the_low_bits() {
    const BYTES: usize = 40 << 10;
    const START: usize = 1001;
    let mut clean = vec![0; BYTES];
    noise(&mut clean, 9);
    let mut buffer = clean.clone();
    for n in [385, 386, 500, 1024, 4000, 4096, 4500, 9000, 20_000] {
        for pages in 0..=2 {
            for more in
                [0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 129, 255, 256, 257, 300, 3800, 4000, 4095]
            {
                let distance = pages * PAGE + more;
                for (to, from) in [(START, START + distance), (START + distance, START)] {
                    let start = buffer.as_mut_ptr();
                    let (dst, src) = (start.wrapping_add(to), start.wrapping_add(from));
                    // SAFETY: both places are inside the buffer for n bytes.
                    assert_eq!(unsafe { raw::copy(dst, src, n) }, dst);
                    let mut expected = clean.clone();
                    expected.copy_within(from..from + n, to);
                    assert!(buffer == expected, "move {n} bytes from {from} to {to}");
                    buffer.copy_from_slice(&clean);
                    if distance >= n {
                        let start = buffer.as_mut_ptr();
                        let (dst, src) = (start.wrapping_add(to), start.wrapping_add(from));
                        // SAFETY: as above, and they do not overlap.
                        assert_eq!(unsafe { raw::copy_nonoverlapping(dst, src, n) }, dst);
                        assert!(buffer == expected, "copy {n} bytes from {from} to {to}");
                        buffer.copy_from_slice(&clean);
                    }
                }
            }
        }
    }
}

#[test]
fn every_state_of_the_way_in() {
    let mut buffers = Buffers::new();
    // No call of this process has filled the table yet, and up to here none does.
    buffers.everything(128);
    #[cfg(target_arch = "x86_64")]
    assert_eq!(written_out::longest(), 0, "the table is not filled");

    // The first comparison of a byte does.
    buffers.longest_comparison = LONGEST;
    buffers.everything(LONGEST);
    assert_eq!(cachewise::decision(Operation::Copy, Reuse::Unknown, 1).from, 0);

    // A profile that wants something else from 256 bytes on, and one that does from 640 on.
    let plain = if wide() { "avx" } else { "bytes" };
    let other = if cfg!(target_arch = "x86_64") { "gpr64" } else { "bytes" };
    for (first, then, crossover) in [("bytes", "bytes", 512), (plain, other, 640)] {
        cachewise::load(&profile(first, then, crossover)).expect("a profile for this CPU");
        let decided = cachewise::decision(Operation::Copy, Reuse::Unknown, crossover);
        assert_eq!(decided.name(), format!("copy.{then}"));
        buffers.everything(LONGEST);
    }

    #[cfg(target_arch = "x86_64")]
    {
        written_out::forbid_avx2();
        buffers.everything(LONGEST);
        written_out::forbid_reading_on();
        buffers.everything(64);
    }
}

#[cfg(target_arch = "x86_64")]
mod written_out {
    use cachewise::entry::{
        COMPARE_ROW, COPY_ROW, DIRECT, EQUAL_ROW, FILL_ROW, MOVE_ROW, PAGE, ZERO_ROW,
    };
    use std::sync::atomic::Ordering::Relaxed;

    const ROWS: [usize; 6] = [COPY_ROW, MOVE_ROW, FILL_ROW, ZERO_ROW, COMPARE_ROW, EQUAL_ROW];

    /// The longest call that is done without the table by any operation.
    pub fn longest() -> usize {
        ROWS.into_iter().map(|row| DIRECT[row].load(Relaxed)).max().unwrap_or(0)
    }

    /// As on a CPU without it, the table being filled.
    pub fn forbid_avx2() {
        ROWS.into_iter().for_each(|row| DIRECT[row].store(0, Relaxed));
        PAGE.store(4097, Relaxed);
    }

    /// As under Valgrind.
    pub fn forbid_reading_on() {
        PAGE.store(u32::MAX - 1, Relaxed);
    }
}

#[cfg(target_arch = "x86_64")]
fn wide() -> bool {
    cachewise_kernels::Features::detect().contains(cachewise_kernels::direct::REQUIRES)
}

#[cfg(not(target_arch = "x86_64"))]
fn wide() -> bool {
    false
}

fn profile(first: &str, then: &str, crossover: u64) -> Profile {
    let mut decisions = Vec::new();
    for operation in [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero] {
        let kernel = |technique: &str| format!("{operation}.{technique}");
        for (from, to, technique) in [(256, crossover - 1, first), (crossover, MAX_SIZE, then)] {
            let kernel = kernel(technique);
            decisions.push(Decision {
                operation,
                reuse: Reuse::Unknown,
                from,
                to,
                kernel,
                nearest: None,
            });
        }
    }
    Profile {
        cpu: Cpu::detect(),
        caches: Caches::detect(),
        record: None,
        written: "2026-11-21T09:00:00Z by a test".into(),
        decisions,
        parallel: vec![],
        notes: vec![],
    }
}
