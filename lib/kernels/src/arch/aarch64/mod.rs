//! 64-bit Arm, one file per technique. `arch/words/` holds the single words that edges are made of,
//! `arch/units.rs` everything that a technique's loops need around them.
//!
//! Arm's stores are all weakly ordered, non-temporal ones no more than others (Arm ARM, B2.3), so
//! no kernel here ends in a barrier: whoever publishes the bytes orders them as he would any.

pub(crate) mod gpr;
pub(crate) mod neon;
pub(crate) mod zva;

/// A [`Body`](super::units::Body) from the instructions of one round, whose registers are `x0`
/// (destination), `x1` (source or pattern), `x2` (rounds left) and those named.
macro_rules! body {
    ($(#[$doc:meta])* $name:ident, unit $unit:literal, touch $up:literal / $down:literal,
     load $load:literal, store $store:literal, spread $spread:literal, fill $fill:literal,
     uses [$($register:tt)*]) => {
        $(#[$doc])*
        pub(super) struct $name;

        impl crate::arch::units::Body for $name {
            const UNIT: usize = $unit;
            const ALIGN: usize = 16;

            #[inline(always)]
            unsafe fn up(dst: *mut u8, src: *const u8, units: usize) {
                // SAFETY: the caller's promise: so many units at both, in this direction.
                unsafe {
                    core::arch::asm!(
                        ".p2align 4",
                        "2:",
                        $up,
                        $load,
                        concat!("add x1, x1, #", $unit),
                        $store,
                        concat!("add x0, x0, #", $unit),
                        "subs x2, x2, #1",
                        "b.ne 2b",
                        inout("x0") dst => _,
                        inout("x1") src => _,
                        inout("x2") units => _,
                        $(out($register) _,)*
                        options(nostack),
                    );
                }
            }

            #[inline(always)]
            unsafe fn down(dst_end: *mut u8, src_end: *const u8, units: usize) {
                // SAFETY: the caller's promise: so many units below both, in this direction.
                unsafe {
                    core::arch::asm!(
                        ".p2align 4",
                        "2:",
                        concat!("sub x1, x1, #", $unit),
                        concat!("sub x0, x0, #", $unit),
                        $down,
                        $load,
                        $store,
                        "subs x2, x2, #1",
                        "b.ne 2b",
                        inout("x0") dst_end => _,
                        inout("x1") src_end => _,
                        inout("x2") units => _,
                        $(out($register) _,)*
                        options(nostack),
                    );
                }
            }

            #[inline(always)]
            unsafe fn store(dst: *mut u8, pattern: u64, units: usize) {
                // SAFETY: the caller's promise: so many units.
                unsafe {
                    core::arch::asm!(
                        $spread,
                        ".p2align 4",
                        "2:",
                        $fill,
                        concat!("add x0, x0, #", $unit),
                        "subs x2, x2, #1",
                        "b.ne 2b",
                        inout("x0") dst => _,
                        in("x1") pattern,
                        inout("x2") units => _,
                        $(out($register) _,)*
                        options(nostack),
                    );
                }
            }
        }
    };
}
use body;
