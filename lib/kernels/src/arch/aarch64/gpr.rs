//! Pairs of general registers (LDP, STP): no vector state, for contexts that have none to spare.

use super::body;
use crate::arch::rows::row;
use crate::arch::units::{Comparer, comparers, movers, setters};
use crate::isa::Features;
use crate::kernel::{Kernel, RegisterClass, StoreKind};
use core::arch::asm;

body! {
    /// Four LDP, four STP.
    Pairs, unit 64, touch "" / "",
    load "ldp x3, x4, [x1]\nldp x5, x6, [x1, #16]\nldp x7, x8, [x1, #32]\nldp x9, x10, [x1, #48]",
    store "stp x3, x4, [x0]\nstp x5, x6, [x0, #16]\nstp x7, x8, [x0, #32]\nstp x9, x10, [x0, #48]",
    spread "",
    fill "stp x1, x1, [x0]\nstp x1, x1, [x0, #16]\nstp x1, x1, [x0, #32]\nstp x1, x1, [x0, #48]",
    uses ["x3" "x4" "x5" "x6" "x7" "x8" "x9" "x10"]
}
body! {
    /// Four LDP, four STNP.
    HintedPairs, unit 64, touch "" / "",
    load "ldp x3, x4, [x1]\nldp x5, x6, [x1, #16]\nldp x7, x8, [x1, #32]\nldp x9, x10, [x1, #48]",
    store "stnp x3, x4, [x0]\nstnp x5, x6, [x0, #16]\nstnp x7, x8, [x0, #32]\nstnp x9, x10, [x0, #48]",
    spread "",
    fill "stnp x1, x1, [x0]\nstnp x1, x1, [x0, #16]\nstnp x1, x1, [x0, #32]\nstnp x1, x1, [x0, #48]",
    uses ["x3" "x4" "x5" "x6" "x7" "x8" "x9" "x10"]
}

/// Four words a round, differences or-ed together.
pub(super) struct Words;

impl Comparer for Words {
    const UNIT: usize = 32;
    const ALIGN: usize = 8;

    #[inline(always)]
    unsafe fn equal_bytes(a: *const u8, b: *const u8, units: usize) -> usize {
        let end: *const u8;
        // SAFETY: the loop reads `units` units at most.
        unsafe {
            asm!(
                ".p2align 4",
                "2:",
                "ldp x3, x4, [x0]",
                "ldp x5, x6, [x1]",
                "ldp x7, x8, [x0, #16]",
                "ldp x9, x10, [x1, #16]",
                "eor x3, x3, x5",
                "eor x4, x4, x6",
                "eor x7, x7, x9",
                "eor x8, x8, x10",
                "orr x3, x3, x4",
                "orr x7, x7, x8",
                "orr x3, x3, x7",
                "cbnz x3, 3f",
                "add x0, x0, #32",
                "add x1, x1, #32",
                "subs x2, x2, #1",
                "b.ne 2b",
                "3:",
                inout("x0") a => end,
                inout("x1") b => _,
                inout("x2") units => _,
                out("x3") _, out("x4") _, out("x5") _, out("x6") _,
                out("x7") _, out("x8") _, out("x9") _, out("x10") _,
                options(nostack, readonly),
            );
        }
        end.addr() - a.addr()
    }
}

const ROW: Kernel = row(RegisterClass::Gpr, Features::NONE, 8);
const NT: Kernel = Kernel { store: StoreKind::NonTemporal, ..ROW };

movers! {
    copies "gpr64" Pairs, ROW, "four LDP, four STP of general registers a round";
    hinted_copies "gpr64.nt" HintedPairs, NT,
        "four LDP, four STNP a round: a hint that lines will not be needed, which a CPU may ignore";
}
setters! {
    fills "gpr64" Pairs, ROW, "four STP of a general register pair a round";
    hinted_fills "gpr64.nt" HintedPairs, NT,
        "four STNP of a general register pair a round: a hint that a CPU may ignore";
}
comparers! {
    compares "gpr64" Words, 0, 0, ROW,
        "64-bit words, 32 bytes a round; byte-reversed where they differ (seed 004.1)";
}

pub(crate) const ROWS: &[Kernel] = crate::arch::units::rows![
    copies::ROWS,
    hinted_copies::ROWS,
    fills::ROWS,
    hinted_fills::ROWS,
    compares::ROWS
];
