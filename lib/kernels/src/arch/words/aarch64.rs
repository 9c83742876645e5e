//! Arm's single words, and the loop that finds the first pair that differs.

use core::arch::asm;

single_words! {
    reg:
    load8 "ldr {word}, [{p}]", store8 "str {word}, [{p}]";
    load4 "ldr {word:w}, [{p}]", store4 "str {word:w}, [{p}]";
    load2 "ldrh {word:w}, [{p}]", store2 "strh {word:w}, [{p}]";
    load1 "ldrb {word:w}, [{p}]", store1 "strb {word:w}, [{p}]";
}

/// The first pair of words that differ, first byte most significant; the last pair if none does.
///
/// # Safety
/// `a` and `b` are readable for `count` >= 1 words.
#[inline(always)]
pub(in crate::arch) unsafe fn first_pair(a: *const u8, b: *const u8, count: usize) -> (u64, u64) {
    let (left, right);
    // SAFETY: the loop reads `count` words at most.
    unsafe {
        asm!(
            "2:",
            "ldr {left}, [{a}], #8",
            "ldr {right}, [{b}], #8",
            "cmp {left}, {right}",
            "b.ne 3f",
            "subs {count}, {count}, #1",
            "b.ne 2b",
            "3:",
            a = inout(reg) a => _,
            b = inout(reg) b => _,
            count = inout(reg) count => _,
            left = out(reg) left,
            right = out(reg) right,
            options(nostack, readonly),
        );
    }
    (u64::from_be(left), u64::from_be(right))
}
