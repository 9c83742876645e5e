//! Edges of kernels: the bytes before the aligned body and those after it.
//!
//! General-purpose registers only, so that a kernel keeps the register class its row states. Edges
//! are shorter than one unit of the body plus its alignment; the loops here are written for that.

use core::arch::asm;

/// Copies `n` bytes, eight at a time and the last eight (loaded first, stored last) across what is
/// left over.
///
/// Ascending: right as well when the destination starts below an overlapping source, and for any
/// overlap at all when `n` < 16, for then every load comes before the first store.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes, and the overlap is one of those above.
#[inline]
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, n: usize) {
    // SAFETY: every access lies in [0, n) of its buffer by the comparisons before it.
    unsafe {
        asm!(
            "cmp rcx, 8",
            "jb 4f",
            "mov rax, [rsi + rcx - 8]",
            "lea r8, [rdi + rcx - 8]",
            "2:",
            "cmp rdi, r8",
            "jae 3f",
            "mov rdx, [rsi]",
            "mov [rdi], rdx",
            "add rsi, 8",
            "add rdi, 8",
            "jmp 2b",
            "3:",
            "mov [r8], rax",
            "jmp 7f",
            "4:",
            "test cl, 4",
            "jz 5f",
            "mov eax, [rsi]",
            "mov edx, [rsi + rcx - 4]",
            "mov [rdi], eax",
            "mov [rdi + rcx - 4], edx",
            "jmp 7f",
            "5:",
            "test cl, 2",
            "jz 6f",
            "movzx eax, word ptr [rsi]",
            "movzx edx, word ptr [rsi + rcx - 2]",
            "mov [rdi], ax",
            "mov [rdi + rcx - 2], dx",
            "jmp 7f",
            "6:",
            "test ecx, ecx",
            "jz 7f",
            "movzx eax, byte ptr [rsi]",
            "mov [rdi], al",
            "7:",
            inout("rdi") dst => _,
            inout("rsi") src => _,
            in("rcx") n,
            out("rax") _,
            out("rdx") _,
            out("r8") _,
            options(nostack),
        );
    }
}

/// Stores `n` bytes of `pattern`, whose eight bytes are equal.
///
/// # Safety
/// `dst` is writable for `n` bytes.
#[inline]
pub(super) unsafe fn fill(dst: *mut u8, pattern: u64, n: usize) {
    // SAFETY: every access lies in [0, n) by the comparisons before it.
    unsafe {
        asm!(
            "cmp rcx, 8",
            "jb 4f",
            "lea r8, [rdi + rcx - 8]",
            "2:",
            "cmp rdi, r8",
            "jae 3f",
            "mov [rdi], rax",
            "add rdi, 8",
            "jmp 2b",
            "3:",
            "mov [r8], rax",
            "jmp 7f",
            "4:",
            "test cl, 4",
            "jz 5f",
            "mov [rdi], eax",
            "mov [rdi + rcx - 4], eax",
            "jmp 7f",
            "5:",
            "test cl, 2",
            "jz 6f",
            "mov [rdi], ax",
            "mov [rdi + rcx - 2], ax",
            "jmp 7f",
            "6:",
            "test ecx, ecx",
            "jz 7f",
            "mov [rdi], al",
            "7:",
            inout("rdi") dst => _,
            in("rcx") n,
            in("rax") pattern,
            out("r8") _,
            options(nostack),
        );
    }
}

/// Eight copies of the low byte of `byte`.
#[inline]
pub(super) const fn pattern(byte: i32) -> u64 {
    byte as u8 as u64 * 0x0101_0101_0101_0101
}

/// Bytes from `dst` to the next multiple of `align`.
#[inline]
pub(super) fn to_alignment(dst: *mut u8, align: usize) -> usize {
    dst.addr().wrapping_neg() & (align - 1)
}

/// Copies `n` bytes: a head until the destination is `ALIGN`-aligned, then as many whole units of
/// `UNIT` bytes as there are by `body(dst, src, units)`, called once or not at all, then the rest.
///
/// Head, body and tail are disjoint and in ascending order, so the whole is right for overlap with
/// the destination below the source if the body is.
///
/// # Safety
/// `src` is readable and `dst` writable for `n` bytes; they do not overlap, or in the way above.
#[inline(always)]
pub(super) unsafe fn around<const ALIGN: usize, const UNIT: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    body: impl FnOnce(*mut u8, *const u8, usize),
) -> *mut u8 {
    let head = to_alignment(dst, ALIGN);
    if n < head + UNIT {
        // SAFETY: the caller's promise is the callee's.
        unsafe { copy(dst, src, n) };
        return dst;
    }
    // SAFETY: head <= n.
    unsafe { copy(dst, src, head) };
    let units = (n - head) / UNIT;
    body(dst.wrapping_add(head), src.wrapping_add(head), units);
    let done = head + units * UNIT;
    // SAFETY: done <= n, and n - done bytes are left after it.
    unsafe { copy(dst.wrapping_add(done), src.wrapping_add(done), n - done) };
    dst
}

/// Fills `n` bytes in the same three parts as [`around`].
///
/// # Safety
/// `dst` is writable for `n` bytes.
#[inline(always)]
pub(super) unsafe fn fill_around<const ALIGN: usize, const UNIT: usize>(
    dst: *mut u8,
    pattern: u64,
    n: usize,
    body: impl FnOnce(*mut u8, usize),
) -> *mut u8 {
    let head = to_alignment(dst, ALIGN);
    if n < head + UNIT {
        // SAFETY: the caller's promise is the callee's.
        unsafe { fill(dst, pattern, n) };
        return dst;
    }
    // SAFETY: head <= n.
    unsafe { fill(dst, pattern, head) };
    let units = (n - head) / UNIT;
    body(dst.wrapping_add(head), units);
    let done = head + units * UNIT;
    // SAFETY: done <= n, and n - done bytes are left after it.
    unsafe { fill(dst.wrapping_add(done), pattern, n - done) };
    dst
}
