//! Pairs of 16-byte NEON registers, with and without the hints that Arm has: STNP (the stored line
//! will not be needed) and PRFM (a line will be needed, once or again).

use super::body;
use crate::arch::rows::row;
use crate::arch::units::{Comparer, comparers, movers, setters};
use crate::isa::Features;
use crate::kernel::{Kernel, Prefetch, RegisterClass, StoreKind};
use core::arch::asm;

/// A body of two LDP and two stores of q-register pairs, with a PRFM of that type if any.
macro_rules! pairs {
    ($(#[$doc:meta])* $name:ident, $store:literal, touch $up:literal / $down:literal) => {
        body! {
            $(#[$doc])*
            $name, unit 64, touch $up / $down,
            load "ldp q0, q1, [x1]\nldp q2, q3, [x1, #32]",
            store $store,
            spread "dup v0.2d, x1\nmov v1.16b, v0.16b\nmov v2.16b, v0.16b\nmov v3.16b, v0.16b",
            fill $store,
            uses ["v0" "v1" "v2" "v3" "x3"]
        }
    };
}
pairs! {
    /// STP.
    Pairs, "stp q0, q1, [x0]\nstp q2, q3, [x0, #32]", touch "" / ""
}
pairs! {
    /// STNP.
    HintedPairs, "stnp q0, q1, [x0]\nstnp q2, q3, [x0, #32]", touch "" / ""
}
// A prefetch never faults, so an address past either end is harmless (Arm ARM, C6.2 PRFM).
pairs! {
    /// PRFM PLDL1KEEP, STP.
    Kept, "stp q0, q1, [x0]\nstp q2, q3, [x0, #32]",
    touch "prfm pldl1keep, [x1, #512]" / "sub x3, x1, #512\nprfm pldl1keep, [x3]"
}
#[cfg(feature = "lab")]
pairs! {
    /// PRFM PLDL1STRM, STP.
    Streamed, "stp q0, q1, [x0]\nstp q2, q3, [x0, #32]",
    touch "prfm pldl1strm, [x1, #512]" / "sub x3, x1, #512\nprfm pldl1strm, [x3]"
}
#[cfg(feature = "lab")]
pairs! {
    /// PRFM PSTL1KEEP, STP.
    Claimed, "stp q0, q1, [x0]\nstp q2, q3, [x0, #32]",
    touch "prfm pstl1keep, [x0, #512]" / "sub x3, x0, #512\nprfm pstl1keep, [x3]"
}
pairs! {
    /// PRFM PLDL1STRM, STNP.
    StreamedHinted, "stnp q0, q1, [x0]\nstnp q2, q3, [x0, #32]",
    touch "prfm pldl1strm, [x1, #512]" / "sub x3, x1, #512\nprfm pldl1strm, [x3]"
}

/// Four vectors of either operand a round.
struct Vectors;

impl Comparer for Vectors {
    const UNIT: usize = 64;
    const ALIGN: usize = 16;

    #[inline(always)]
    unsafe fn equal_bytes(a: *const u8, b: *const u8, units: usize) -> usize {
        let end: *const u8;
        // SAFETY: the loop reads `units` units at most.
        unsafe {
            asm!(
                ".p2align 4",
                "2:",
                "ldp q0, q1, [x0]",
                "ldp q4, q5, [x1]",
                "ldp q2, q3, [x0, #32]",
                "ldp q6, q7, [x1, #32]",
                "eor v0.16b, v0.16b, v4.16b",
                "eor v1.16b, v1.16b, v5.16b",
                "eor v2.16b, v2.16b, v6.16b",
                "eor v3.16b, v3.16b, v7.16b",
                "orr v0.16b, v0.16b, v1.16b",
                "orr v2.16b, v2.16b, v3.16b",
                "orr v0.16b, v0.16b, v2.16b",
                "umaxp v0.4s, v0.4s, v0.4s", // any bit of 128 shows in the lower 64
                "fmov x3, d0",
                "cbnz x3, 3f",
                "add x0, x0, #64",
                "add x1, x1, #64",
                "subs x2, x2, #1",
                "b.ne 2b",
                "3:",
                inout("x0") a => end,
                inout("x1") b => _,
                inout("x2") units => _,
                out("x3") _,
                out("v0") _, out("v1") _, out("v2") _, out("v3") _,
                out("v4") _, out("v5") _, out("v6") _, out("v7") _,
                options(nostack, readonly),
            );
        }
        end.addr() - a.addr()
    }
}

const ROW: Kernel = row(RegisterClass::Q, Features::NEON, 4);
const NT: Kernel = Kernel { store: StoreKind::NonTemporal, ..ROW };

movers! {
    copies "neon" Pairs, ROW, "four NEON loads, four stores a round, in LDP and STP";
    hinted_copies "neon.nt" HintedPairs, NT,
        "two LDP, two STNP a round: a hint that lines will not be needed, which a CPU may ignore";
    streamed_hinted "neon.nt.strm512" StreamedHinted, Kernel { prefetch: Prefetch::Stream(512), ..NT },
        "STNP, with PRFM PLDL1STRM 512 bytes ahead: both hints that a CPU may ignore";
    kept "neon.prfm512" Kept, Kernel { prefetch: Prefetch::Load(512), ..ROW },
        "STP, with PRFM PLDL1KEEP 512 bytes ahead";
    #[cfg(feature = "lab")]
    streamed "neon.strm512" Streamed, Kernel { prefetch: Prefetch::Stream(512), deploy: false, ..ROW },
        "STP, with PRFM PLDL1STRM 512 bytes ahead";
    #[cfg(feature = "lab")]
    claimed "neon.prfmst512" Claimed, Kernel { prefetch: Prefetch::Store(512), deploy: false, ..ROW },
        "STP, with PRFM PSTL1KEEP of the destination 512 bytes ahead";
}
setters! {
    fills "neon" Pairs, ROW, "two STP of NEON pairs a round";
    hinted_fills "neon.nt" HintedPairs, NT,
        "two STNP of NEON pairs a round: a hint that a CPU may ignore";
}
comparers! {
    compares "neon" Vectors, 0, 0, ROW, "four NEON vectors of either operand a round, no pre-check";
    #[cfg(feature = "lab")]
    pre32 "neon.pre32" Vectors, 32, 0, Kernel { deploy: false, ..ROW },
        "32 bytes in general registers before the vectors (seed 004.5)";
    #[cfg(feature = "lab")]
    pre64 "neon.pre64" Vectors, 64, 0, Kernel { deploy: false, ..ROW },
        "64 bytes in general registers before the vectors (seed 004.5)";
}

pub(crate) const ROWS: &[Kernel] = crate::arch::units::rows![
    copies::ROWS,
    hinted_copies::ROWS,
    streamed_hinted::ROWS,
    kept::ROWS,
    fills::ROWS,
    hinted_fills::ROWS,
    compares::ROWS,
];

#[cfg(feature = "lab")]
pub(crate) const LAB_ROWS: &[Kernel] =
    crate::arch::units::rows![streamed::ROWS, claimed::ROWS, pre32::ROWS, pre64::ROWS];
