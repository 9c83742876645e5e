//! 64-bit POWER, little-endian, one file per technique. `arch/words/` holds the single words that
//! edges are made of, `arch/units.rs` everything that a technique's loops need around them.
//!
//! Little-endian alone, since that is what can be tested; VMX and VSX are part of that ABI's
//! baseline (POWER8), so that detection refuses them only where an operating system keeps them
//! from programs. POWER has no non-temporal store.

pub(crate) mod dcbz;
pub(crate) mod gpr;
pub(crate) mod vmx;
pub(crate) mod vsx;

/// A loop counted in CTR with r3 as destination and r4 as source or pattern.
macro_rules! round {
    ($dst:expr, $src:expr, $units:expr, [$($line:expr),* $(,)?], [$($register:tt)*]) => {
        core::arch::asm!(
            "mtctr 5",
            $($line,)*
            inout("r3") $dst => _,
            inout("r4") $src => _,
            inout("r5") $units => _,
            $(out($register) _,)*
            out("ctr") _,
            options(nostack),
        )
    };
}
use round;

/// A [`Body`](super::units::Body) from the instructions of one 64-byte round. A touch takes its
/// distance from r0, as an index register's zero is a register and not the number.
macro_rules! body {
    ($(#[$doc:meta])* $name:ident, align $align:literal, begin $begin:literal,
     touch $ahead:literal / $behind:literal $touch:literal, load $load:literal, store $store:literal,
     spread $spread:literal, fill $fill:literal, uses [$($register:tt)*]) => {
        $(#[$doc])*
        pub(super) struct $name;

        impl crate::arch::units::Body for $name {
            const UNIT: usize = 64;
            const ALIGN: usize = $align;

            #[inline(always)]
            unsafe fn up(dst: *mut u8, src: *const u8, units: usize) {
                // SAFETY: the caller's promise: so many units at both, in this direction.
                unsafe {
                    super::round!(dst, src, units, [
                        $begin, $ahead, ".p2align 4", "2:", $touch, $load, $store,
                        "addi 4, 4, 64", "addi 3, 3, 64", "bdnz 2b",
                    ], [$($register)*]);
                }
            }

            #[inline(always)]
            unsafe fn down(dst_end: *mut u8, src_end: *const u8, units: usize) {
                // SAFETY: the caller's promise: so many units below both, in this direction.
                unsafe {
                    super::round!(dst_end, src_end, units, [
                        $begin, $behind, ".p2align 4", "2:", "addi 4, 4, -64",
                        "addi 3, 3, -64", $touch, $load, $store, "bdnz 2b",
                    ], [$($register)*]);
                }
            }

            #[inline(always)]
            unsafe fn store(dst: *mut u8, pattern: u64, units: usize) {
                // SAFETY: the caller's promise: so many units.
                unsafe {
                    super::round!(dst, pattern, units, [
                        $begin, $spread, ".p2align 4", "2:", $fill, "addi 3, 3, 64", "bdnz 2b",
                    ], [$($register)*]);
                }
            }
        }
    };
}
use body;
