//! VMX (AltiVec): 16-byte registers, whose loads and stores ignore the low four bits of an address.
//! So a misaligned source is put together from aligned blocks by VPERM, and the loops keep 16 bytes
//! away from either end of the buffers: no block that they load has a byte outside.
//!
//! The comparisons are the POWER8 memcmp of seed 004, its paths as kernels of their own.

#[cfg(feature = "lab")]
use super::gpr::Scalar;
use super::round;
use crate::arch::rows::row;
use crate::arch::units::{Body, Comparer, comparers, movers, rows, setters};
use crate::isa::Features;
use crate::kernel::{Kernel, Prefetch, RegisterClass};
use core::arch::asm;

/// A body whose loads are aligned where the source is, and permuted where it is not.
macro_rules! vectors {
    ($(#[$doc:meta])* $name:ident, touch $ahead:literal / $behind:literal $touch:literal) => {
        $(#[$doc])*
        struct $name;

        impl Body for $name {
            const UNIT: usize = 64;
            const ALIGN: usize = 16;
            const MARGIN: usize = 16;

            #[inline(always)]
            unsafe fn up(dst: *mut u8, src: *const u8, units: usize) {
                if src.addr() & 15 == 0 {
                    // SAFETY: the caller's promise, and the source is aligned.
                    unsafe {
                        round!(dst, src, units, [
                            "li 6, 16", "li 7, 32", "li 8, 48", $ahead, ".p2align 4", "2:",
                            $touch,
                            "lvx 0, 0, 4", "lvx 1, 6, 4", "lvx 2, 7, 4", "lvx 3, 8, 4",
                            "stvx 0, 0, 3", "stvx 1, 6, 3", "stvx 2, 7, 3", "stvx 3, 8, 3",
                            "addi 4, 4, 64", "addi 3, 3, 64", "bdnz 2b",
                        ], ["r0" "r6" "r7" "r8" "v0" "v1" "v2" "v3"]);
                    }
                } else {
                    // SAFETY: the caller's promise; five blocks hold the 64 bytes of a round, and
                    // reach at most 15 bytes beyond them, which the margin covers.
                    unsafe {
                        round!(dst, src, units, [
                            "li 6, 16", "li 7, 32", "li 8, 48", "li 9, 64", "lvsr 5, 0, 4",
                            $ahead, ".p2align 4", "2:",
                            $touch,
                            "lvx 0, 0, 4", "lvx 1, 6, 4", "lvx 2, 7, 4", "lvx 3, 8, 4",
                            "lvx 4, 9, 4",
                            "vperm 0, 1, 0, 5", "vperm 1, 2, 1, 5",
                            "vperm 2, 3, 2, 5", "vperm 3, 4, 3, 5",
                            "stvx 0, 0, 3", "stvx 1, 6, 3", "stvx 2, 7, 3", "stvx 3, 8, 3",
                            "addi 4, 4, 64", "addi 3, 3, 64", "bdnz 2b",
                        ], ["r0" "r6" "r7" "r8" "r9" "v0" "v1" "v2" "v3" "v4" "v5"]);
                    }
                }
            }

            #[inline(always)]
            unsafe fn down(dst_end: *mut u8, src_end: *const u8, units: usize) {
                // SAFETY: as `up`, whichever the alignment: an aligned source permutes to itself.
                unsafe {
                    round!(dst_end, src_end, units, [
                        "li 6, 16", "li 7, 32", "li 8, 48", "li 9, 64", "lvsr 5, 0, 4",
                        $behind, ".p2align 4", "2:", "addi 4, 4, -64", "addi 3, 3, -64",
                        $touch,
                        "lvx 0, 0, 4", "lvx 1, 6, 4", "lvx 2, 7, 4", "lvx 3, 8, 4",
                        "lvx 4, 9, 4",
                        "vperm 0, 1, 0, 5", "vperm 1, 2, 1, 5",
                        "vperm 2, 3, 2, 5", "vperm 3, 4, 3, 5",
                        "stvx 0, 0, 3", "stvx 1, 6, 3", "stvx 2, 7, 3", "stvx 3, 8, 3",
                        "bdnz 2b",
                    ], ["r0" "r6" "r7" "r8" "r9" "v0" "v1" "v2" "v3" "v4" "v5"]);
                }
            }

            #[inline(always)]
            unsafe fn store(dst: *mut u8, pattern: u64, units: usize) {
                // SAFETY: the caller's promise: so many units of an aligned destination. MTVSRD
                // (POWER8) brings the pattern over, VSPLTB one byte of it everywhere.
                unsafe {
                    round!(dst, pattern, units, [
                        "li 6, 16", "li 7, 32", "li 8, 48", "mtvsrd 32, 4", "vspltb 0, 0, 7",
                        ".p2align 4", "2:",
                        "stvx 0, 0, 3", "stvx 0, 6, 3", "stvx 0, 7, 3", "stvx 0, 8, 3",
                        "addi 3, 3, 64", "bdnz 2b",
                    ], ["r6" "r7" "r8" "v0"]);
                }
            }
        }
    };
}
vectors! {
    /// No touch.
    Vectors, touch "" / "" ""
}
// A touch never faults, so an address past either end is harmless (Power ISA 2.07, book II 4.3.2).
vectors! {
    /// DCBT of the source.
    Touched, touch "li 0, 512" / "li 0, -512" "dcbt 4, 0"
}
#[cfg(feature = "lab")]
vectors! {
    /// DCBTST of the destination.
    Claimed, touch "li 0, 512" / "li 0, -512" "dcbtst 3, 0"
}

/// A loop of 64 bytes a round over the vectors that `$loads` leaves in v0 to v3 and v4 to v7.
macro_rules! equal_rounds {
    ($a:expr, $b:expr, $units:expr, [$($begin:expr),*], [$($load:expr),* $(,)?], [$($register:tt)*]) => {{
        let end: *const u8;
        // SAFETY: the caller's promise: so many units, and a margin where blocks are permuted.
        unsafe {
            asm!(
                "mtctr 5",
                "li 6, 16",
                "li 7, 32",
                "li 8, 48",
                "vspltisb 8, 0",
                $($begin,)*
                ".p2align 4",
                "2:",
                $($load,)*
                "vxor 0, 0, 4",
                "vxor 1, 1, 5",
                "vxor 2, 2, 6",
                "vxor 3, 3, 7",
                "vor 0, 0, 1",
                "vor 2, 2, 3",
                "vor 0, 0, 2",
                "vcmpequb. 0, 0, 8",
                "bge 6, 3f", // not all bytes zero
                "addi 3, 3, 64",
                "addi 4, 4, 64",
                "bdnz 2b",
                "3:",
                inout("r3") $a => end,
                inout("r4") $b => _,
                in("r5") $units,
                out("r6") _, out("r7") _, out("r8") _,
                out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                out("v4") _, out("v5") _, out("v6") _, out("v7") _, out("v8") _,
                $(out($register) _,)*
                out("cr6") _, out("ctr") _,
                options(nostack, readonly),
            );
        }
        end.addr() - $a.addr()
    }};
}
pub(super) use equal_rounds;

/// # Safety
/// As [`Comparer::equal_bytes`], both operands aligned.
#[inline(always)]
unsafe fn same_offset(a: *const u8, b: *const u8, units: usize) -> usize {
    equal_rounds!(
        a,
        b,
        units,
        [],
        [
            "lvx 0, 0, 3",
            "lvx 1, 6, 3",
            "lvx 2, 7, 3",
            "lvx 3, 8, 3",
            "lvx 4, 0, 4",
            "lvx 5, 6, 4",
            "lvx 6, 7, 4",
            "lvx 7, 8, 4",
        ],
        []
    )
}

/// # Safety
/// As [`Comparer::equal_bytes`], the left operand aligned.
#[inline(always)]
unsafe fn different_offset(a: *const u8, b: *const u8, units: usize) -> usize {
    equal_rounds!(a, b, units, ["li 9, 64", "lvsr 9, 0, 4"], [
        "lvx 4, 0, 4", "lvx 5, 6, 4", "lvx 6, 7, 4", "lvx 7, 8, 4", "lvx 10, 9, 4",
        "lvx 0, 0, 3", "lvx 1, 6, 3", "lvx 2, 7, 3", "lvx 3, 8, 3",
        "vperm 4, 5, 4, 9", "vperm 5, 6, 5, 9", "vperm 6, 7, 6, 9", "vperm 7, 10, 7, 9",
    ], ["r9" "v9" "v10"])
}

/// The path that the operands' offsets in a vector ask for.
struct Either;

impl Comparer for Either {
    const UNIT: usize = 64;
    const ALIGN: usize = 16;
    const MARGIN: usize = 16;

    #[inline(always)]
    unsafe fn equal_bytes(a: *const u8, b: *const u8, units: usize) -> usize {
        if b.addr() & 15 == 0 {
            // SAFETY: the caller's promise; both are aligned.
            unsafe { same_offset(a, b, units) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { different_offset(a, b, units) }
        }
    }
}

/// Vectors where the offsets are the same, integers where they are not.
#[cfg(feature = "lab")]
struct Same;

#[cfg(feature = "lab")]
impl Comparer for Same {
    const UNIT: usize = 64;
    const ALIGN: usize = 16;

    #[inline(always)]
    unsafe fn equal_bytes(a: *const u8, b: *const u8, units: usize) -> usize {
        if b.addr() & 15 == 0 {
            // SAFETY: the caller's promise; both are aligned.
            unsafe { same_offset(a, b, units) }
        } else {
            // SAFETY: the caller's promise: twice as many units of half the size.
            unsafe { Scalar::equal_bytes(a, b, units * 2) }
        }
    }
}

/// Permuted vectors, whatever the offsets.
#[cfg(feature = "lab")]
struct Different;

#[cfg(feature = "lab")]
impl Comparer for Different {
    const UNIT: usize = 64;
    const ALIGN: usize = 16;
    const MARGIN: usize = 16;

    #[inline(always)]
    unsafe fn equal_bytes(a: *const u8, b: *const u8, units: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe { different_offset(a, b, units) }
    }
}

const ROW: Kernel = row(RegisterClass::Vmx, Features::VMX.and(Features::POWER8), 4);
#[cfg(feature = "lab")]
const LAB: Kernel = Kernel { deploy: false, ..ROW };

movers! {
    copies "vmx" Vectors, ROW, "four LVX, four STVX a round; VPERM where the source is misaligned";
    touched "vmx.dcbt512" Touched, Kernel { prefetch: Prefetch::Load(512), ..ROW },
        "four LVX, four STVX a round, DCBT of the source 512 bytes ahead";
    #[cfg(feature = "lab")]
    claimed "vmx.dcbtst512" Claimed, Kernel { prefetch: Prefetch::Store(512), ..LAB },
        "four LVX, four STVX a round, DCBTST of the destination 512 bytes ahead";
}
setters! {
    fills "vmx" Vectors, ROW, "four STVX a round";
}
comparers! {
    compares "vmx" Either, 0, 0, ROW, "64-byte stride of VMX without pre-check (seed 004.2)";
    pre64 "vmx.pre64" Either, 64, 0, ROW,
        "64 bytes in general registers, then a 64-byte stride of VMX (seed 004.5)";
    pre32_from4096 "vmx.pre32.from4096" Either, 32, 4096, ROW,
        "32 bytes in general registers, VMX from 4096 bytes on, else 64-bit words (seed 004.5)";
    #[cfg(feature = "lab")]
    same "vmx.same-offset" Same, 0, 0, LAB,
        "VMX where both operands have the same offset in a vector, 64-bit words where not";
    #[cfg(feature = "lab")]
    different "vmx.different-offset" Different, 0, 0, LAB,
        "VMX with the right operand permuted, whatever the offsets";
}

pub(crate) const ROWS: &[Kernel] = rows![
    copies::ROWS,
    touched::ROWS,
    fills::ROWS,
    compares::ROWS,
    pre64::ROWS,
    pre32_from4096::ROWS,
];

#[cfg(feature = "lab")]
pub(crate) const LAB_ROWS: &[Kernel] = rows![claimed::ROWS, same::ROWS, different::ROWS];
