//! 129 to 256 bytes without a branch on size: four ymm registers from either end.
//!
//! The library jumps here directly, without its table: at these sizes choosing costs as much as
//! copying. They are not rows of the table, because they are not complete; the library's tests
//! cover them at every length and alignment.

use super::comparing::first_difference_of_4;
use super::family::{copy_ends, fill_ends};
use super::vector::{ComparingVector, Vector, Ymm};
use crate::isa::Features;

/// What the CPU must offer for these functions.
pub const REQUIRES: Features = Ymm::COMPARE_REQUIRES;

/// Copies `n` bytes, overlap allowed; returns `dst`.
///
/// # Safety
/// As [`MoveFn`](crate::table::MoveFn), and `128 <= n <= 256`.
#[target_feature(enable = "avx,avx2")]
pub unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise; four vectors from either end cover 128 to 256 bytes.
    unsafe { copy_ends::<Ymm, 4>(dst, src, n) };
    dst
}

/// Stores the low byte of `byte` in `n` places; returns `dst`.
///
/// # Safety
/// As [`FillFn`](crate::table::FillFn), and `128 <= n <= 256`.
#[target_feature(enable = "avx,avx2")]
pub unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise; four vectors from either end cover 128 to 256 bytes.
    unsafe { fill_ends::<Ymm, 4>(dst, byte as u8, n) };
    dst
}

/// `memcmp`'s contract.
///
/// # Safety
/// As [`CompareFn`](crate::table::CompareFn), and `128 <= n <= 256`.
#[target_feature(enable = "avx,avx2")]
pub unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    const WIDTH: usize = 4 * Ymm::BYTES;
    let last = n.wrapping_sub(WIDTH);
    // SAFETY: the caller's promise; the first and the last WIDTH bytes are inside.
    if unsafe { Ymm::differs_4(a, b) } {
        // SAFETY: as above, and one of these vectors differs.
        return unsafe { first_difference_of_4::<Ymm>(a, b) };
    }
    let (a, b) = (a.wrapping_add(last), b.wrapping_add(last));
    // SAFETY: as above.
    if unsafe { Ymm::differs_4(a, b) } {
        // SAFETY: as above, and one of these vectors differs.
        return unsafe { first_difference_of_4::<Ymm>(a, b) };
    }
    0
}

/// 1 when all bytes are equal, else 0.
///
/// # Safety
/// As [`EqualFn`](crate::table::EqualFn), and `128 <= n <= 256`.
#[target_feature(enable = "avx,avx2")]
pub unsafe extern "C" fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    const WIDTH: usize = 4 * Ymm::BYTES;
    let last = n.wrapping_sub(WIDTH);
    // SAFETY: the caller's promise; the first WIDTH bytes are inside.
    if unsafe { Ymm::differs_4(a, b) } {
        return 0;
    }
    // SAFETY: the caller's promise; the last WIDTH bytes are inside.
    i32::from(!unsafe { Ymm::differs_4(a.wrapping_add(last), b.wrapping_add(last)) })
}
