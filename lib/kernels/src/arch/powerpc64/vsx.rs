//! VSX: LXVD2X and STXVD2X take any address, so that no source has to be permuted. The stores are
//! aligned all the same; fills, whose stores are all there is to them, are VMX's.
//!
//! On a little-endian CPU both swap the doublewords of a register, which a copy and a comparison
//! for equality undo.

use super::body;
use super::vmx::equal_rounds;
use crate::arch::rows::row;
use crate::arch::units::{Comparer, comparers, movers, rows};
use crate::isa::Features;
use crate::kernel::{Kernel, RegisterClass};
use core::arch::asm;

body! {
    /// Four LXVD2X, four STXVD2X; the registers 32 to 35 are VMX's v0 to v3.
    Vectors, align 16, begin "li 6, 16\nli 7, 32\nli 8, 48", touch "" / "" "",
    load "lxvd2x 32, 0, 4\nlxvd2x 33, 6, 4\nlxvd2x 34, 7, 4\nlxvd2x 35, 8, 4",
    store "stxvd2x 32, 0, 3\nstxvd2x 33, 6, 3\nstxvd2x 34, 7, 3\nstxvd2x 35, 8, 3",
    spread "mtvsrd 32, 4\nvspltb 0, 0, 7",
    fill "stxvd2x 32, 0, 3\nstxvd2x 32, 6, 3\nstxvd2x 32, 7, 3\nstxvd2x 32, 8, 3",
    uses ["r6" "r7" "r8" "v0" "v1" "v2" "v3"]
}

/// Both operands loaded where they are.
struct Loaded;

impl Comparer for Loaded {
    const UNIT: usize = 64;
    const ALIGN: usize = 16;

    #[inline(always)]
    unsafe fn equal_bytes(a: *const u8, b: *const u8, units: usize) -> usize {
        equal_rounds!(
            a,
            b,
            units,
            [],
            [
                "lxvd2x 32, 0, 3",
                "lxvd2x 33, 6, 3",
                "lxvd2x 34, 7, 3",
                "lxvd2x 35, 8, 3",
                "lxvd2x 36, 0, 4",
                "lxvd2x 37, 6, 4",
                "lxvd2x 38, 7, 4",
                "lxvd2x 39, 8, 4",
            ],
            []
        )
    }
}

const ROW: Kernel =
    row(RegisterClass::Vsx, Features::VMX.and(Features::VSX).and(Features::POWER8), 4);

movers! {
    copies "vsx" Vectors, ROW, "four LXVD2X, four STXVD2X a round, the source at any alignment";
}
comparers! {
    compares "vsx" Loaded, 0, 0, ROW, "64-byte stride of VSX loads, both operands at any alignment";
    #[cfg(feature = "lab")]
    pre64 "vsx.pre64" Loaded, 64, 0, Kernel { deploy: false, ..ROW },
        "64 bytes in general registers, then a 64-byte stride of VSX (seed 004.5)";
}

pub(crate) const ROWS: &[Kernel] = rows![copies::ROWS, compares::ROWS];

#[cfg(feature = "lab")]
pub(crate) const LAB_ROWS: &[Kernel] = &pre64::ROWS;
