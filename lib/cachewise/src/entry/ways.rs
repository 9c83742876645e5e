//! The entries, each a function by itself, and what leads to those that do not follow in the
//! exported functions.

use crate::choice::{COUNT, Entry, VARIANTS};
use cachewise_kernels::Function;

/// An operation by the entry that follows in the exported functions: the widest that this build's target allows, and nothing
/// is asked; where that is the least, `avx2`, and those in brackets by the number ([`entry_choice`](crate::entry_choice)).
#[cfg(all(target_feature = "avx512vl", target_feature = "avx512bw", target_feature = "bmi2"))]
#[doc(hidden)]
#[macro_export]
macro_rules! entry_following {
    ($in:ident, $module:ident($($entry:ident)+) $(, $operand:ident = $other:ident)?) => {
        $crate::$in!(whole avx512vl, $($operand = sym $crate::entry::ways::$other::avx512vl)?)
    };
}

#[cfg(all(
    target_feature = "avx2",
    target_feature = "bmi2",
    not(all(target_feature = "avx512vl", target_feature = "avx512bw", target_feature = "bmi2"))
))]
#[doc(hidden)]
#[macro_export]
macro_rules! entry_following {
    ($in:ident, $module:ident($($entry:ident)+) $(, $operand:ident = $other:ident)?) => {
        $crate::$in!(whole avx2, $($operand = sym $crate::entry::ways::$other::avx2)?)
    };
}

#[cfg(not(all(target_feature = "avx2", target_feature = "bmi2")))]
#[doc(hidden)]
#[macro_export]
macro_rules! entry_following {
    ($in:ident, $module:ident($($entry:ident)+) $(, $operand:ident = $other:ident)?) => {
        $crate::$in!(
            chosen avx2,
            $($entry = sym $crate::entry::ways::$module::$entry,)+
            $($operand = sym $crate::entry::ways::$other::avx2)?
        )
    };
}

/// The body of a naked function with `memcpy`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy {
    () => {
        $crate::entry_following!(entry_copy_in, copy(others), elsewhere = r#move)
    };
}

/// A copy from one entry on. Buffers that overlap are a move beyond what is done here, by the move's entry of
/// the same name: as they are in glibc on x86-64, whose `memcpy` programs have come to depend on. dst - src or
/// src - dst is below n, both modulo 2^64.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_in {
    ($part:ident $way:ident, $($operand:tt)*) => {
        $crate::entry_copy_or_move!(
            COPY,
            COPY_ROW,
            Copy,
            $part $way,
            "mov rcx, rdi\n\
             sub rcx, rsi\n\
             cmp rcx, rdx\n\
             jb 40f\n\
             neg rcx\n\
             cmp rcx, rdx\n\
             jb 40f\n",
            "40:\n\
             .hidden {elsewhere}\n\
             jmp {elsewhere}\n",
            $($operand)*
        )
    };
}

/// The body of a naked function with `memmove`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_move {
    () => {
        $crate::entry_following!(entry_move_in, r#move(others))
    };
}

/// A move from one entry on.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_move_in {
    ($part:ident $way:ident, $($operand:tt)*) => {
        $crate::entry_copy_or_move!(MOVE, MOVE_ROW, Move, $part $way, "", "", $($operand)*)
    };
}

/// The body of a naked function with `memset`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill {
    () => {
        $crate::entry_following!(entry_fill_in, fill(sse2 avx512vl), zero = zero)
    };
}

/// The body of a naked function that zeroes: dst, n.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_zero {
    () => {
        $crate::entry_following!(entry_zero_in, zero(sse2 avx512vl))
    };
}

/// The body of a naked function with `memcmp`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare {
    () => {
        $crate::entry_following!(entry_compare_in, compare(sse2 avx512vl))
    };
}

/// The body of a naked function that tests for equality: 1 or 0.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_equal {
    () => {
        $crate::entry_following!(entry_equal_in, equal(sse2 avx512vl))
    };
}

/// An operation's module: its entries. `$other` is the operation of which the entry of the same name does what this one leaves to it, by the operand of that name.
macro_rules! operation {
    ($(#[$doc:meta])* $module:ident, $operation:ident, $in:ident,
        ($($argument:ident: $kind:ty),*) -> $result:ty
        $(, $operand:ident = $other:ident)? $(; $others:item)?) => {
        $(#[$doc])*
        pub mod $module {
            use super::*;

            /// # Safety
            /// As the operation's kernels.
            #[unsafe(naked)]
            pub unsafe extern "C" fn sse2($($argument: $kind),*) -> $result {
                $crate::$in!(whole sse2, $($operand = sym super::$other::sse2)?)
            }

            /// # Safety
            /// As the operation's kernels; AVX2 and BMI2.
            #[unsafe(naked)]
            pub unsafe extern "C" fn avx2($($argument: $kind),*) -> $result {
                $crate::$in!(whole avx2, $($operand = sym super::$other::avx2)?)
            }

            $($others)?

            /// # Safety
            /// As the operation's kernels; AVX-512 with VL and BW, and BMI2.
            #[unsafe(naked)]
            pub unsafe extern "C" fn avx512vl($($argument: $kind),*) -> $result {
                $crate::$in!(whole avx512vl, $($operand = sym super::$other::avx512vl)?)
            }

            pub(super) static ENTRIES: [Entry; COUNT] = [
                Entry::new(&VARIANTS[0], Function::$operation(sse2)),
                Entry::new(&VARIANTS[1], Function::$operation(avx2)),
                Entry::new(&VARIANTS[2], Function::$operation(avx512vl)),
            ];
        }
    };
}

operation! {
    /// `memcpy`'s contract, and overlap.
    copy, Copy, entry_copy_in, (dst: *mut u8, src: *const u8, n: usize) -> *mut u8,
    elsewhere = r#move;
    /// Part of `avx512vl` behind its small sizes, or `sse2` where its number is below that of `avx2`: behind the
    /// comparison of an exported function, whose flags it asks for.
    ///
    /// # Safety
    /// As [`avx512vl`], and of more bytes than are small.
    #[unsafe(naked)]
    pub unsafe extern "C" fn others(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        crate::entry_copy_in!(behind avx512vl, sse2 = sym sse2, elsewhere = sym r#move::avx512vl)
    }
}
operation! {
    /// `memmove`'s contract.
    r#move, Move, entry_move_in, (dst: *mut u8, src: *const u8, n: usize) -> *mut u8;
    /// As [`copy::others`].
    ///
    /// # Safety
    /// As [`copy::others`].
    #[unsafe(naked)]
    pub unsafe extern "C" fn others(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        crate::entry_move_in!(behind avx512vl, sse2 = sym sse2)
    }
}
operation! {
    /// `memset`'s contract.
    fill, Fill, entry_fill_in, (dst: *mut u8, byte: i32, n: usize) -> *mut u8,
    zero = zero
}
operation! {
    /// A fill with zeros.
    zero, Zero, entry_zero_in, (dst: *mut u8, n: usize) -> *mut u8
}
operation! {
    /// `memcmp`'s contract.
    compare, Compare, entry_compare_in, (a: *const u8, b: *const u8, n: usize) -> i32
}
operation! {
    /// 1 where all bytes are equal, else 0.
    equal, Equal, entry_equal_in, (a: *const u8, b: *const u8, n: usize) -> i32
}

/// By operation, as [`place`](crate::rows::place) has them.
pub(crate) static ENTRIES: [&[Entry; COUNT]; 6] = [
    &copy::ENTRIES,
    &r#move::ENTRIES,
    &fill::ENTRIES,
    &zero::ENTRIES,
    &compare::ENTRIES,
    &equal::ENTRIES,
];
