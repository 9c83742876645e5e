//! The entries, each a function by itself, and what leads to those that do not follow in the
//! exported functions.

use super::{COUNT, Entry};
use cachewise_kernels::table::{CompareFn, CopyFn, FillFn, ZeroFn};
use cachewise_kernels::{Features, Function};

/// The body of a naked function with `memcpy`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy {
    () => {
        $crate::entry_copy_in!(
            $crate::entry_choice!(),
            avx512vl,
            avx2_or_sse2 = sym $crate::entry::ways::copy::avx2_or_sse2,
        )
    };
}

/// A copy from one entry on. Buffers that overlap are a move beyond what is done here, as they are
/// in glibc on x86-64, whose `memcpy` programs have come to depend on: dst - src or src - dst is
/// below n, both modulo 2^64.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_in {
    ($choice:expr, $way:ident $(, $($operand:tt)+)?) => {
        $crate::entry_copy_or_move!(
            COPY,
            COPY_ROW,
            $crate::entry::Operation::Copy,
            $choice,
            $crate::entry_copy_way!($way),
            "mov rcx, rdi\n\
             sub rcx, rsi\n\
             cmp rcx, rdx\n\
             jb 40f\n\
             neg rcx\n\
             cmp rcx, rdx\n\
             jb 40f\n",
            "40:\n\
             jmp {elsewhere}\n",
            elsewhere = sym $crate::raw::copy,
            $($($operand)+)?
        )
    };
}

/// The body of a naked function with `memmove`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_move {
    () => {
        $crate::entry_move_in!(
            $crate::entry_choice!(),
            avx512vl,
            avx2_or_sse2 = sym $crate::entry::ways::r#move::avx2_or_sse2,
        )
    };
}

/// A move from one entry on.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_move_in {
    ($choice:expr, $way:ident $(, $($operand:tt)+)?) => {
        $crate::entry_copy_or_move!(
            MOVE,
            MOVE_ROW,
            $crate::entry::Operation::Move,
            $choice,
            $crate::entry_copy_way!($way),
            "",
            ""
            $(, $($operand)+)?
        )
    };
}

/// The body of a naked function with `memset`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill {
    () => {
        $crate::entry_fill_in!(
            $crate::entry_choice!(),
            avx512vl,
            avx2_or_sse2 = sym $crate::entry::ways::fill::avx2_or_sse2,
        )
    };
}

/// The body of a naked function that zeroes: dst, n.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_zero {
    () => {
        $crate::entry_zero_in!(
            $crate::entry_choice!(),
            avx512vl,
            avx2_or_sse2 = sym $crate::entry::ways::zero::avx2_or_sse2,
        )
    };
}

/// The body of a naked function with `memcmp`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare {
    () => {
        $crate::entry_compare_in!(
            $crate::entry_choice!(),
            avx512vl,
            avx2_or_sse2 = sym $crate::entry::ways::compare::avx2_or_sse2,
        )
    };
}

/// The body of a naked function that tests for equality: 1 or 0.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_equal {
    () => {
        $crate::entry_equal_in!(
            $crate::entry_choice!(),
            avx512vl,
            avx2_or_sse2 = sym $crate::entry::ways::equal::avx2_or_sse2,
        )
    };
}

/// An operation's module: its entries.
macro_rules! operation {
    ($(#[$doc:meta])* $module:ident, $operation:ident, $type:ident, $in:ident,
        ($($argument:ident: $kind:ty),*) -> $result:ty) => {
        $(#[$doc])*
        pub mod $module {
            use super::*;

            /// # Safety
            /// As the operation's kernels.
            #[unsafe(naked)]
            pub unsafe extern "C" fn sse2($($argument: $kind),*) -> $result {
                $crate::$in!("", sse2)
            }

            /// # Safety
            /// As the operation's kernels; AVX2 and BMI2.
            #[unsafe(naked)]
            pub unsafe extern "C" fn avx2($($argument: $kind),*) -> $result {
                $crate::$in!("", avx2)
            }

            /// Behind the comparison of an exported function, whose flags it asks for; called by itself it
            /// is the one or the other.
            ///
            /// # Safety
            /// As [`avx2`].
            #[unsafe(naked)]
            pub unsafe extern "C" fn avx2_or_sse2($($argument: $kind),*) -> $result {
                $crate::$in!(".hidden {sse2}\n{{disp32}} jb {sse2}", avx2, sse2 = sym sse2)
            }

            /// # Safety
            /// As the operation's kernels; AVX-512 with VL and BW, and BMI2.
            #[unsafe(naked)]
            pub unsafe extern "C" fn avx512vl($($argument: $kind),*) -> $result {
                $crate::$in!("", avx512vl)
            }

            pub(super) static ENTRIES: [Entry; COUNT] = {
                const fn entry(name: &'static str, requires: Features, function: $type) -> Entry {
                    Entry { name, requires, function: Function::$operation(function) }
                }
                [
                    entry("sse2", Features::SSE2, sse2),
                    entry("avx512vl", AVX512, avx512vl),
                    entry("avx2", AVX2, avx2),
                ]
            };
        }
    };
}

const AVX2: Features = Features::SSE2.and(Features::AVX).and(Features::AVX2).and(Features::BMI2);
const AVX512: Features =
    AVX2.and(Features::AVX512F).and(Features::AVX512BW).and(Features::AVX512VL);

operation! {
    /// `memcpy`'s contract, and overlap.
    copy, Copy, CopyFn, entry_copy_in, (dst: *mut u8, src: *const u8, n: usize) -> *mut u8
}
operation! {
    /// `memmove`'s contract.
    r#move, Move, CopyFn, entry_move_in, (dst: *mut u8, src: *const u8, n: usize) -> *mut u8
}
operation! {
    /// `memset`'s contract.
    fill, Fill, FillFn, entry_fill_in, (dst: *mut u8, byte: i32, n: usize) -> *mut u8
}
operation! {
    /// A fill with zeros.
    zero, Zero, ZeroFn, entry_zero_in, (dst: *mut u8, n: usize) -> *mut u8
}
operation! {
    /// `memcmp`'s contract.
    compare, Compare, CompareFn, entry_compare_in, (a: *const u8, b: *const u8, n: usize) -> i32
}
operation! {
    /// 1 where all bytes are equal, else 0.
    equal, Equal, CompareFn, entry_equal_in, (a: *const u8, b: *const u8, n: usize) -> i32
}

/// By operation, as [`place`](super::place) has them.
pub(crate) static ENTRIES: [&[Entry]; 6] = [
    &copy::ENTRIES,
    &r#move::ENTRIES,
    &fill::ENTRIES,
    &zero::ENTRIES,
    &compare::ENTRIES,
    &equal::ENTRIES,
];
