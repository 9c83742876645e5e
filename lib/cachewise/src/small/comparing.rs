//! Comparisons of at most 128 bytes, for targets whose entries are not written out. Blocks of
//! sixteen bytes are numbers here: their exclusive or is zero where they are equal.

use super::load;

/// Bytes of a block.
const WIDTH: usize = size_of::<u128>();

/// A bit for the first byte that differs, the first byte's lowest; later ones may be missing.
#[inline(always)]
fn differing(a: u128, b: u128) -> u64 {
    let difference = u128::from_le(a ^ b);
    if difference == 0 { 0 } else { 1 << (difference.trailing_zeros() / 8) }
}

/// `memcmp` of fewer than [`LIMIT`](super::LIMIT) bytes.
///
/// Where blocks of the head and of the tail overlap, the shared bytes have been found equal when
/// the tail is looked at, so the first difference found is the first there is.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes, and `n < LIMIT`.
#[inline(always)]
pub(crate) unsafe fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    if n <= 32 {
        if n >= 16 {
            // SAFETY: the caller's buffers, and the class's bounds.
            unsafe { compare_runs::<1>(a, b, 0, n - 16) }
        } else if n >= 8 {
            // SAFETY: as above.
            unsafe { compare_two_words(a, b, n) }
        } else if n >= 4 {
            // SAFETY: as above.
            unsafe { compare_two_halves(a, b, n) }
        } else if n > 0 {
            // SAFETY: as above.
            unsafe { compare_three(a, b, n) }
        } else {
            0
        }
    } else if n <= 64 {
        // SAFETY: as above.
        unsafe { compare_runs::<2>(a, b, 0, n - 32) }
    } else {
        // SAFETY: as above.
        let order = unsafe { compare_runs::<2>(a, b, 0, 32) };
        if order != 0 {
            return order;
        }
        // SAFETY: as above; the caller vouches for n <= 128.
        unsafe { compare_runs::<2>(a, b, n - 64, n - 32) }
    }
}

/// # Safety
/// `a` and `b` are readable for `n` bytes, and `8 <= n <= 16`.
#[inline(always)]
unsafe fn compare_two_words(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: 8 <= n.
    let [left, right]: [u64; 2] = unsafe { load_pair(a, b, 0) };
    // SAFETY: the last eight bytes end at n.
    let tails: [u64; 2] = unsafe { load_pair(a, b, n - 8) };
    let [left, right] = if left == right { tails } else { [left, right] };
    order(u64::from_be(left), u64::from_be(right))
}

/// # Safety
/// `a` and `b` are readable for `n` bytes, and `4 <= n <= 8`.
#[inline(always)]
unsafe fn compare_two_halves(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: 4 <= n.
    let heads: [u32; 2] = unsafe { load_pair(a, b, 0) };
    // SAFETY: the last four bytes end at n.
    let tails: [u32; 2] = unsafe { load_pair(a, b, n - 4) };
    let joined =
        |i: usize| u64::from(u32::from_be(heads[i])) << 32 | u64::from(u32::from_be(tails[i]));
    order(joined(0), joined(1))
}

/// # Safety
/// `a` and `b` are readable for `n` bytes, and `1 <= n <= 3`.
#[inline(always)]
unsafe fn compare_three(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: 0 < n.
    let first: [u8; 2] = unsafe { load_pair(a, b, 0) };
    // SAFETY: n / 2 < n for n > 0.
    let middle: [u8; 2] = unsafe { load_pair(a, b, n / 2) };
    // SAFETY: n - 1 < n.
    let last: [u8; 2] = unsafe { load_pair(a, b, n - 1) };
    let joined =
        |i: usize| i32::from(first[i]) << 16 | i32::from(middle[i]) << 8 | i32::from(last[i]);
    joined(0) - joined(1)
}

/// A `T` from each side.
///
/// # Safety
/// As `load`, of both.
#[inline(always)]
unsafe fn load_pair<T: Copy>(a: *const u8, b: *const u8, offset: usize) -> [T; 2] {
    // SAFETY: the caller's promise.
    let left = unsafe { load(a, offset) };
    // SAFETY: the caller's promise.
    let right = unsafe { load(b, offset) };
    [left, right]
}

/// Order of two numbers whose bytes, most significant first, are those compared.
#[inline(always)]
fn order(left: u64, right: u64) -> i32 {
    i32::from(left > right) - i32::from(left < right)
}

/// The difference of the bytes at an offset.
///
/// # Safety
/// `a` and `b` are readable there.
#[inline(always)]
unsafe fn difference(a: *const u8, b: *const u8, at: usize) -> i32 {
    // SAFETY: the caller's promise.
    let [left, right]: [u8; 2] = unsafe { load_pair(a, b, at) };
    i32::from(left) - i32::from(right)
}

/// Compares `N` vectors (one or two) from each of two offsets on, in order.
///
/// One test for all of them first; where it was is found in a mask, which costs more to make.
///
/// # Safety
/// `a` and `b` are readable for `16 * N` bytes from both offsets on.
#[inline(always)]
unsafe fn compare_runs<const N: usize>(
    a: *const u8,
    b: *const u8,
    first: usize,
    second: usize,
) -> i32 {
    const { assert!(2 * N * WIDTH <= u64::BITS as usize) };
    // SAFETY: the caller's promise.
    let head = unsafe { apart_in_run::<N>(a, b, first) };
    // SAFETY: the caller's promise.
    let tail = unsafe { apart_in_run::<N>(a, b, second) };
    if head | tail == 0 {
        return 0;
    }
    // SAFETY: the caller's promise.
    let head = unsafe { differing_run::<N>(a, b, first) };
    // SAFETY: the caller's promise.
    let tail = unsafe { differing_run::<N>(a, b, second) };
    let at = if head != 0 {
        first + head.trailing_zeros() as usize
    } else {
        second + tail.trailing_zeros() as usize
    };
    // SAFETY: a set bit stands for a byte that was loaded.
    unsafe { difference(a, b, at) }
}

/// Bits set where any of `N` blocks differ.
///
/// # Safety
/// `a` and `b` are readable for `16 * N` bytes from the offset on.
#[inline(always)]
unsafe fn apart_in_run<const N: usize>(a: *const u8, b: *const u8, offset: usize) -> u128 {
    // SAFETY: the caller's promise.
    let [left, right]: [u128; 2] = unsafe { load_pair(a, b, offset) };
    let mut apart = left ^ right;
    for i in 1..N {
        // SAFETY: i < N, and the caller vouches for N vectors.
        let [left, right]: [u128; 2] = unsafe { load_pair(a, b, offset + i * WIDTH) };
        apart |= left ^ right;
    }
    apart
}

/// One bit per byte of `N` vectors that differs, the first byte's lowest.
///
/// # Safety
/// `a` and `b` are readable for `16 * N` bytes from the offset on.
#[inline(always)]
unsafe fn differing_run<const N: usize>(a: *const u8, b: *const u8, offset: usize) -> u64 {
    let mut mask = 0;
    for i in 0..N {
        // SAFETY: i < N, and the caller vouches for N vectors.
        let [left, right]: [u128; 2] = unsafe { load_pair(a, b, offset + i * WIDTH) };
        mask |= differing(left, right) << (WIDTH * i);
    }
    mask
}

/// Returns whether fewer than [`LIMIT`](super::LIMIT) bytes are equal.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes, and `n < LIMIT`.
#[inline(always)]
pub(crate) unsafe fn equal(a: *const u8, b: *const u8, n: usize) -> bool {
    if n <= 32 {
        if n >= 16 {
            // SAFETY: the caller's buffers, and the class's bounds.
            unsafe { equal_ends::<1>(a, b, n) }
        } else if n >= 8 {
            // SAFETY: as above.
            unsafe { equal_two::<u64>(a, b, n) }
        } else if n >= 4 {
            // SAFETY: as above.
            unsafe { equal_two::<u32>(a, b, n) }
        } else if n > 0 {
            // SAFETY: as above.
            unsafe { compare_three(a, b, n) == 0 }
        } else {
            true
        }
    } else if n <= 64 {
        // SAFETY: as above.
        unsafe { equal_ends::<2>(a, b, n) }
    } else {
        // SAFETY: as above; the caller vouches for n <= 128.
        unsafe { equal_ends::<4>(a, b, n) }
    }
}

/// Returns whether a `T` at each end is equal.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes, and `size_of::<T>() <= n <= 2 * size_of::<T>()`.
#[inline(always)]
unsafe fn equal_two<T: Copy + Into<u64>>(a: *const u8, b: *const u8, n: usize) -> bool {
    // SAFETY: n is at least a T's size.
    let heads: [T; 2] = unsafe { load_pair(a, b, 0) };
    // SAFETY: the last T ends at n.
    let tails: [T; 2] = unsafe { load_pair(a, b, n - size_of::<T>()) };
    let [left_head, right_head] = heads.map(Into::into);
    let [left_tail, right_tail] = tails.map(Into::into);
    (left_head ^ right_head) | (left_tail ^ right_tail) == 0
}

/// Returns whether `N` vectors at each end are equal.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes, and `16 * N <= n <= 32 * N`.
#[inline(always)]
unsafe fn equal_ends<const N: usize>(a: *const u8, b: *const u8, n: usize) -> bool {
    let last = n - N * WIDTH;
    // SAFETY: n is at least N vectors.
    let head = unsafe { apart_in_run::<N>(a, b, 0) };
    // SAFETY: N vectors from `last` on end at n.
    let tail = unsafe { apart_in_run::<N>(a, b, last) };
    head | tail == 0
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::super::LIMIT;
    use super::{compare, equal};
    use std::vec::Vec;

    #[test]
    fn every_length_and_place_of_a_difference() {
        let clean: Vec<u8> = (0..LIMIT).map(|i| (i * 37 + 11) as u8).collect();
        for n in 0..LIMIT {
            // Buffers of exactly that length, so that reading beyond it is seen by the checkers of memory.
            let (a, mut b) = (clean[..n].to_vec(), clean[..n].to_vec());
            let both = |b: &[u8]| {
                // SAFETY: both have n bytes.
                let order = unsafe { compare(a.as_ptr(), b.as_ptr(), n) };
                // SAFETY: as above.
                (order.signum(), unsafe { equal(a.as_ptr(), b.as_ptr(), n) })
            };
            assert_eq!(both(&b), (0, true), "{n}");
            for at in 0..n {
                // A later difference of the other sign must not count.
                for (bit, later) in [(0x80, 0x01), (0x01, 0x80)] {
                    b[at] ^= bit;
                    if at + 1 < n {
                        b[n - 1] ^= later;
                    }
                    let sign = if a[at] > b[at] { 1 } else { -1 };
                    assert_eq!(both(&b), (sign, false), "{n} bytes, {at} differs");
                    b.copy_from_slice(&a);
                }
            }
        }
    }
}
