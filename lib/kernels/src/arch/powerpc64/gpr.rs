//! 64-bit general registers: no vector state, for contexts that have none to spare, which on POWER
//! is every system call (seed 004.3).

use super::body;
use crate::arch::rows::row;
use crate::arch::units::{Comparer, comparers, movers, rows, setters};
use crate::isa::Features;
use crate::kernel::{Kernel, Prefetch, RegisterClass};
use core::arch::asm;

/// A body of eight LD and eight STD, with a prefetch ("touch") if any.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, touch $ahead:literal / $behind:literal $touch:literal) => {
        body! {
            $(#[$doc])*
            $name, align 8, begin "", touch $ahead / $behind $touch,
            load "ld 5, 0(4)\nld 6, 8(4)\nld 7, 16(4)\nld 8, 24(4)\nld 9, 32(4)\nld 10, 40(4)\nld 11, 48(4)\nld 12, 56(4)",
            store "std 5, 0(3)\nstd 6, 8(3)\nstd 7, 16(3)\nstd 8, 24(3)\nstd 9, 32(3)\nstd 10, 40(3)\nstd 11, 48(3)\nstd 12, 56(3)",
            spread "",
            fill "std 4, 0(3)\nstd 4, 8(3)\nstd 4, 16(3)\nstd 4, 24(3)\nstd 4, 32(3)\nstd 4, 40(3)\nstd 4, 48(3)\nstd 4, 56(3)",
            uses ["r0" "r6" "r7" "r8" "r9" "r10" "r11" "r12"]
        }
    };
}
words! {
    /// No touch.
    Words, touch "" / "" ""
}
// A touch never faults, so an address past either end is harmless (Power ISA 2.07, book II 4.3.2).
words! {
    /// DCBT of the source.
    Touched, touch "li 0, 512" / "li 0, -512" "dcbt 4, 0"
}
#[cfg(feature = "lab")]
words! {
    /// DCBTST of the destination.
    Claimed, touch "li 0, 512" / "li 0, -512" "dcbtst 3, 0"
}

/// 32 bytes a round, differences or-ed together.
pub(super) struct Scalar;

impl Comparer for Scalar {
    const UNIT: usize = 32;
    const ALIGN: usize = 8;

    #[inline(always)]
    unsafe fn equal_bytes(a: *const u8, b: *const u8, units: usize) -> usize {
        let end: *const u8;
        // SAFETY: the loop reads `units` units at most.
        unsafe {
            asm!(
                "mtctr 5",
                ".p2align 4",
                "2:",
                "ld 6, 0(3)",
                "ld 7, 0(4)",
                "ld 8, 8(3)",
                "ld 9, 8(4)",
                "ld 10, 16(3)",
                "ld 11, 16(4)",
                "xor 6, 6, 7",
                "xor 8, 8, 9",
                "ld 7, 24(3)",
                "ld 9, 24(4)",
                "xor 10, 10, 11",
                "or 6, 6, 8",
                "xor 7, 7, 9",
                "or 6, 6, 10",
                "or 6, 6, 7",
                "cmpldi 6, 0",
                "bne 3f",
                "addi 3, 3, 32",
                "addi 4, 4, 32",
                "bdnz 2b",
                "3:",
                inout("r3") a => end,
                inout("r4") b => _,
                in("r5") units,
                out("r6") _, out("r7") _, out("r8") _, out("r9") _, out("r10") _, out("r11") _,
                out("cr0") _, out("ctr") _,
                options(nostack, readonly),
            );
        }
        end.addr() - a.addr()
    }
}

const ROW: Kernel = row(RegisterClass::Gpr, Features::NONE, 8);

movers! {
    copies "gpr64" Words, ROW, "eight LD, eight STD a round";
    touched "gpr64.dcbt512" Touched, Kernel { prefetch: Prefetch::Load(512), ..ROW },
        "eight LD, eight STD a round, DCBT of the source 512 bytes ahead";
    #[cfg(feature = "lab")]
    claimed "gpr64.dcbtst512" Claimed, Kernel { prefetch: Prefetch::Store(512), deploy: false, ..ROW },
        "eight LD, eight STD a round, DCBTST of the destination 512 bytes ahead";
}
setters! {
    fills "gpr64" Words, ROW, "eight STD a round";
}
comparers! {
    compares "gpr64" Scalar, 0, 0, ROW,
        "the scalar baseline of seed 004.1: 64-bit words, 32 bytes a round, LDBRX where they differ";
}

pub(crate) const ROWS: &[Kernel] = rows![copies::ROWS, touched::ROWS, fills::ROWS, compares::ROWS];

#[cfg(feature = "lab")]
pub(crate) const LAB_ROWS: &[Kernel] = &claimed::ROWS;
