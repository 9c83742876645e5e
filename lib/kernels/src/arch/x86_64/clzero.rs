//! AMD's `clzero`: zeroes the cache line that `rax` points into, past the caches.
//!
//! The line is 64 bytes on every CPU that has the instruction (Zen and later). It is as weakly
//! ordered as a non-temporal store, hence the fence.

use super::edge::fill_around;
use crate::PAGE_SIZE;
use crate::arch::rows::row;
use crate::isa::Features;
use crate::kernel::{Kernel, RegisterClass, StoreKind};
use core::arch::asm;

/// Zeroes `lines` cache lines and fences.
///
/// # Safety
/// `dst` is 64-byte aligned and writable for `lines` * 64 bytes, `lines` >= 1, and the CPU has
/// CLZERO.
#[inline(always)]
unsafe fn clear(dst: *mut u8, lines: usize) {
    // SAFETY: each round zeroes one whole aligned line of the caller's buffer.
    unsafe {
        asm!(
            ".p2align 4",
            "2:",
            "clzero",
            "add rax, 64",
            "dec rcx",
            "jnz 2b",
            "sfence",
            inout("rax") dst => _,
            inout("rcx") lines => _,
            options(nostack),
        );
    }
}

unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
    let body = |dst: *mut u8, lines: usize| {
        // SAFETY: the body gets one or more whole lines of the buffer from a 64-aligned address on.
        unsafe { clear(dst, lines) }
    };
    // SAFETY: the caller's promise is the callee's.
    unsafe { fill_around::<64, 64>(dst, 0, n, body) }
}

unsafe extern "C" fn zero_pages(dst: *mut u8, order: u32) {
    // SAFETY: a block of pages is 64-aligned and a whole number of lines.
    unsafe { clear(dst, (PAGE_SIZE << order) / 64) };
}

const ROW: Kernel =
    Kernel { store: StoreKind::CacheLineZero, ..row(RegisterClass::Gpr, Features::CLZERO, 0) };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "zero.clzero" like ROW, Zero(zero),
        "clzero a line at a time, temporal stores at unaligned edges, sfence (seed 000.15)";
    "zero-pages.clzero" like ROW, ZeroPages(zero_pages), "clzero a line at a time, sfence";
};
