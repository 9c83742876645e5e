//! Decisions that look at the operands: the C library's routine where source and destination are aligned to each
//! other and not aliased, else a kernel.
//!
//! String instructions and loops of aligned vectors are at their best where both operands are on lines at once, and
//! many times slower where stores meet later loads in the lower twelve bits of the address. So a kernel may gain in
//! every state but the first, which libc keeps (`docs/decisions/the-tuner.md`). The test costs four instructions.

#![cfg_attr(
    not(all(feature = "os", target_os = "linux", target_arch = "x86_64")),
    allow(dead_code, unused_imports, reason = "no kernel of another architecture has such states")
)]

use crate::slots::{self, Slot, libc_slot};
#[cfg(all(feature = "os", target_os = "linux"))]
use crate::system as libc;
use cachewise_kernels::kernel::CopyFn;
use cachewise_kernels::{Function, Kernel, Operation, TABLE};
use core::ffi::CStr;

/// Behind a kernel's name in a decision: the C library's routine does what is aligned.
pub const OR_LIBC: &str = ".or-libc";

/// Bytes of a line, to which vectors of any width are aligned.
const LINE: usize = 64;

/// Bits of the distance of which one is set where the destination is not within 256 bytes above the source, modulo 4096.
const APART: usize = 0xF00;

/// Returns whether the C library does it.
#[inline(always)]
fn is_aligned(dst: *mut u8, src: *const u8) -> bool {
    let above = dst.addr().wrapping_sub(src.addr());
    above.is_multiple_of(LINE) && above & APART != 0
}

/// The kernel of a technique; the first of the table, which is never called, where this architecture has none.
const fn kernel_of(operation: Operation, technique: &str) -> CopyFn {
    let slot = slots::named(operation, technique.as_bytes());
    let place = match slots::place(operation, slot) {
        Some(place) => place,
        None => slots::FIRST_COPY,
    };
    match TABLE[place].function {
        Function::Copy(function) | Function::Move(function) => function,
        _ => panic!("a copy or a move"),
    }
}

/// The functions by technique, and the names of the decisions.
macro_rules! by_operands {
    ($count:literal, $($at:literal $technique:literal),*) => {
        const TECHNIQUES: [&str; $count] = [$($technique),*];
        pub(crate) const COPIES: [CopyFn; $count] = [$(copy::<$at>),*];
        pub(crate) const MOVES: [CopyFn; $count] = [$(r#move::<$at>),*];
        static NAMES: [[&CStr; $count]; 2] = [
            [$(name(concat!("copy.", $technique, ".or-libc\0"))),*],
            [$(name(concat!("move.", $technique, ".or-libc\0"))),*],
        ];
    };
}

const fn name(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("one NUL, at the end"),
    }
}

#[cfg(all(feature = "os", target_os = "linux", target_arch = "x86_64"))]
by_operands! { 6, 0 "sse2", 1 "sse2.ends", 2 "avx", 3 "avx.ends", 4 "avx512", 5 "avx512.ends" }
#[cfg(not(all(feature = "os", target_os = "linux", target_arch = "x86_64")))]
by_operands! { 0, }

/// # Safety
/// `memcpy`'s contract; the table leads here after `system::found` said yes, on a CPU that runs the kernel.
#[cfg(all(feature = "os", target_os = "linux", target_arch = "x86_64"))]
unsafe extern "C" fn copy<const AT: usize>(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    let kernel = const { kernel_of(Operation::Copy, TECHNIQUES[AT]) };
    if is_aligned(dst, src) {
        // SAFETY: the caller's promise.
        return unsafe { libc::copy(dst, src, n) };
    }
    // SAFETY: the caller's promise.
    unsafe { kernel(dst, src, n) }
}

/// # Safety
/// As [`copy`], with `memmove`'s contract.
#[cfg(all(feature = "os", target_os = "linux", target_arch = "x86_64"))]
unsafe extern "C" fn r#move<const AT: usize>(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    let kernel = const { kernel_of(Operation::Move, TECHNIQUES[AT]) };
    if is_aligned(dst, src) {
        // SAFETY: the caller's promise.
        return unsafe { libc::r#move(dst, src, n) };
    }
    // SAFETY: the caller's promise.
    unsafe { kernel(dst, src, n) }
}

/// The slot of a decision for the kernel where the operands are not aligned; `None` where there is no such decision.
pub(crate) fn slot_of(kernel: &Kernel) -> Option<Slot> {
    let operation = kernel.operation();
    let may = matches!(operation, Operation::Copy | Operation::Move);
    let at = TECHNIQUES.iter().position(|technique| *technique == kernel.technique())?;
    may.then(|| Slot(libc_slot(operation).0 + 1 + at as u8))
}

/// The kernel of such a slot, and the decision's name.
pub(crate) fn of_slot(
    operation: Operation,
    slot: Slot,
) -> Option<(&'static Kernel, &'static CStr)> {
    let at = usize::from(slot.0.checked_sub(libc_slot(operation).0 + 1)?);
    let names = NAMES.get(usize::from(operation == Operation::Move))?;
    let kernel = slots::named(operation, TECHNIQUES.get(at)?.as_bytes());
    Some((slots::kernel(operation, kernel)?, names.get(at)?))
}

/// Returns whether a decision may be for this kernel where operands are not aligned, and for libc where they are.
#[doc(hidden)]
#[must_use]
pub fn may_look_at_operands(kernel: &Kernel) -> bool {
    slot_of(kernel).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_is_what_is_on_lines_at_once_and_not_just_above_modulo_4096() {
        let at = |dst: usize, src: usize| is_aligned(dst as *mut u8, src as *const u8);
        for (dst, src, expected) in [
            (0x10000, 0x20400, true),
            (0x10000, 0x20000, false),
            (0x10040, 0x20000, false),
            (0x100C0, 0x20000, false),
            (0x10100, 0x20000, true),
            (0x10101, 0x20401, true),
            (0x10101, 0x20402, false),
            (0x20000, 0x20040, true),
        ] {
            assert_eq!(at(dst, src), expected, "{dst:x} {src:x}");
        }
    }

    #[test]
    fn slots_kernels_and_names_agree() {
        let mut many = 0;
        for operation in [Operation::Copy, Operation::Move] {
            for (_, kernel) in slots::kernels(operation) {
                let Some(slot) = slot_of(kernel) else { continue };
                let (found, name) = of_slot(operation, slot).expect("its kernel");
                assert_eq!(found.name, kernel.name);
                let name = name.to_str().expect("ASCII");
                assert_eq!(name.strip_suffix(OR_LIBC), Some(kernel.name));
                many += 1;
            }
        }
        assert_eq!(many, 2 * TECHNIQUES.len());
    }
}
