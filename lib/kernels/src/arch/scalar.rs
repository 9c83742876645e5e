//! Reference semantics: one byte at a time, in order. The oracle of every test, and the fallback
//! on a CPU for which nothing else is known. Clarity is the only goal here; each loop runs through
//! an optimisation barrier so that it stays the loop it is read as.

use super::rows::row;
use crate::PAGE_SIZE;
use crate::isa::Features;
use crate::kernel::{Kernel, RegisterClass, StoreKind};

/// Copies byte by byte, ascending. Contract of [`CopyFn`](crate::kernel::CopyFn).
///
/// # Safety
/// As [`CopyFn`](crate::kernel::CopyFn).
pub unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    for i in 0..n {
        // SAFETY: i < n, and the caller vouches for n bytes at src.
        let byte = unsafe { src.wrapping_add(i).read_volatile() };
        // SAFETY: i < n, and the caller vouches for n bytes at dst.
        unsafe { dst.wrapping_add(i).write_volatile(byte) };
    }
    dst
}

/// Copies byte by byte, descending when the destination starts inside the source. Contract of
/// [`MoveFn`](crate::kernel::MoveFn).
///
/// # Safety
/// As [`MoveFn`](crate::kernel::MoveFn).
pub unsafe extern "C" fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    if dst.addr().wrapping_sub(src.addr()) >= n {
        // SAFETY: the caller's promise is the callee's, but for overlap: the destination does not
        // start inside the source, so ascending order reads every byte before it is overwritten.
        return unsafe { copy(dst, src, n) };
    }
    for i in (0..n).rev() {
        // SAFETY: i < n, and the caller vouches for n bytes at src.
        let byte = unsafe { src.wrapping_add(i).read_volatile() };
        // SAFETY: i < n, and the caller vouches for n bytes at dst.
        unsafe { dst.wrapping_add(i).write_volatile(byte) };
    }
    dst
}

/// Stores the low byte of `byte` in every place. Contract of [`FillFn`](crate::kernel::FillFn).
///
/// # Safety
/// As [`FillFn`](crate::kernel::FillFn).
pub unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    for i in 0..n {
        // SAFETY: i < n, and the caller vouches for n bytes at dst.
        unsafe { dst.wrapping_add(i).write_volatile(byte as u8) };
    }
    dst
}

/// Stores zero in every place. Contract of [`ZeroFn`](crate::kernel::ZeroFn).
///
/// # Safety
/// As [`ZeroFn`](crate::kernel::ZeroFn).
pub unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise is the callee's.
    unsafe { fill(dst, 0, n) }
}

/// The difference of the first pair of bytes that differ, or 0. Contract of
/// [`CompareFn`](crate::kernel::CompareFn).
///
/// # Safety
/// As [`CompareFn`](crate::kernel::CompareFn).
pub unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    for i in 0..n {
        // SAFETY: i < n, and the caller vouches for n bytes at a.
        let left = unsafe { a.wrapping_add(i).read_volatile() };
        // SAFETY: i < n, and the caller vouches for n bytes at b.
        let right = unsafe { b.wrapping_add(i).read_volatile() };
        if left != right {
            return i32::from(left) - i32::from(right);
        }
    }
    0
}

/// 1 when no byte differs, else 0. Contract of [`EqualFn`](crate::kernel::EqualFn).
///
/// # Safety
/// As [`EqualFn`](crate::kernel::EqualFn).
pub unsafe extern "C" fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise is the callee's.
    let difference = unsafe { compare(a, b, n) };
    i32::from(difference == 0)
}

/// Copies a block of pages. Contract of [`CopyPagesFn`](crate::kernel::CopyPagesFn).
///
/// # Safety
/// As [`CopyPagesFn`](crate::kernel::CopyPagesFn).
pub unsafe extern "C" fn copy_pages(dst: *mut u8, src: *const u8, order: u32) {
    // SAFETY: the caller vouches for PAGE_SIZE << order bytes at both.
    unsafe { copy(dst, src, PAGE_SIZE << order) };
}

/// Zeroes a block of pages. Contract of [`ZeroPagesFn`](crate::kernel::ZeroPagesFn).
///
/// # Safety
/// As [`ZeroPagesFn`](crate::kernel::ZeroPagesFn).
pub unsafe extern "C" fn zero_pages(dst: *mut u8, order: u32) {
    // SAFETY: the caller vouches for PAGE_SIZE << order bytes.
    unsafe { fill(dst, 0, PAGE_SIZE << order) };
}

const ROW: Kernel = row(RegisterClass::Gpr, Features::NONE, 1);
const COMPARE: Kernel = Kernel { store: StoreKind::None, ..ROW };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "copy.bytes" like ROW, Copy(copy), "one byte at a time, ascending: the reference";
    "move.bytes" like ROW, Move(r#move),
        "one byte at a time, in the direction that overlap allows: the reference";
    "fill.bytes" like ROW, Fill(fill), "one byte at a time: the reference";
    "zero.bytes" like ROW, Zero(zero), "one byte at a time: the reference";
    "compare.bytes" like COMPARE, Compare(compare), "one pair of bytes at a time: the reference";
    "equal.bytes" like COMPARE, Equal(equal), "one pair of bytes at a time: the reference";
    "copy-pages.bytes" like ROW, CopyPages(copy_pages), "one byte at a time: the reference";
    "zero-pages.bytes" like ROW, ZeroPages(zero_pages), "one byte at a time: the reference";
};
