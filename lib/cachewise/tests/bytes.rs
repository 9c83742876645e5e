//! Every operation with every hint against its naive meaning: exhaustive small sizes, alignments
//! and overlaps, and sizes on both sides of every boundary that the computed defaults have.

use cachewise::{Reuse, raw};
use std::{cmp::Ordering, iter};

const OFFSETS: [usize; 6] = [0, 1, 3, 8, 15, 17];
const PAD: usize = 64;

fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..length).map(|_| random.u8(..)).collect()
}

type Copy = Box<dyn Fn(*mut u8, *const u8, usize) -> *mut u8>;

/// Plain, then with each hint.
fn ways(
    plain: unsafe extern "C" fn(*mut u8, *const u8, usize) -> *mut u8,
    hinted: unsafe fn(Reuse, *mut u8, *const u8, usize) -> *mut u8,
) -> impl Iterator<Item = (&'static str, Copy)> {
    // SAFETY: the tests pass pointers into one buffer that is longer than the offsets and sizes they use.
    let plain: Copy = Box::new(move |dst, src, n| unsafe { plain(dst, src, n) });
    let hinted = Reuse::ALL.into_iter().map(move |reuse| -> (_, Copy) {
        // SAFETY: see above.
        (reuse.name(), Box::new(move |dst, src, n| unsafe { hinted(reuse, dst, src, n) }))
    });
    iter::once(("plain", plain)).chain(hinted)
}

/// Copies inside one buffer and compares all of it with what it must be.
fn check_copy(name: &str, copy: &Copy, before: &[u8], to: usize, from: usize, n: usize) {
    let mut expected = before.to_vec();
    expected.copy_within(from..from + n, to);
    let mut buffer = before.to_vec();
    let start = buffer.as_mut_ptr();
    let (dst, src) = (start.wrapping_add(to), start.wrapping_add(from));
    assert_eq!(copy(dst, src, n), dst, "{name} returns dst");
    assert!(buffer == expected, "{name}: {n} bytes from {from} to {to}");
}

#[test]
fn copy_exhaustively() {
    let before = noise(2 * (600 + 2 * PAD), 1);
    let half = before.len() / 2;
    for (name, copy) in ways(raw::copy_nonoverlapping, raw::copy_nonoverlapping_with) {
        for n in 0..=600 {
            for to in OFFSETS {
                for from in OFFSETS {
                    check_copy(name, &copy, &before, to + 1, half + from, n);
                }
            }
        }
    }
}

#[test]
fn move_exhaustively() {
    let before = noise(600 + 2 * 300, 2);
    for (name, r#move) in ways(raw::copy, raw::copy_with) {
        for n in (0..=300).chain(351..=354).chain([384, 385, 511, 512, 513, 545, 600]) {
            for distance in [1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129, 255, 299] {
                check_copy(name, &r#move, &before, 300 - distance, 300, n);
                check_copy(name, &r#move, &before, 300, 300 - distance, n);
            }
            check_copy(name, &r#move, &before, 300, 300, n);
        }
    }
}

#[test]
fn fill_and_zero_exhaustively() {
    type Fill = Box<dyn Fn(*mut u8, u8, usize) -> *mut u8>;
    let mut all: Vec<(&str, Fill)> = vec![(
        "plain",
        // SAFETY: see `ways`.
        Box::new(|dst, byte, n| unsafe { raw::fill(dst, i32::from(byte) | 0x5500, n) }),
    )];
    for reuse in Reuse::ALL {
        all.push((
            reuse.name(),
            // SAFETY: see `ways`.
            Box::new(move |dst, byte, n| unsafe {
                raw::fill_with(reuse, dst, i32::from(byte) - 256, n)
            }),
        ));
    }
    // SAFETY: see `ways`.
    all.push(("zero", Box::new(|dst, _, n| unsafe { raw::zero(dst, n) })));
    for reuse in Reuse::ALL {
        // SAFETY: see `ways`.
        all.push(("zero", Box::new(move |dst, _, n| unsafe { raw::zero_with(reuse, dst, n) })));
    }
    let before = noise(600 + 2 * PAD, 3);
    for (name, fill) in all {
        for n in 0..=600 {
            for offset in OFFSETS {
                for byte in [0, 0xA5, 0xFF] {
                    let mut expected = before.clone();
                    let stored = if name == "zero" { 0 } else { byte };
                    expected[offset + 1..][..n].fill(stored);
                    let mut buffer = before.clone();
                    let dst = buffer.as_mut_ptr().wrapping_add(offset + 1);
                    assert_eq!(fill(dst, byte, n), dst, "{name} returns dst");
                    assert!(buffer == expected, "{name}: {n} bytes of {byte} at {offset}");
                }
            }
        }
    }
}

#[test]
fn compare_and_equal_exhaustively() {
    let left = noise(600 + PAD, 4);
    for n in 0..=600 {
        for (a, b) in [(0, 0), (1, 8), (15, 3)] {
            let left = &left[a..];
            let mut right = vec![0; b + n + 1];
            let right = &mut right[b..];
            right[..n].copy_from_slice(&left[..n]);
            // Bytes behind it must not matter.
            right[n] = !left[n];
            assert_eq!(cachewise::compare(&left[..n], &right[..n]), Ordering::Equal);
            assert!(cachewise::equal(&left[..n], &right[..n]));
            for at in (0..n).step_by(if a == 0 { 1 } else { 7 }) {
                // A later difference the other way must not matter either.
                right[n - 1] = !left[n - 1];
                right[at] = left[at] ^ 0x80;
                let (x, y) = (&left[..n], &right[..n]);
                assert_eq!(cachewise::compare(x, y), x.cmp(y), "{n} bytes, {at} differs");
                assert_eq!(cachewise::compare(y, x), y.cmp(x), "{n} bytes, {at} differs");
                assert!(!cachewise::equal(x, y), "{n} bytes, {at} differs");
                (right[at], right[n - 1]) = (left[at], left[n - 1]);
                right[at] = left[at] ^ 1;
                assert!(!cachewise::equal(&left[..n], &right[..n]), "{n} bytes, only {at}");
                right[at] = left[at];
            }
        }
    }
}

#[test]
fn large_sizes_on_both_sides_of_every_crossover() {
    let caches = cachewise::cpu::Caches::detect();
    let mut sizes = vec![1000, 4095, 4096, 4097, 65_536, 1_000_003];
    for crossover in [caches.l2, caches.llc / 4 * 3, caches.llc] {
        let crossover = crossover.min(48 << 20) as usize;
        sizes.extend([crossover - 13, crossover, crossover + crossover / 4 + 5]);
    }
    for n in sizes {
        let source = noise(n, n as u64);
        for reuse in Reuse::ALL {
            let mut destination = vec![0x11; n + 2];
            cachewise::copy_with(reuse, &mut destination[1..=n], &source);
            assert!(cachewise::equal(&destination[1..=n], &source), "copy {n} {reuse}");
            assert!(destination[1..=n] == source[..], "copy {n} {reuse}");
            assert_eq!((destination[0], destination[n + 1]), (0x11, 0x11));

            cachewise::copy_within_with(reuse, &mut destination, 1..=n, 0);
            assert!(destination[..n] == source[..], "move {n} {reuse}");
            cachewise::copy_within_with(reuse, &mut destination, ..n, 2);
            assert!(destination[2..] == source[..], "move {n} {reuse}");

            destination[n + 1] = 0x22;
            cachewise::fill_with(reuse, &mut destination[1..=n], 0x77);
            assert!(destination[1..=n].iter().all(|byte| *byte == 0x77), "fill {n} {reuse}");
            cachewise::zero_with(reuse, &mut destination[1..=n]);
            assert!(destination[1..=n].iter().all(|byte| *byte == 0), "zero {n} {reuse}");
            assert_eq!(destination[n + 1], 0x22, "{n} {reuse}");
        }
    }
}

#[test]
fn what_slices_refuse() {
    let refused = |call: fn()| std::panic::catch_unwind(call).is_err();
    assert!(refused(|| cachewise::copy(&mut [0; 3], &[0; 4])));
    assert!(refused(|| cachewise::copy_with(Reuse::Soon, &mut [0; 3], &[0; 2])));
    assert!(refused(|| cachewise::copy_within(&mut [0; 3], 1..4, 0)));
    assert!(refused(|| cachewise::copy_within(&mut [0; 3], 1.., 2)));
    assert!(refused(|| cachewise::copy_within(&mut [0; 3], ..=usize::MAX, 0)));
    let backwards = (std::ops::Bound::Included(2), std::ops::Bound::Excluded(1));
    assert!(
        std::panic::catch_unwind(|| cachewise::copy_within(&mut [0; 3], backwards, 0)).is_err()
    );
    let mut buffer = [1, 2, 3];
    cachewise::copy_within(&mut buffer, 3.., 3);
    cachewise::copy(&mut [], &[]);
    assert_eq!(buffer, [1, 2, 3]);
    assert_eq!(cachewise::compare(b"", b""), Ordering::Equal);
    assert_eq!(cachewise::compare(b"", b"a"), Ordering::Less);
}
