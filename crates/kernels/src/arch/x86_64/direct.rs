//! The plain AVX2 comparisons without their short cases: 129 bytes and more.
//!
//! The library inlines them in front of its table, for as long as its decisions say the plain AVX2
//! kernel: at these sizes a look-up and an indirect jump cost a tenth of the operation. They are not
//! rows of the table, because they are not complete; each does what the row that [`continues`] names
//! would do. The library's tests cover them at every length and alignment.
//!
//! | bytes | done as |
//! |---|---|
//! | 129-256 | 4 x 32, then the last 4 x 32 |
//! | 257-384 | 2 tests of 4 x 32, then the last 4 x 32 |
//! | 385-512 | 3 tests of 4 x 32, then the last 4 x 32 |
//! | more | the loop of the kernel |

use super::comparing::{compare_long, equal_long, first_difference_of_4};
use super::vector::{ComparingVector, Vector, Ymm};
use crate::isa::Features;
use crate::table::Operation;

/// What the CPU must offer for these functions.
pub const REQUIRES: Features = Ymm::COMPARE_REQUIRES;

/// The kernel that the library continues without a look-up: with the functions here, or with code of
/// its own for what stores.
#[must_use]
pub const fn continues(operation: Operation) -> &'static str {
    match operation {
        Operation::Copy | Operation::CopyPages => "copy.avx",
        Operation::Move => "move.avx",
        Operation::Fill => "fill.avx",
        Operation::Zero | Operation::ZeroPages => "zero.avx",
        Operation::Compare => "compare.avx2",
        Operation::Equal => "equal.avx2",
    }
}

/// Bytes that one test covers.
const BLOCK: usize = 4 * Ymm::BYTES;

/// The largest size done without a loop.
const STRAIGHT: usize = 4 * BLOCK;

/// `memcmp`'s contract.
///
/// # Safety
/// As [`CompareFn`](crate::table::CompareFn), and `n >= 128`.
#[inline]
#[target_feature(enable = "avx,avx2")]
pub unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    if n > STRAIGHT {
        // SAFETY: the caller's promise, and n > 4 vectors.
        return unsafe { compare_long::<Ymm>(a, b, n) };
    }
    let mut at = 0;
    // Straight on: the compiler unrolls it, and each exit is a branch of its own to the predictor.
    while at < STRAIGHT - BLOCK {
        let (a, b) = (a.wrapping_add(at), b.wrapping_add(at));
        // SAFETY: the caller's promise; at + BLOCK <= n, by the test below or n >= BLOCK.
        if unsafe { Ymm::differs_4(a, b) } {
            // SAFETY: as above, and one of these vectors differs.
            return unsafe { first_difference_of_4::<Ymm>(a, b) };
        }
        at += BLOCK;
        if n <= at + BLOCK {
            break;
        }
    }
    let (a, b) = (a.wrapping_add(n - BLOCK), b.wrapping_add(n - BLOCK));
    // SAFETY: the caller's promise; the last BLOCK bytes are inside.
    if unsafe { Ymm::differs_4(a, b) } {
        // SAFETY: as above, and one of these vectors differs, the first where the buffers do, for
        // what comes before it is equal.
        return unsafe { first_difference_of_4::<Ymm>(a, b) };
    }
    0
}

/// 1 when all bytes are equal, else 0.
///
/// # Safety
/// As [`EqualFn`](crate::table::EqualFn), and `n >= 128`.
#[inline]
#[target_feature(enable = "avx,avx2")]
pub unsafe extern "C" fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    if n > STRAIGHT {
        // SAFETY: the caller's promise, and n > 4 vectors.
        return unsafe { equal_long::<Ymm>(a, b, n) };
    }
    let mut at = 0;
    while at < STRAIGHT - BLOCK {
        // SAFETY: as in `compare`.
        if unsafe { Ymm::differs_4(a.wrapping_add(at), b.wrapping_add(at)) } {
            return 0;
        }
        at += BLOCK;
        if n <= at + BLOCK {
            break;
        }
    }
    let last = n - BLOCK;
    // SAFETY: the caller's promise; the last BLOCK bytes are inside.
    i32::from(!unsafe { Ymm::differs_4(a.wrapping_add(last), b.wrapping_add(last)) })
}
