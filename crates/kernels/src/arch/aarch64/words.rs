//! Single words in general registers, each one instruction of its own: what the edges are made of.

use core::arch::asm;

macro_rules! loads {
    ($($name:ident $load:literal;)*) => {$(
        /// # Safety
        /// As many bytes as the name says are readable at `p`.
        #[inline(always)]
        pub(in crate::arch) unsafe fn $name(p: *const u8) -> u64 {
            let word;
            // SAFETY: the caller's promise; writes of a w register clear the upper half.
            unsafe {
                asm!(
                    $load,
                    word = out(reg) word,
                    p = in(reg) p,
                    options(nostack, readonly, preserves_flags),
                );
            }
            word
        }
    )*};
}
loads! {
    load8 "ldr {word}, [{p}]";
    load4 "ldr {word:w}, [{p}]";
    load2 "ldrh {word:w}, [{p}]";
    load1 "ldrb {word:w}, [{p}]";
}

macro_rules! stores {
    ($($name:ident $store:literal;)*) => {$(
        /// # Safety
        /// As many bytes as the name says are writable at `p`.
        #[inline(always)]
        pub(in crate::arch) unsafe fn $name(p: *mut u8, word: u64) {
            // SAFETY: the caller's promise.
            unsafe {
                asm!(
                    $store,
                    word = in(reg) word,
                    p = in(reg) p,
                    options(nostack, preserves_flags),
                );
            }
        }
    )*};
}
stores! {
    store8 "str {word}, [{p}]";
    store4 "str {word:w}, [{p}]";
    store2 "strh {word:w}, [{p}]";
    store1 "strb {word:w}, [{p}]";
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
