//! 64-bit general-purpose registers: the kernels that need no vector state at all, for contexts
//! that have none to spare (kernels, signal handlers, early boot). `gpr_period.rs` holds the
//! prefetching and non-temporal members of seed 002's table that exist to be measured.

use super::edge::{around, copy as copy_edge, fill as fill_edge, fill_around, pattern};
use crate::PAGE_SIZE;
use crate::arch::rows::row;
use crate::isa::Features;
use crate::kernel::{Kernel, RegisterClass, StoreKind};
use core::arch::asm;

/// One cache line in eight load-store pairs.
macro_rules! pairs {
    ($store:literal) => {
        groups!("mov", $store, ["rax" 0] ["rdx" 8] ["rax" 16] ["rdx" 24]
            ["rax" 32] ["rdx" 40] ["rax" 48] ["rdx" 56])
    };
}
#[cfg(feature = "lab")]
pub(super) use pairs;

/// copyT. Right for overlap with the destination below the source too: each word is stored before
/// the next is loaded, and no load reaches back.
pub(super) unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    let body = |dst: *mut u8, src: *const u8, lines: usize| {
        copy_units!(dst, src, lines, loop_plain!(pairs!("mov"), 64));
    };
    // SAFETY: the caller's promise is the callee's.
    unsafe { around::<8, 64>(dst, src, n, body) }
}

/// Copies from the top down: right for overlap with the destination above the source.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes; the destination does not start below an
/// overlapping source.
pub(super) unsafe fn copy_descending(dst: *mut u8, src: *const u8, n: usize) {
    if n < 16 {
        // SAFETY: the caller's promise; below 16 bytes any overlap is allowed.
        return unsafe { copy_edge(dst, src, n) };
    }
    let tail = dst.addr().wrapping_add(n) & 7;
    let words = (n - tail) / 8;
    let (words, lines) = (words % 8, words / 8);
    let (dst_end, src_end) = (dst.wrapping_add(n - tail), src.wrapping_add(n - tail));
    // SAFETY: tail < 8 bytes, the last of the n, any overlap allowed.
    unsafe { copy_edge(dst_end, src_end, tail) };
    let head;
    // SAFETY: `lines` whole lines and then `words` words lie below the two ends inside the buffers;
    // each word is stored before the next lower one is loaded.
    unsafe {
        asm!(
            "test rcx, rcx",
            "jz 3f",
            ".p2align 4",
            "2:",
            groups!("mov", "mov", ["rax" -8] ["r8" -16] ["rax" -24] ["r8" -32]
                ["rax" -40] ["r8" -48] ["rax" -56] ["r8" -64]),
            "sub rsi, 64",
            "sub rdi, 64",
            "dec rcx",
            "jnz 2b",
            "3:",
            "test rdx, rdx",
            "jz 5f",
            "4:",
            "mov rax, [rsi - 8]",
            "mov [rdi - 8], rax",
            "sub rsi, 8",
            "sub rdi, 8",
            "dec rdx",
            "jnz 4b",
            "5:",
            inout("rdi") dst_end => head,
            inout("rsi") src_end => _,
            inout("rcx") lines => _,
            inout("rdx") words => _,
            out("rax") _,
            out("r8") _,
            options(nostack),
        );
    }
    let head: *mut u8 = head;
    // SAFETY: fewer than 8 bytes are left at the front, any overlap allowed.
    unsafe { copy_edge(dst, src, head.addr() - dst.addr()) };
}

unsafe extern "C" fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    if dst.addr().wrapping_sub(src.addr()) >= n {
        // SAFETY: the destination does not start inside the source, so ascending is right.
        return unsafe { copy(dst, src, n) };
    }
    // SAFETY: the destination starts inside the source, so descending is right.
    unsafe { copy_descending(dst, src, n) };
    dst
}

/// Runs a loop that stores `rax` over `$units` of 64 bytes each from `$dst` on.
macro_rules! store_lines {
    ($store:literal, $last:literal, $dst:expr, $pattern:expr, $units:expr) => {
        // SAFETY: one or more whole lines of the caller's buffer from an 8-aligned address on, as
        // the caller of the kernel or `fill_around` has it.
        unsafe {
            asm!(
                ".p2align 4",
                "2:",
                concat!($store, " [rdi], rax"),
                concat!($store, " [rdi + 8], rax"),
                concat!($store, " [rdi + 16], rax"),
                concat!($store, " [rdi + 24], rax"),
                concat!($store, " [rdi + 32], rax"),
                concat!($store, " [rdi + 40], rax"),
                concat!($store, " [rdi + 48], rax"),
                concat!($store, " [rdi + 56], rax"),
                "add rdi, 64",
                "dec rcx",
                "jnz 2b",
                $last,
                inout("rdi") $dst => _,
                inout("rcx") $units => _,
                in("rax") $pattern,
                options(nostack),
            )
        }
    };
}
#[cfg(feature = "lab")]
pub(super) use store_lines;

/// Stores the eight equal bytes of `pattern` over `n` bytes.
///
/// # Safety
/// `dst` is writable for `n` bytes.
#[inline(always)]
unsafe fn fill_pattern(dst: *mut u8, pattern: u64, n: usize) -> *mut u8 {
    if n < 64 {
        // SAFETY: the caller's promise is the callee's.
        unsafe { fill_edge(dst, pattern, n) };
        return dst;
    }
    let body = |dst: *mut u8, lines: usize| store_lines!("mov", "", dst, pattern, lines);
    // SAFETY: the caller's promise is the callee's.
    unsafe { fill_around::<8, 64>(dst, pattern, n, body) }
}

unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise is the callee's.
    unsafe { fill_pattern(dst, pattern(byte), n) }
}

unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise is the callee's.
    unsafe { fill_pattern(dst, 0, n) }
}

/// Offset of the first pair of 8-byte windows that differ: the windows step by eight, but the
/// last one ends with the buffer. `n - 8` when none differs.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes, and `n` >= 8.
#[inline(always)]
unsafe fn first_difference(a: *const u8, b: *const u8, n: usize) -> usize {
    let at: usize;
    // SAFETY: r8 = n - 8 is the last window; every window loaded begins at or below it.
    unsafe {
        asm!(
            "xor eax, eax",
            ".p2align 4",
            "2:", // four words at once while they lie below the last window
            "lea r9, [rax + 32]",
            "cmp r9, r8",
            "ja 3f",
            "mov rdx, [rsi + rax]",
            "mov r10, [rsi + rax + 8]",
            "xor rdx, [rdi + rax]",
            "xor r10, [rdi + rax + 8]",
            "or rdx, r10",
            "mov r10, [rsi + rax + 16]",
            "mov rcx, [rsi + rax + 24]",
            "xor r10, [rdi + rax + 16]",
            "xor rcx, [rdi + rax + 24]",
            "or rdx, r10",
            "or rdx, rcx",
            "jnz 3f",
            "mov rax, r9",
            "jmp 2b",
            "3:", // one word at a time; finds which of the four it was
            "cmp rax, r8",
            "jae 4f",
            "mov rdx, [rsi + rax]",
            "cmp rdx, [rdi + rax]",
            "jne 5f",
            "add rax, 8",
            "jmp 3b",
            "4:",
            "mov rax, r8",
            "5:",
            in("rsi") a,
            in("rdi") b,
            in("r8") n - 8,
            out("rax") at,
            out("rcx") _,
            out("rdx") _,
            out("r9") _,
            out("r10") _,
            options(nostack, readonly),
        );
    }
    at
}

/// The eight bytes at `p` as a number whose order is theirs.
///
/// # Safety
/// `p` is readable for 8 bytes.
#[inline(always)]
unsafe fn window(p: *const u8) -> u64 {
    // SAFETY: the caller vouches for 8 bytes; the read needs no alignment.
    u64::from_be(unsafe { p.cast::<u64>().read_unaligned() })
}

/// Up to seven bytes as a number; for two buffers of the same `n`, order is theirs.
///
/// # Safety
/// `p` is readable for `n` bytes, `n` < 8.
#[inline(always)]
unsafe fn short_window(p: *const u8, n: usize) -> u64 {
    if n >= 4 {
        // SAFETY: n >= 4.
        let first = unsafe { p.cast::<u32>().read_unaligned() };
        // SAFETY: the last four of n >= 4 bytes.
        let last = unsafe { p.wrapping_add(n - 4).cast::<u32>().read_unaligned() };
        u64::from(u32::from_be(first)) << 32 | u64::from(u32::from_be(last))
    } else if n >= 2 {
        // SAFETY: n >= 2.
        let first = unsafe { p.cast::<u16>().read_unaligned() };
        // SAFETY: the last two of n >= 2 bytes.
        let last = unsafe { p.wrapping_add(n - 2).cast::<u16>().read_unaligned() };
        u64::from(u16::from_be(first)) << 16 | u64::from(u16::from_be(last))
    } else if n == 1 {
        // SAFETY: n == 1.
        u64::from(unsafe { p.read() })
    } else {
        0
    }
}

/// The two numbers whose order is that of the buffers.
///
/// # Safety
/// `a` and `b` are readable for `n` bytes.
#[inline(always)]
unsafe fn deciding_windows(a: *const u8, b: *const u8, n: usize) -> (u64, u64) {
    if n < 8 {
        // SAFETY: the caller vouches for n bytes at a.
        let left = unsafe { short_window(a, n) };
        // SAFETY: the caller vouches for n bytes at b.
        let right = unsafe { short_window(b, n) };
        return (left, right);
    }
    // SAFETY: n >= 8 bytes at both.
    let at = unsafe { first_difference(a, b, n) };
    // SAFETY: at <= n - 8.
    let left = unsafe { window(a.wrapping_add(at)) };
    // SAFETY: at <= n - 8.
    let right = unsafe { window(b.wrapping_add(at)) };
    (left, right)
}

unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise is the callee's.
    let (left, right) = unsafe { deciding_windows(a, b, n) };
    i32::from(left > right) - i32::from(left < right)
}

unsafe extern "C" fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise is the callee's.
    let (left, right) = unsafe { deciding_windows(a, b, n) };
    i32::from(left == right)
}

unsafe extern "C" fn copy_pages(dst: *mut u8, src: *const u8, order: u32) {
    copy_units!(dst, src, (PAGE_SIZE << order) / 64, loop_plain!(pairs!("mov"), 64));
}

unsafe extern "C" fn copy_pages_nt(dst: *mut u8, src: *const u8, order: u32) {
    let lines = (PAGE_SIZE << order) / 64;
    copy_units!(dst, src, lines, concat!(loop_plain!(pairs!("movnti"), 64), "sfence"));
}

unsafe extern "C" fn zero_pages(dst: *mut u8, order: u32) {
    store_lines!("mov", "", dst, 0u64, (PAGE_SIZE << order) / 64);
}

unsafe extern "C" fn zero_pages_nt(dst: *mut u8, order: u32) {
    store_lines!("movnti", "sfence", dst, 0u64, (PAGE_SIZE << order) / 64);
}

const COPY: Kernel = row(RegisterClass::Gpr, Features::NONE, 1);
const STORE: Kernel = Kernel { grouping: 0, ..COPY };
const COMPARE: Kernel = Kernel { store: StoreKind::None, ..STORE };
const NT: Kernel = Kernel { requires: Features::SSE2, store: StoreKind::NonTemporal, ..COPY };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "copy.gpr64" like COPY, Copy(copy) { aliases: &["copyT"] },
        "seed 002 copyT: movq through integer registers, load-store pairs, unrolled 64 bytes";
    "move.gpr64" like COPY, Move(r#move),
        "64-bit load-store pairs, unrolled 64 bytes, in the direction that overlap allows";
    "fill.gpr64" like STORE, Fill(fill), "64-bit integer stores, unrolled 64 bytes";
    "zero.gpr64" like STORE, Zero(zero), "64-bit integer stores, unrolled 64 bytes";
    "compare.gpr64" like COMPARE, Compare(compare),
        "64-bit words, 32 bytes a round; byte-swapped where they differ (seed 004.1)";
    "equal.gpr64" like COMPARE, Equal(equal), "64-bit words, 32 bytes a round, differences or-ed together";
    "copy-pages.gpr64" like COPY, CopyPages(copy_pages), "the loop of copy.gpr64 without edges";
    "copy-pages.gpr64.nt" like NT, CopyPages(copy_pages_nt),
        "64-bit loads and movnti in pairs, unrolled 64 bytes, sfence";
    "zero-pages.gpr64" like STORE, ZeroPages(zero_pages), "the loop of zero.gpr64 without edges";
    "zero-pages.gpr64.nt" like NT, ZeroPages(zero_pages_nt) { grouping: 0 },
        "movnti, unrolled 64 bytes, sfence: FreeBSD's page zeroing (seed 002.13)";
};
