//! POWER's single words, and the loop that finds the first pair that differs.
//!
//! A base register is never r0, which these instructions read as zero.

use core::arch::asm;

single_words! {
    reg_nonzero:
    load8 "ld {word}, 0({p})", store8 "std {word}, 0({p})";
    load4 "lwz {word}, 0({p})", store4 "stw {word}, 0({p})";
    load2 "lhz {word}, 0({p})", store2 "sth {word}, 0({p})";
    load1 "lbz {word}, 0({p})", store1 "stb {word}, 0({p})";
}

/// The first pair of words that differ, first byte most significant; the last pair if none does.
///
/// LDBRX loads them in that order on a little-endian CPU: the POWER8 memcmp's loop (seed 004.5).
///
/// # Safety
/// `a` and `b` are readable for `count` >= 1 words.
#[inline(always)]
pub(in crate::arch) unsafe fn first_pair(a: *const u8, b: *const u8, count: usize) -> (u64, u64) {
    let (left, right);
    // SAFETY: the loop reads `count` words at most.
    unsafe {
        asm!(
            "mtctr {count}",
            "2:",
            "ldbrx {left}, 0, {a}",
            "ldbrx {right}, 0, {b}",
            "cmpld {left}, {right}",
            "bne 3f",
            "addi {a}, {a}, 8",
            "addi {b}, {b}, 8",
            "bdnz 2b",
            "3:",
            a = inout(reg_nonzero) a => _,
            b = inout(reg_nonzero) b => _,
            count = in(reg) count,
            left = out(reg) left,
            right = out(reg) right,
            out("cr0") _,
            out("ctr") _,
            options(nostack, readonly),
        );
    }
    (left, right)
}
