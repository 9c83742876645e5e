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

pub(crate) use vector::Vector;

/// Comparisons, which x86-64 has written out.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
mod comparing;
#[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
pub(crate) use comparing::{compare, equal};

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod vector {
    //! Sixteen bytes in an xmm register, part of every x86-64 CPU.

    use core::arch::x86_64::{__m128i, _mm_set1_epi8};

    pub(crate) type Vector = __m128i;

    #[inline(always)]
    pub(super) fn splat(byte: u8) -> Vector {
        // SAFETY: this module is built only where SSE2 is part of the target.
        unsafe { _mm_set1_epi8(byte as i8) }
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
