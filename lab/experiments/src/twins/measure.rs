//! `twins`: one copying loop, and the same loop changed in one thing (000.6, 002.7).
//!
//! The changes: its first instruction is not aligned; it prefetches the source; it stores one word a
//! line somewhere else. Each loop takes turns with its own twin. Loops are of `movq` (seed 000) and
//! `movdqa` (seed 002), with temporal and with non-temporal stores, a line of 64 bytes a round.

use crate::prelude::*;

#[cfg(target_arch = "x86_64")]
mod x86;

pub(super) fn figures() -> Vec<Figure> {
    let title = "Time over the same loop without the change";
    vec![Figure::bars(title, "ratio").by(&["destination"])]
}

#[cfg(target_arch = "x86_64")]
pub(super) use x86::run;

#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(_: &mut Setting) -> Result {
    nothing("twins: its loops are the documents' own, which exist on x86 only")
}
