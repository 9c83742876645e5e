//! Who competes: kernels of the table, this machine's libc, and the library itself, all behind the
//! same function pointers, so that nobody pays for being called differently.

use cachewise_kernels::table::{CompareFn, CopyFn, FillFn};
use cachewise_kernels::{Function, Kernel, Operation, PAGE_SIZE};
use std::ffi::c_void;

pub use cachewise_measure::record::names::{LIBC, LIBRARY, SHARED};

/// A named routine.
#[derive(Clone, Debug)]
pub struct Routine {
    /// Kernel name, [`LIBC`], or the name of a peer.
    pub name: String,
    /// Its entry point.
    pub function: Function,
}

impl From<&Kernel> for Routine {
    fn from(kernel: &Kernel) -> Routine {
        Routine { name: kernel.name.to_owned(), function: kernel.function }
    }
}

/// The byte that fills are measured with: not zero, which some CPUs store faster.
pub const FILL_BYTE: u8 = 0xA5;

/// This machine's libc for an operation; page operations are called with the block's bytes.
pub fn libc_reference(operation: Operation) -> Routine {
    let function = match operation {
        Operation::Copy => Function::Copy(as_copy(libc::memcpy)),
        Operation::Move => Function::Move(as_copy(libc::memmove)),
        Operation::Fill => Function::Fill(as_fill(libc::memset)),
        Operation::Zero => Function::Zero(libc_zero),
        Operation::Compare => Function::Compare(as_compare(libc::memcmp)),
        Operation::Equal => Function::Equal(libc_equal),
        Operation::CopyPages => Function::CopyPages(libc_copy_pages),
        Operation::ZeroPages => Function::ZeroPages(libc_zero_pages),
    };
    Routine { name: LIBC.to_owned(), function }
}

type CCopy = unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> *mut c_void;
type CCompare = unsafe extern "C" fn(*const c_void, *const c_void, usize) -> i32;
type CFill = unsafe extern "C" fn(*mut c_void, i32, usize) -> *mut c_void;

fn as_copy(function: CCopy) -> CopyFn {
    // SAFETY: the two types differ in the pointees alone, which no calling convention sees.
    unsafe { std::mem::transmute::<CCopy, CopyFn>(function) }
}

pub(crate) fn as_fill(function: CFill) -> FillFn {
    // SAFETY: the two types differ in the pointees alone, which no calling convention sees.
    unsafe { std::mem::transmute::<CFill, FillFn>(function) }
}

pub(crate) fn as_compare(function: CCompare) -> CompareFn {
    // SAFETY: the two types differ in the pointees alone, which no calling convention sees.
    unsafe { std::mem::transmute::<CCompare, CompareFn>(function) }
}

pub(crate) unsafe extern "C" fn libc_zero(dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise (`ZeroFn`).
    unsafe { libc::memset(dst.cast(), 0, n) }.cast()
}

pub(crate) unsafe extern "C" fn libc_equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise (`EqualFn`).
    let differs = unsafe { libc::memcmp(a.cast(), b.cast(), n) };
    i32::from(differs == 0)
}

unsafe extern "C" fn libc_copy_pages(dst: *mut u8, src: *const u8, order: u32) {
    // SAFETY: the caller's promise (`CopyPagesFn`).
    unsafe { libc::memcpy(dst.cast(), src.cast(), PAGE_SIZE << order) };
}

unsafe extern "C" fn libc_zero_pages(dst: *mut u8, order: u32) {
    // SAFETY: the caller's promise (`ZeroPagesFn`).
    unsafe { libc::memset(dst.cast(), 0, PAGE_SIZE << order) };
}

/// The library's own entry point for an operation: what a program that links it calls, decision
/// included. Page operations have none; they get the byte operation's.
pub fn library(operation: Operation) -> Routine {
    use cachewise::raw;
    let function = match operation {
        Operation::Copy => Function::Copy(raw::copy_nonoverlapping),
        Operation::Move => Function::Move(raw::copy),
        Operation::Fill => Function::Fill(raw::fill),
        Operation::Zero => Function::Zero(raw::zero),
        Operation::Compare => Function::Compare(raw::compare),
        Operation::Equal => Function::Equal(raw::equal_int),
        Operation::CopyPages => Function::CopyPages(library_copy_pages),
        Operation::ZeroPages => Function::ZeroPages(library_zero_pages),
    };
    Routine { name: LIBRARY.to_owned(), function }
}

unsafe extern "C" fn library_copy_pages(dst: *mut u8, src: *const u8, order: u32) {
    // SAFETY: the caller's promise (`CopyPagesFn`).
    unsafe { cachewise::raw::copy_nonoverlapping(dst, src, PAGE_SIZE << order) };
}

unsafe extern "C" fn library_zero_pages(dst: *mut u8, order: u32) {
    // SAFETY: the caller's promise (`ZeroPagesFn`).
    unsafe { cachewise::raw::zero(dst, PAGE_SIZE << order) };
}
