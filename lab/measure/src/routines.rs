//! The candidates: kernels of the table, this machine's libc, and the library itself, all behind the
//! same function pointers, so that nobody pays for being called differently.

use cachewise_kernels::{Features, Function, Kernel, Operation, PAGE_SIZE, TABLE};

pub use crate::record::names::{LIBC, LIBRARY, SHARED};

#[derive(Clone, Debug)]
pub struct Routine {
    /// Kernel name, [`LIBC`], or the name of a peer.
    pub name: String,
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
        Operation::Copy => Function::Copy(memcpy),
        Operation::Move => Function::Move(memmove),
        Operation::Fill => Function::Fill(memset),
        Operation::Zero => Function::Zero(libc_zero),
        Operation::Compare => Function::Compare(memcmp),
        Operation::Equal => Function::Equal(libc_equal),
        Operation::CopyPages => Function::CopyPages(libc_copy_pages),
        Operation::ZeroPages => Function::ZeroPages(libc_zero_pages),
    };
    Routine { name: LIBC.to_owned(), function }
}

unsafe extern "C" {
    fn memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8;
    fn memmove(dst: *mut u8, src: *const u8, n: usize) -> *mut u8;
    pub(crate) fn memset(dst: *mut u8, byte: i32, n: usize) -> *mut u8;
    pub(crate) fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32;
}

pub(crate) unsafe extern "C" fn libc_zero(dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise (`ZeroFn`).
    unsafe { memset(dst, 0, n) }
}

pub(crate) unsafe extern "C" fn libc_equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise (`EqualFn`).
    i32::from(unsafe { memcmp(a, b, n) } == 0)
}

unsafe extern "C" fn libc_copy_pages(dst: *mut u8, src: *const u8, order: u32) {
    // SAFETY: the caller's promise (`CopyPagesFn`).
    unsafe { memcpy(dst, src, PAGE_SIZE << order) };
}

unsafe extern "C" fn libc_zero_pages(dst: *mut u8, order: u32) {
    // SAFETY: the caller's promise (`ZeroPagesFn`).
    unsafe { memset(dst, 0, PAGE_SIZE << order) };
}

/// The library's own entry point for an operation: what a program that links it calls, decision
/// included. Page operations have none; what is returned is the byte operation's.
pub fn library(operation: Operation) -> Routine {
    use cachewise::raw;
    let function = match operation {
        Operation::Copy | Operation::CopyPages => Function::Copy(raw::copy_nonoverlapping),
        Operation::Move => Function::Move(raw::copy),
        Operation::Fill => Function::Fill(raw::fill),
        Operation::Zero | Operation::ZeroPages => Function::Zero(raw::zero),
        Operation::Compare => Function::Compare(raw::compare),
        Operation::Equal => Function::Equal(raw::equal_int),
    };
    Routine { name: LIBRARY.to_owned(), function }
}

/// The deployable kernels worth measuring for an operation on this CPU.
///
/// The byte-wise reference never is; integer registers are not where vectors are; members of the
/// vector families that study one parameter compete at the widest vector alone, since width and
/// parameter are independent as far as anybody has seen.
pub fn candidates(operation: Operation, available: Features) -> Vec<&'static Kernel> {
    let deployable = || {
        TABLE.iter().filter(move |kernel| {
            kernel.operation() == operation && kernel.deploy && kernel.runs_on(available)
        })
    };
    let is_family = |kernel: &Kernel| kernel.registers.bytes() >= 16;
    let widest = deployable().filter(|k| is_family(k)).map(|k| k.registers.bytes()).max();
    deployable()
        .filter(|kernel| {
            let technique = kernel.technique();
            if technique == "bytes" || (technique.starts_with("gpr") && widest.is_some()) {
                return false;
            }
            let is_member = is_family(kernel) && technique.contains('.');
            !is_member || Some(kernel.registers.bytes()) == widest
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_are_few_deployable_and_runnable() {
        let here = Features::SSE2.and(Features::AVX).and(Features::AVX2);
        let all: Vec<_> = candidates(Operation::Copy, here).iter().map(|k| k.name).collect();
        assert!(all.contains(&"copy.avx") && all.contains(&"copy.sse2"), "{all:?}");
        let is_left_out = |name: &&str| name.contains("avx512") || *name == "copy.bytes";
        assert!(!all.iter().any(is_left_out), "{all:?}");
        assert!(all.contains(&"copy.avx.ends") && all.contains(&"copy.avx.nt.ends"));
        assert!(all.contains(&"copy.avx.nt") && !all.contains(&"copy.sse2.nt.ends"), "{all:?}");
        let bare = candidates(Operation::Compare, Features::NONE);
        assert!(bare.iter().any(|kernel| kernel.technique() == "gpr64"), "{bare:?}");
    }
}
