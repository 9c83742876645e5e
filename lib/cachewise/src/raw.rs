//! The operations on pointers, with the contracts of `memcpy`, `memmove`, `memset` and `memcmp`.
//!
//! Each is a C function, so that a C interface or a preload library can forward to it with a jump.
//! On x86-64 those without a hint are written out (`entry.rs`): up to 128 bytes they are complete in themselves, above
//! that they are the plain vector loop for as long as that is the decision, and look the kernel up beyond
//! (`dispatch.rs`). Elsewhere every size is looked up.
//!
//! With a length of 0 nothing is touched, and any pointer will do. A copy of more than 128 bytes to their own place stores
//! nothing, so that it may be memory that can only be read, as in glibc.

use crate::dispatch;
use crate::reuse::Reuse;
use crate::rows::OWN;
use core::ptr;

/// Copies `n` bytes between buffers that do not overlap; returns `dst`. `memcpy`'s contract.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes, and they do not overlap.
///
/// ```
/// let source = [7u8; 1000];
/// let mut destination = [0u8; 1000];
/// // SAFETY: both arrays have 1000 bytes.
/// unsafe { cachewise::raw::copy_nonoverlapping(destination.as_mut_ptr(), source.as_ptr(), 1000) };
/// assert_eq!(destination, source);
/// ```
#[cfg_attr(all(target_arch = "x86_64", target_feature = "sse2"), unsafe(naked))]
#[cfg_attr(not(all(target_arch = "x86_64", target_feature = "sse2")), inline(never))]
pub unsafe extern "C" fn copy_nonoverlapping(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    crate::entry_copy!();
    // SAFETY: the caller's promise.
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    unsafe {
        copy_nonoverlapping_hinted(dst, src, n, Reuse::Unknown)
    }
}

/// Copies `n` bytes between buffers that may overlap; returns `dst`. `memmove`'s contract.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes.
///
/// ```
/// let mut buffer = *b"abcdef";
/// let start = buffer.as_mut_ptr();
/// // SAFETY: five bytes from place 0 and from place 1 on are inside the array.
/// unsafe { cachewise::raw::copy(start.add(1), start, 5) };
/// assert_eq!(&buffer, b"aabcde");
/// ```
#[cfg_attr(all(target_arch = "x86_64", target_feature = "sse2"), unsafe(naked))]
#[cfg_attr(not(all(target_arch = "x86_64", target_feature = "sse2")), inline(never))]
pub unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    crate::entry_move!();
    // SAFETY: the caller's promise.
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    unsafe {
        copy_hinted(dst, src, n, Reuse::Unknown)
    }
}

/// Stores the low byte of `byte` in `n` places; returns `dst`. `memset`'s contract.
///
/// # Safety
/// `dst` is writable for `n` bytes.
///
/// ```
/// let mut buffer = [0u8; 300];
/// // SAFETY: the array has 300 bytes.
/// unsafe { cachewise::raw::fill(buffer.as_mut_ptr(), 0x1A5, 300) };
/// assert_eq!(buffer, [0xA5; 300]);
/// ```
#[cfg_attr(all(target_arch = "x86_64", target_feature = "sse2"), unsafe(naked))]
#[cfg_attr(not(all(target_arch = "x86_64", target_feature = "sse2")), inline(never))]
pub unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    crate::entry_fill!();
    // SAFETY: the caller's promise.
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    unsafe {
        fill_hinted(dst, byte, n, Reuse::Unknown)
    }
}

/// Zeroes `n` bytes; returns `dst`.
///
/// Apart from [`fill`], since zeros have kernels of their own: non-temporal stores of whole lines
/// of zeros can be far faster than those of any other value.
///
/// # Safety
/// `dst` is writable for `n` bytes.
///
/// ```
/// let mut buffer = [1u8; 300];
/// // SAFETY: the array has 300 bytes.
/// unsafe { cachewise::raw::zero(buffer.as_mut_ptr(), 300) };
/// assert_eq!(buffer, [0; 300]);
/// ```
#[cfg_attr(all(target_arch = "x86_64", target_feature = "sse2"), unsafe(naked))]
#[cfg_attr(not(all(target_arch = "x86_64", target_feature = "sse2")), inline(never))]
pub unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    crate::entry_zero!();
    // SAFETY: the caller's promise.
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    unsafe {
        zero_hinted(dst, n, Reuse::Unknown)
    }
}

/// Negative, zero or positive by the first byte that differs, unsigned. `memcmp`'s contract.
///
/// On x86-64 a comparison of at most 32 bytes may read on behind the buffers, never beyond the
/// pages that they begin in, and not under Valgrind; the result depends on the buffers alone.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes.
///
/// ```
/// let (a, b) = ([0u8, 1, 0x80], [0u8, 1, 0x7F]);
/// // SAFETY: both arrays have three bytes.
/// assert!(unsafe { cachewise::raw::compare(a.as_ptr(), b.as_ptr(), 3) } > 0);
/// ```
#[cfg_attr(all(target_arch = "x86_64", target_feature = "sse2"), unsafe(naked))]
#[cfg_attr(not(all(target_arch = "x86_64", target_feature = "sse2")), inline(never))]
pub unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    crate::entry_compare!();
    // SAFETY: the caller's promise.
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    unsafe {
        dispatch::compare(Reuse::Unknown, a, b, n)
    }
}

/// Returns whether `n` bytes are equal.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes.
///
/// ```
/// let (a, b) = ([5u8; 400], [5u8; 400]);
/// // SAFETY: both arrays have 400 bytes.
/// assert!(unsafe { cachewise::raw::equal(a.as_ptr(), b.as_ptr(), 400) });
/// ```
#[inline]
pub unsafe fn equal(a: *const u8, b: *const u8, n: usize) -> bool {
    // SAFETY: the caller's promise is the callee's.
    unsafe { equal_int(a, b, n) != 0 }
}

/// [`equal`] as C has it: 1 or 0.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes.
///
/// ```
/// let (a, b) = ([5u8; 400], [6u8; 400]);
/// // SAFETY: both arrays have 400 bytes.
/// assert_eq!(unsafe { cachewise::raw::equal_int(a.as_ptr(), b.as_ptr(), 400) }, 0);
/// ```
#[cfg_attr(all(target_arch = "x86_64", target_feature = "sse2"), unsafe(naked))]
#[cfg_attr(not(all(target_arch = "x86_64", target_feature = "sse2")), inline(never))]
pub unsafe extern "C" fn equal_int(a: *const u8, b: *const u8, n: usize) -> i32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    crate::entry_equal!();
    // SAFETY: the caller's promise.
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    unsafe {
        dispatch::equal(Reuse::Unknown, a, b, n)
    }
}

/// [`copy_nonoverlapping`] with a hint.
///
/// # Safety
/// As [`copy_nonoverlapping`].
#[inline]
pub unsafe fn copy_nonoverlapping_with(
    reuse: Reuse,
    dst: *mut u8,
    src: *const u8,
    n: usize,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { copy_nonoverlapping_hinted(dst, src, n, reuse) }
}

/// [`copy`] with a hint.
///
/// # Safety
/// As [`copy`].
#[inline]
pub unsafe fn copy_with(reuse: Reuse, dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { copy_hinted(dst, src, n, reuse) }
}

/// [`fill`] with a hint.
///
/// # Safety
/// As [`fill`].
#[inline]
pub unsafe fn fill_with(reuse: Reuse, dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { fill_hinted(dst, byte, n, reuse) }
}

/// [`zero`] with a hint.
///
/// # Safety
/// As [`zero`].
#[inline]
pub unsafe fn zero_with(reuse: Reuse, dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { zero_hinted(dst, n, reuse) }
}

/// [`copy_nonoverlapping_with`], with the hint last, where a jump to the kernel need not move the
/// other arguments, as in the three below.
#[inline(never)]
unsafe extern "C" fn copy_nonoverlapping_hinted(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    reuse: Reuse,
) -> *mut u8 {
    if n <= OWN && OWN > 0 {
        // SAFETY: the caller's promise.
        return unsafe { copy_nonoverlapping(dst, src, n) };
    }
    if ptr::eq(dst, src) {
        return dst;
    }
    // SAFETY: the caller's promise.
    unsafe { dispatch::copy(reuse, dst, src, n) }
}

#[inline(never)]
unsafe extern "C" fn copy_hinted(dst: *mut u8, src: *const u8, n: usize, reuse: Reuse) -> *mut u8 {
    if n <= OWN && OWN > 0 {
        // SAFETY: the caller's promise.
        return unsafe { copy(dst, src, n) };
    }
    if ptr::eq(dst, src) {
        return dst;
    }
    // SAFETY: the caller's promise.
    unsafe { dispatch::r#move(reuse, dst, src, n) }
}

#[inline(never)]
unsafe extern "C" fn fill_hinted(dst: *mut u8, byte: i32, n: usize, reuse: Reuse) -> *mut u8 {
    if n <= OWN && OWN > 0 {
        // SAFETY: the caller's promise.
        return unsafe { fill(dst, byte, n) };
    }
    // SAFETY: the caller's promise.
    unsafe { dispatch::fill(reuse, dst, byte, n) }
}

#[inline(never)]
unsafe extern "C" fn zero_hinted(dst: *mut u8, n: usize, reuse: Reuse) -> *mut u8 {
    if n <= OWN && OWN > 0 {
        // SAFETY: the caller's promise.
        return unsafe { zero(dst, n) };
    }
    // SAFETY: the caller's promise.
    unsafe { dispatch::zero(reuse, dst, n) }
}
