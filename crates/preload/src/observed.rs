//! What the exported functions become where somebody watches: each counts its call and then does
//! it, and every call of at least [`LARGE`] bytes asks [`large`] how, with the place it came from.
//!
//! The stubs hand the return address, which is where the program will go on, to functions written
//! in Rust, as an argument after those of the C function.

use crate::entries::plain;
use crate::statistics::{self, Operation};
use cachewise::{Reuse, raw};
use core::arch::naked_asm;

/// Calls of so many bytes and more are told apart by where they come from: below that the time of
/// a call is too short for its place to matter.
pub(crate) const LARGE: usize = 64 << 10;

/// Where a call comes from: its return address.
pub(crate) type Site = *const u8;

/// Every call of at least [`LARGE`] bytes passes here, with its place, and is done under the hint
/// that comes back. This is where a policy by call site belongs; there is none yet.
fn large(operation: Operation, n: usize, site: Site) -> Reuse {
    statistics::count_site(operation, n, site);
    Reuse::Unknown
}

/// Counts a call; the hint to do it under.
fn observe(operation: Operation, n: usize, site: Site) -> Reuse {
    statistics::count(operation, n);
    if n < LARGE { Reuse::Unknown } else { large(operation, n, site) }
}

unsafe extern "C" fn memcpy(dst: *mut u8, src: *const u8, n: usize, site: Site) -> *mut u8 {
    let reuse = observe(Operation::Copy, n, site);
    if plain::overlap(dst, src, n) && dst.cast_const() != src {
        statistics::count_overlap(n, site);
    }
    match reuse {
        // SAFETY: the caller's promise.
        Reuse::Unknown => unsafe { plain::memcpy(dst, src, n) },
        // SAFETY: the caller's promise.
        _ if plain::overlap(dst, src, n) => unsafe { raw::copy_with(reuse, dst, src, n) },
        // SAFETY: the caller's promise, and the buffers do not overlap.
        _ => unsafe { raw::copy_nonoverlapping_with(reuse, dst, src, n) },
    }
}

unsafe extern "C" fn memmove(dst: *mut u8, src: *const u8, n: usize, site: Site) -> *mut u8 {
    let reuse = observe(Operation::Move, n, site);
    match reuse {
        // SAFETY: the caller's promise.
        Reuse::Unknown => unsafe { raw::copy(dst, src, n) },
        // SAFETY: the caller's promise.
        _ => unsafe { raw::copy_with(reuse, dst, src, n) },
    }
}

unsafe extern "C" fn mempcpy(dst: *mut u8, src: *const u8, n: usize, site: Site) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { memcpy(dst, src, n, site) };
    dst.wrapping_add(n)
}

unsafe extern "C" fn memset(dst: *mut u8, byte: i32, n: usize, site: Site) -> *mut u8 {
    if byte as u8 == 0 {
        // SAFETY: the caller's promise.
        return unsafe { zero(dst, n, site) };
    }
    let reuse = observe(Operation::Fill, n, site);
    match reuse {
        // SAFETY: the caller's promise.
        Reuse::Unknown => unsafe { raw::fill(dst, byte, n) },
        // SAFETY: the caller's promise.
        _ => unsafe { raw::fill_with(reuse, dst, byte, n) },
    }
}

unsafe extern "C" fn zero(dst: *mut u8, n: usize, site: Site) -> *mut u8 {
    let reuse = observe(Operation::Zero, n, site);
    match reuse {
        // SAFETY: the caller's promise.
        Reuse::Unknown => unsafe { raw::zero(dst, n) },
        // SAFETY: the caller's promise.
        _ => unsafe { raw::zero_with(reuse, dst, n) },
    }
}

unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize, site: Site) -> i32 {
    // A hint makes no difference to a comparison.
    observe(Operation::Compare, n, site);
    // SAFETY: the caller's promise.
    unsafe { raw::compare(a, b, n) }
}

unsafe extern "C" fn memcpy_checked(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    room: usize,
    site: Site,
) -> *mut u8 {
    if room < n {
        plain::overflow();
    }
    // SAFETY: the caller's promise.
    unsafe { memcpy(dst, src, n, site) }
}

unsafe extern "C" fn memmove_checked(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    room: usize,
    site: Site,
) -> *mut u8 {
    if room < n {
        plain::overflow();
    }
    // SAFETY: the caller's promise.
    unsafe { memmove(dst, src, n, site) }
}

unsafe extern "C" fn mempcpy_checked(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    room: usize,
    site: Site,
) -> *mut u8 {
    if room < n {
        plain::overflow();
    }
    // SAFETY: the caller's promise.
    unsafe { mempcpy(dst, src, n, site) }
}

unsafe extern "C" fn memset_checked(
    dst: *mut u8,
    byte: i32,
    n: usize,
    room: usize,
    site: Site,
) -> *mut u8 {
    if room < n {
        plain::overflow();
    }
    // SAFETY: the caller's promise.
    unsafe { memset(dst, byte, n, site) }
}

unsafe extern "C" fn zero_checked(dst: *mut u8, n: usize, room: usize, site: Site) -> *mut u8 {
    if room < n {
        plain::overflow();
    }
    // SAFETY: the caller's promise.
    unsafe { zero(dst, n, site) }
}

/// Stubs: the return address, which is on top of the stack, goes where the next argument goes.
macro_rules! stubs {
    ($($name:ident: $register:literal, $target:ident;)*) => {
        mod stub {
            use super::naked_asm;
            $(#[unsafe(naked)]
            pub(super) unsafe extern "C" fn $name() {
                naked_asm!(
                    concat!("mov ", $register, ", [rsp]"),
                    "jmp {}",
                    sym super::$target,
                )
            })*
        }

        /// Exported functions and what takes their place, as addresses.
        pub(crate) fn replacements() -> [(usize, usize); [$(stringify!($name)),*].len()] {
            [$((
                crate::entries::$name as *const () as usize,
                stub::$name as *const () as usize,
            )),*]
        }
    };
}

stubs! {
    memcpy: "rcx", memcpy;
    memmove: "rcx", memmove;
    mempcpy: "rcx", mempcpy;
    memset: "rcx", memset;
    memcmp: "rcx", memcmp;
    bcmp: "rcx", memcmp;
    bzero: "rdx", zero;
    explicit_bzero: "rdx", zero;
    memset_explicit: "rcx", memset;
    __memcpy_chk: "r8", memcpy_checked;
    __memmove_chk: "r8", memmove_checked;
    __mempcpy_chk: "r8", mempcpy_checked;
    __memset_chk: "r8", memset_checked;
    __explicit_bzero_chk: "rcx", zero_checked;
    __memset_explicit_chk: "r8", memset_checked;
}
