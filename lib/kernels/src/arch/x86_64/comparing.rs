//! The loops of the vector kernels that compare, generic over register width and pre-check.
//!
//! Bytes known to be equal may be compared again: a last vector that ends with the buffers overlaps
//! what came before it, and so there is no tail loop.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "a group of loads or stores at consecutive offsets discharges one obligation: the \
              group lies inside the buffer by the loop's invariant, which the comment names"
)]
#![allow(
    clippy::question_mark,
    clippy::manual_unwrap_or,
    clippy::manual_unwrap_or_default,
    reason = "what these suggest is generic code of core, which need not be inlined into a crate without \
              builtins, and would be called"
)]

use super::vector::{ComparingVector, Vector};
use core::hint::select_unpredictable;

/// The signed difference of the first differing bytes, given the mask of differing bytes there,
/// which is not 0.
#[inline(always)]
unsafe fn first_difference(a: *const u8, b: *const u8, mask: u64) -> i32 {
    let at = mask.trailing_zeros() as usize;
    // SAFETY: a set bit of the mask names a byte that has been read already.
    unsafe { i32::from(a.add(at).read()) - i32::from(b.add(at).read()) }
}

/// The signed difference of the first differing bytes among four vectors; `None` where all are
/// equal.
///
/// The place comes from the bytes that were compared, not from a second look at them: another
/// thread may have made them equal since, and no place would be left.
#[inline(always)]
unsafe fn difference_among_4<V: ComparingVector>(a: *const u8, b: *const u8) -> Option<i32> {
    // SAFETY: the caller vouches for four vectors.
    let Some([first, second, third, fourth]) = (unsafe { V::differing_4(a, b) }) else {
        return None;
    };
    // Which of the four it is follows no pattern, and a mispredicted branch costs more than the rest.
    if V::BYTES <= 32 {
        // Two masks in one: one choice instead of three.
        let (low, high) = (first | second << (V::BYTES & 63), third | fourth << (V::BYTES & 63));
        let (at, mask) = select_unpredictable(low == 0, (2 * V::BYTES, high), (0, low));
        // SAFETY: one of the four differs, so that a set bit names a byte of the two vectors at `at`.
        return Some(unsafe { first_difference(a.add(at), b.add(at), mask) });
    }
    let (at, mask) = (2 * V::BYTES, third);
    let (at, mask) = select_unpredictable(mask == 0, (3 * V::BYTES, fourth), (at, mask));
    let (at, mask) = select_unpredictable(second == 0, (at, mask), (V::BYTES, second));
    let (at, mask) = select_unpredictable(first == 0, (at, mask), (0, first));
    // SAFETY: one of the four differs, so that a set bit names a byte of the vector at `at`.
    Some(unsafe { first_difference(a.add(at), b.add(at), mask) })
}

/// -1 or 1 by the first differing byte of two little-endian words that differ.
#[inline(always)]
fn order(a: u64, b: u64) -> i32 {
    if a.swap_bytes() < b.swap_bytes() { -1 } else { 1 }
}

/// Compares `n < 16` bytes with integer registers.
#[inline(always)]
unsafe fn compare_below_16(a: *const u8, b: *const u8, n: usize) -> i32 {
    macro_rules! ends {
        ($word:ty) => {{
            const WIDTH: usize = size_of::<$word>();
            // SAFETY: WIDTH <= n <= 2 * WIDTH, so both ends lie inside and cover the buffers.
            unsafe {
                let (x, y) = (
                    a.cast::<$word>().read_unaligned().to_be(),
                    b.cast::<$word>().read_unaligned().to_be(),
                );
                if x != y {
                    return if x < y { -1 } else { 1 };
                }
                let (x, y) = (
                    a.add(n - WIDTH).cast::<$word>().read_unaligned().to_be(),
                    b.add(n - WIDTH).cast::<$word>().read_unaligned().to_be(),
                );
                i32::from(x > y) - i32::from(x < y)
            }
        }};
    }
    match n {
        8..=15 => ends!(u64),
        4..=7 => ends!(u32),
        2..=3 => ends!(u16),
        1 => ends!(u8),
        _ => 0,
    }
}

/// Compares up to `PRE` leading bytes with 64-bit registers before any vector is touched (seed
/// 004.5). Returns the verdict where they differ, else how many bytes are known to be equal.
#[inline(always)]
unsafe fn pre_check<const PRE: usize>(a: *const u8, b: *const u8, n: usize) -> Result<usize, i32> {
    let mut at = 0;
    while at < PRE && n - at >= 8 {
        // SAFETY: eight bytes are left at `at`.
        let (x, y) = unsafe {
            (a.add(at).cast::<u64>().read_unaligned(), b.add(at).cast::<u64>().read_unaligned())
        };
        if x != y {
            return Err(order(x, y));
        }
        at += 8;
    }
    Ok(at)
}

/// From this many vectors on it pays to align the loads of one operand: a load that straddles two
/// lines takes two turns of a load port.
const ALIGN_FROM: usize = 16;

/// Vectors that are tested one by one before groups of four are: where operands differ, they mostly do so
/// early, and each test finds its difference sooner than a group. From 384 bytes on kernels of 32 bytes took 1.2 to
/// 1.4 of libc's time for differences at any early place with one (Zen 3). Others are as they were measured.
const fn one_by_one<V: Vector>() -> usize {
    if V::BYTES == 32 { 4 } else { 1 }
}

/// Bytes from an aligned place to the vector of `a` at `at`; 0 where that is not worth a step.
#[inline(always)]
fn misalignment<V: Vector>(a: *const u8, at: usize, n: usize) -> usize {
    if n >= ALIGN_FROM * V::BYTES { a.addr().wrapping_add(at) & (V::BYTES - 1) } else { 0 }
}

/// The body of every `compare.*` kernel of the vector families.
#[inline(always)]
pub(super) unsafe fn compare<V: ComparingVector, const PRE: usize>(
    a: *const u8,
    b: *const u8,
    n: usize,
) -> i32 {
    // SAFETY: the caller's promise (`CompareFn`); every vector read starts at `at` with at least
    // its width left, or ends exactly at n with everything before it known to be equal.
    unsafe {
        let mut at = match pre_check::<PRE>(a, b, n) {
            Ok(at) => at & !(V::BYTES - 1),
            Err(verdict) => return verdict,
        };
        if n - at >= 4 * V::BYTES {
            // Buffers out of the cache that differ in the first vector cost two lines, not eight.
            for _ in 0..const { one_by_one::<V>() } {
                let mask = V::differing(a.add(at), b.add(at));
                if mask != 0 {
                    return first_difference(a.add(at), b.add(at), mask);
                }
                at += V::BYTES;
            }
            at -= misalignment::<V>(a, at, n);
        }
        while n - at >= 4 * V::BYTES {
            if let Some(difference) = difference_among_4::<V>(a.add(at), b.add(at)) {
                return difference;
            }
            at += 4 * V::BYTES;
        }
        if at < n && n >= 4 * V::BYTES {
            let last = n - 4 * V::BYTES;
            return match difference_among_4::<V>(a.add(last), b.add(last)) {
                Some(difference) => difference,
                None => 0,
            };
        }
        while n - at >= V::BYTES {
            let mask = V::differing(a.add(at), b.add(at));
            if mask != 0 {
                return first_difference(a.add(at), b.add(at), mask);
            }
            at += V::BYTES;
        }
        if at == n {
            return 0;
        }
        if n >= V::BYTES {
            let last = n - V::BYTES;
            let mask = V::differing(a.add(last), b.add(last));
            return if mask == 0 { 0 } else { first_difference(a.add(last), b.add(last), mask) };
        }
        compare_narrow::<V::HalfComparing, true>(a, b, n)
    }
}

/// Compares `n` bytes that are fewer than the kernel's own vector holds: two overlapping vectors of
/// the widest narrower kind that fits, else integers. With `ORDERED` false only zero or not counts.
#[inline(always)]
unsafe fn compare_narrow<V: ComparingVector, const ORDERED: bool>(
    a: *const u8,
    b: *const u8,
    n: usize,
) -> i32 {
    #[inline(always)]
    unsafe fn ends<V: ComparingVector, const ORDERED: bool>(
        a: *const u8,
        b: *const u8,
        n: usize,
    ) -> i32 {
        let last = n - V::BYTES;
        // SAFETY: BYTES <= n <= 2 * BYTES, so one vector at either end lies inside.
        unsafe {
            let head = V::differing(a, b);
            if !ORDERED {
                return i32::from(head | V::differing(a.add(last), b.add(last)) != 0);
            }
            if head != 0 {
                return first_difference(a, b, head);
            }
            let tail = V::differing(a.add(last), b.add(last));
            if tail == 0 { 0 } else { first_difference(a.add(last), b.add(last), tail) }
        }
    }
    let half = <V::HalfComparing as Vector>::BYTES;
    // SAFETY: each branch's range of n is what its callee demands.
    unsafe {
        if n >= V::BYTES {
            ends::<V, ORDERED>(a, b, n)
        } else if half < V::BYTES && n >= half {
            ends::<V::HalfComparing, ORDERED>(a, b, n)
        } else {
            compare_below_16(a, b, n)
        }
    }
}

/// The body of every `equal.*` kernel of the vector families.
#[inline(always)]
pub(super) unsafe fn equal<V: ComparingVector, const PRE: usize>(
    a: *const u8,
    b: *const u8,
    n: usize,
) -> i32 {
    // SAFETY: as `compare`.
    unsafe {
        let Ok(at) = pre_check::<PRE>(a, b, n) else { return 0 };
        let mut at = at & !(V::BYTES - 1);
        if n - at >= 4 * V::BYTES {
            // As in `compare`.
            for _ in 0..const { one_by_one::<V>() } {
                if V::differing(a.add(at), b.add(at)) != 0 {
                    return 0;
                }
                at += V::BYTES;
            }
            at -= misalignment::<V>(a, at, n);
        }
        while n - at >= 4 * V::BYTES {
            if V::differs_4(a.add(at), b.add(at)) {
                return 0;
            }
            at += 4 * V::BYTES;
        }
        if at == n {
            return 1;
        }
        if n >= 4 * V::BYTES {
            let last = n - 4 * V::BYTES;
            return i32::from(!V::differs_4(a.add(last), b.add(last)));
        }
        while n - at >= V::BYTES {
            if V::differing(a.add(at), b.add(at)) != 0 {
                return 0;
            }
            at += V::BYTES;
        }
        if at == n {
            return 1;
        }
        if n >= V::BYTES {
            let last = n - V::BYTES;
            return i32::from(V::differing(a.add(last), b.add(last)) == 0);
        }
        i32::from(compare_narrow::<V::HalfComparing, false>(a, b, n) == 0)
    }
}
