//! The exported functions: each counts its call and then does it as `libcachewise_preload.so` does.
//!
//! On x86-64 a stub hands the return address, which is where the program will go on, to a function
//! written in Rust, as an argument after those of the C function. Elsewhere calls are counted
//! without the place that they come from.

use crate::statistics::{self, LARGE, Operation, Site};
use cachewise::raw;

fn count(operation: Operation, n: usize, site: Site) {
    statistics::count(operation, n);
    if n >= LARGE {
        statistics::count_site(operation, n, site);
    }
}

/// Returns whether two buffers of `n` bytes share any.
fn overlap(dst: *const u8, src: *const u8, n: usize) -> bool {
    let distance = dst.addr().wrapping_sub(src.addr());
    distance < n || distance.wrapping_neg() < n
}

/// # Safety
/// `memmove`'s contract.
unsafe extern "C" fn memcpy(dst: *mut u8, src: *const u8, n: usize, site: Site) -> *mut u8 {
    count(Operation::Copy, n, site);
    if !overlap(dst, src, n) {
        // SAFETY: the caller's promise, and the buffers do not overlap.
        return unsafe { raw::copy_nonoverlapping(dst, src, n) };
    }
    if dst.cast_const() != src {
        statistics::count_overlap(n, site);
    }
    // SAFETY: the caller's promise.
    unsafe { raw::copy(dst, src, n) }
}

/// # Safety
/// `memmove`'s contract.
unsafe extern "C" fn memmove(dst: *mut u8, src: *const u8, n: usize, site: Site) -> *mut u8 {
    count(Operation::Move, n, site);
    // SAFETY: the caller's promise.
    unsafe { raw::copy(dst, src, n) }
}

/// # Safety
/// `memmove`'s contract.
unsafe extern "C" fn mempcpy(dst: *mut u8, src: *const u8, n: usize, site: Site) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { memcpy(dst, src, n, site) };
    dst.wrapping_add(n)
}

/// # Safety
/// `memset`'s contract.
unsafe extern "C" fn memset(dst: *mut u8, byte: i32, n: usize, site: Site) -> *mut u8 {
    if byte as u8 == 0 {
        // SAFETY: the caller's promise.
        return unsafe { zero(dst, n, site) };
    }
    count(Operation::Fill, n, site);
    // SAFETY: the caller's promise.
    unsafe { raw::fill(dst, byte, n) }
}

/// # Safety
/// `dst` is writable for `n` bytes.
unsafe extern "C" fn zero(dst: *mut u8, n: usize, site: Site) -> *mut u8 {
    count(Operation::Zero, n, site);
    // SAFETY: the caller's promise.
    unsafe { raw::zero(dst, n) }
}

/// # Safety
/// `memcmp`'s contract.
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize, site: Site) -> i32 {
    count(Operation::Compare, n, site);
    // SAFETY: the caller's promise.
    unsafe { raw::compare(a, b, n) }
}

/// The forms that end the program where `n` exceeds `room`.
macro_rules! checked {
    ($($name:ident($($argument:ident: $type:ty),*; $n:ident) = $target:ident;)*) => {$(
        /// # Safety
        /// As the unchecked form.
        unsafe extern "C" fn $name($($argument: $type,)* room: usize, site: Site) -> *mut u8 {
            if room < $n {
                cachewise::overflow();
            }
            // SAFETY: the caller's promise.
            unsafe { $target($($argument,)* site) }
        }
    )*};
}

checked! {
    memcpy_checked(dst: *mut u8, src: *const u8, n: usize; n) = memcpy;
    memmove_checked(dst: *mut u8, src: *const u8, n: usize; n) = memmove;
    mempcpy_checked(dst: *mut u8, src: *const u8, n: usize; n) = mempcpy;
    memset_checked(dst: *mut u8, byte: i32, n: usize; n) = memset;
    zero_checked(dst: *mut u8, n: usize; n) = zero;
}

/// Exported functions: their arguments, the register of the argument after them, and what does the work.
macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty, $register:literal, $target:ident;)*) => {
        #[cfg(target_arch = "x86_64")]
        mod exported {
            use core::arch::naked_asm;
            $(
                /// Counts, and does what its namesake in the C library does.
                ///
                /// # Safety
                /// As there.
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                    naked_asm!(
                        concat!("mov ", $register, ", [rsp]"),
                        "jmp {}",
                        sym super::$target,
                    )
                }
            )*
        }

        #[cfg(not(target_arch = "x86_64"))]
        mod exported {
            $(
                /// Counts, and does what its namesake in the C library does.
                ///
                /// # Safety
                /// As there.
                #[unsafe(no_mangle)]
                pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                    // SAFETY: the caller's promise.
                    unsafe { super::$target($($argument,)* core::ptr::null()) }
                }
            )*
        }
    };
}

exported! {
    memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8, "rcx", memcpy;
    memmove(dst: *mut u8, src: *const u8, n: usize) -> *mut u8, "rcx", memmove;
    mempcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8, "rcx", mempcpy;
    memset(dst: *mut u8, byte: i32, n: usize) -> *mut u8, "rcx", memset;
    memcmp(a: *const u8, b: *const u8, n: usize) -> i32, "rcx", memcmp;
    bcmp(a: *const u8, b: *const u8, n: usize) -> i32, "rcx", memcmp;
    bzero(dst: *mut u8, n: usize) -> *mut u8, "rdx", zero;
    explicit_bzero(dst: *mut u8, n: usize) -> *mut u8, "rdx", zero;
    memset_explicit(dst: *mut u8, byte: i32, n: usize) -> *mut u8, "rcx", memset;
    __memcpy_chk(dst: *mut u8, src: *const u8, n: usize, room: usize) -> *mut u8, "r8", memcpy_checked;
    __memmove_chk(dst: *mut u8, src: *const u8, n: usize, room: usize) -> *mut u8, "r8", memmove_checked;
    __mempcpy_chk(dst: *mut u8, src: *const u8, n: usize, room: usize) -> *mut u8, "r8", mempcpy_checked;
    __memset_chk(dst: *mut u8, byte: i32, n: usize, room: usize) -> *mut u8, "r8", memset_checked;
    __explicit_bzero_chk(dst: *mut u8, n: usize, room: usize) -> *mut u8, "rcx", zero_checked;
    __memset_explicit_chk(dst: *mut u8, byte: i32, n: usize, room: usize) -> *mut u8, "r8", memset_checked;
}
