//! Operations on at most 128 bytes, inlined in front of the dispatch: these are 94 % of the memcpy
//! calls in Google's fleet, and a table look-up would cost as much as they do.
//!
//! The grammar is llvm-libc's: a size class is served by blocks from its head and as many from its
//! tail, which overlap where the size is not the class's largest. There is no loop left after
//! unrolling and no branch but those that find the class:
//!
//! | bytes | done as |
//! |---|---|
//! | 0 | nothing |
//! | 1-3 | first, middle and last byte |
//! | 4-7 | 4 + 4 |
//! | 8-15 | 8 + 8 |
//! | 16-32 | 16 + 16 |
//! | 33-64 | 2 x 16 + 2 x 16 |
//! | 65-128 | 4 x 16 + 4 x 16 |
//!
//! From 129 bytes on wider vectors pay, and those need to know the CPU: the dispatch's business.
//! Every byte is loaded before any is stored, so that a copy is also a move.

use core::ptr;

/// Calls of this many bytes and more go to a kernel: those below [`profile::FIRST_SIZE`] to the
/// widest temporal one, the others to the one that the profile says.
///
/// [`profile::FIRST_SIZE`]: crate::profile::FIRST_SIZE
pub(crate) const LIMIT: usize = 129;

/// The largest size that is done without a loop where the CPU has AVX2; no profile changes that.
pub(crate) const DIRECT_LIMIT: usize = 256;

/// Bytes of a [`Vector`].
const WIDTH: usize = size_of::<Vector>();

pub(crate) use vector::Vector;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod vector {
    //! Sixteen bytes in an xmm register, part of every x86-64 CPU.

    use core::arch::x86_64::{
        __m128i, _mm_and_si128, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set1_epi8,
    };

    pub(crate) type Vector = __m128i;

    #[inline(always)]
    pub(super) fn splat(byte: u8) -> Vector {
        // SAFETY: this module is built only where SSE2 is part of the target.
        unsafe { _mm_set1_epi8(byte as i8) }
    }

    /// Which of sixteen bytes are equal, as something to be combined.
    #[inline(always)]
    pub(super) fn same(a: Vector, b: Vector) -> Vector {
        // SAFETY: this module is built only where SSE2 is part of the target.
        unsafe { _mm_cmpeq_epi8(a, b) }
    }

    #[inline(always)]
    pub(super) fn both(a: Vector, b: Vector) -> Vector {
        // SAFETY: this module is built only where SSE2 is part of the target.
        unsafe { _mm_and_si128(a, b) }
    }

    /// One bit per byte; the upper sixteen are clear.
    #[inline(always)]
    fn mask(same: Vector) -> u32 {
        // SAFETY: this module is built only where SSE2 is part of the target.
        let mask = unsafe { _mm_movemask_epi8(same) };
        mask as u32
    }

    #[inline(always)]
    pub(super) fn everywhere(same: Vector) -> bool {
        mask(same) == 0xFFFF
    }

    /// One bit per byte that differs, the first byte's lowest.
    #[inline(always)]
    pub(super) fn differing(a: Vector, b: Vector) -> u64 {
        u64::from(mask(same(a, b)) ^ 0xFFFF)
    }
}

#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
mod vector {
    //! Sixteen bytes in general registers, for every other architecture and for kernels that are
    //! built without vector registers.

    pub(crate) type Vector = u128;

    #[inline(always)]
    pub(super) fn splat(byte: u8) -> Vector {
        u128::from_ne_bytes([byte; 16])
    }

    /// Zero bits where the bytes are equal, as something to be combined.
    #[inline(always)]
    pub(super) fn same(a: Vector, b: Vector) -> Vector {
        a ^ b
    }

    #[inline(always)]
    pub(super) fn both(a: Vector, b: Vector) -> Vector {
        a | b
    }

    #[inline(always)]
    pub(super) fn everywhere(same: Vector) -> bool {
        same == 0
    }

    /// A bit for the first byte that differs, the first byte's lowest; later ones may be missing.
    #[inline(always)]
    pub(super) fn differing(a: Vector, b: Vector) -> u64 {
        let difference = u128::from_le(a ^ b);
        if difference == 0 { 0 } else { 1 << (difference.trailing_zeros() / 8) }
    }
}

/// # Safety
/// `size_of::<T>()` bytes at `from + offset` are readable, in one object with `from`.
#[inline(always)]
unsafe fn load<T: Copy>(from: *const u8, offset: usize) -> T {
    // SAFETY: the caller's promise.
    let at = unsafe { from.add(offset) };
    // SAFETY: the caller's promise; `T` is an integer or a vector, of which every bit pattern is
    // a value.
    unsafe { ptr::read_unaligned(at.cast::<T>()) }
}

/// # Safety
/// `size_of::<T>()` bytes at `to + offset` are writable, in one object with `to`.
#[inline(always)]
unsafe fn store<T: Copy>(to: *mut u8, offset: usize, value: T) {
    // SAFETY: the caller's promise.
    let at = unsafe { to.add(offset) };
    // SAFETY: the caller's promise.
    unsafe { ptr::write_unaligned(at.cast::<T>(), value) }
}

/// Copies a block of that type at each of the given offsets, all loads before all stores. Written
/// out rather than looped over an array: the compiler knows such loops for what they are, and
/// makes them block copies through the stack.
macro_rules! copy_blocks {
    ($type:ty, $dst:ident, $src:ident, $($block:ident at $offset:expr),*) => {
        // SAFETY: the caller's buffers hold a block at each offset, by the class's bounds.
        $(let $block: $type = unsafe { load($src, $offset) };)*
        // SAFETY: as above.
        $(unsafe { store($dst, $offset, $block) };)*
    };
}

/// Stores a block at each of the given offsets.
macro_rules! fill_blocks {
    ($block:expr, $dst:ident, $($offset:expr),*) => {
        // SAFETY: the caller's buffer holds a block at each offset, by the class's bounds.
        $(unsafe { store($dst, $offset, $block) };)*
    };
}

/// Copies fewer than [`LIMIT`] bytes; the buffers may overlap.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes, and `n < LIMIT`.
#[inline(always)]
pub(crate) unsafe fn copy(dst: *mut u8, src: *const u8, n: usize) {
    if n <= 32 {
        if n >= 16 {
            copy_blocks!(Vector, dst, src, a at 0, b at n - 16);
        } else if n >= 8 {
            copy_blocks!(u64, dst, src, a at 0, b at n - 8);
        } else if n >= 4 {
            copy_blocks!(u32, dst, src, a at 0, b at n - 4);
        } else if n > 0 {
            copy_blocks!(u8, dst, src, a at 0, b at n / 2, c at n - 1);
        }
    } else if n <= 64 {
        copy_blocks!(Vector, dst, src, a at 0, b at 16, c at n - 32, d at n - 16);
    } else {
        copy_blocks!(
            Vector, dst, src,
            a at 0, b at 16, c at 32, d at 48, e at n - 64, f at n - 48, g at n - 32, h at n - 16
        );
    }
}

/// Stores `byte` in fewer than [`LIMIT`] places.
///
/// # Safety
/// `dst` is writable for `n` bytes, and `n < LIMIT`.
#[inline(always)]
pub(crate) unsafe fn fill(dst: *mut u8, byte: u8, n: usize) {
    let vector = vector::splat(byte);
    let word = u64::from(byte).wrapping_mul(0x0101_0101_0101_0101);
    if n <= 32 {
        if n >= 16 {
            fill_blocks!(vector, dst, 0, n - 16);
        } else if n >= 8 {
            fill_blocks!(word, dst, 0, n - 8);
        } else if n >= 4 {
            fill_blocks!(word as u32, dst, 0, n - 4);
        } else if n > 0 {
            fill_blocks!(byte, dst, 0, n / 2, n - 1);
        }
    } else if n <= 64 {
        fill_blocks!(vector, dst, 0, 16, n - 32, n - 16);
    } else {
        fill_blocks!(vector, dst, 0, 16, 32, 48, n - 64, n - 48, n - 32, n - 16);
    }
}

/// `memcmp` of fewer than [`LIMIT`] bytes.
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
/// As [`load`], of both.
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
    let head = unsafe { same_run::<N>(a, b, first) };
    // SAFETY: the caller's promise.
    let tail = unsafe { same_run::<N>(a, b, second) };
    if vector::everywhere(vector::both(head, tail)) {
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

/// Which bytes of `N` vectors are the same in all of them.
///
/// # Safety
/// `a` and `b` are readable for `16 * N` bytes from the offset on.
#[inline(always)]
unsafe fn same_run<const N: usize>(a: *const u8, b: *const u8, offset: usize) -> Vector {
    // SAFETY: the caller's promise.
    let [left, right]: [Vector; 2] = unsafe { load_pair(a, b, offset) };
    let mut same = vector::same(left, right);
    for i in 1..N {
        // SAFETY: i < N, and the caller vouches for N vectors.
        let [left, right]: [Vector; 2] = unsafe { load_pair(a, b, offset + i * WIDTH) };
        same = vector::both(same, vector::same(left, right));
    }
    same
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
        let [left, right]: [Vector; 2] = unsafe { load_pair(a, b, offset + i * WIDTH) };
        mask |= vector::differing(left, right) << (WIDTH * i);
    }
    mask
}

/// Whether fewer than [`LIMIT`] bytes are equal.
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

/// Whether a `T` at each end is equal.
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

/// Whether `N` vectors at each end are equal.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes, and `16 * N <= n <= 32 * N`.
#[inline(always)]
unsafe fn equal_ends<const N: usize>(a: *const u8, b: *const u8, n: usize) -> bool {
    let last = n - N * WIDTH;
    // SAFETY: n is at least N vectors.
    let head = unsafe { same_run::<N>(a, b, 0) };
    // SAFETY: N vectors from `last` on end at n.
    let tail = unsafe { same_run::<N>(a, b, last) };
    vector::everywhere(vector::both(head, tail))
}
