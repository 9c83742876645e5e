//! Copies and moves; fills and zeros, with the same size classes, are in `filling.rs`.
//!
//! | bytes | `sse2` | `avx2` | `avx512vl` |
//! |---|---|---|---|
//! | 1; 2-3; 4-7; 8-15 | 1; 2 + 1; 4 + 4; 8 + 8 | the same | the same |
//! | 16-32 | 16 + 16 | the same | the same |
//! | to 64 | 2 x 16 + 2 x 16 | the same | 32 + 32 |
//! | to 128 | 4 x 16 + 4 x 16 | 2 x 32 + 2 x 32 | 64 + 64 |
//! | to 256 | the table's kernel | 4 x 32 + 4 x 32 | 2 x 64 + 2 x 64 |
//! | to 512 | | the loop | 4 x 64 + 4 x 64 (a fill: the loop) |
//! | more | | 32, loop of 4 x 32 at aligned places, 4 x 32 | the same with 64 |
//! | beyond the direct limit | | the table's kernel | the table's kernel |
//!
//! A class is served by blocks from its head and as many from its tail, which overlap where the size is not the class's
//! largest. All loads of a class come before its first store, and the loop asks for the direction, so that a copy is also a
//! move up to the table. More than 128 bytes that are copied to their own place are left alone, as glibc leaves them.
//!
//! Up to 64 bytes `sse2` and `avx2` are the same, so nothing is chosen there in the plain build; none of these classes is more than two taken jumps away. A class stores the fewest blocks that
//! a program may load next: a load waits for all of the stores that it needs bytes of, and only bytes of one
//! store are forwarded to it. So fields of 1, 2, 4 and 8 bytes at either end are one store each, and nothing is masked.
//! The buffer of stores that wait for their lines is short as well: half as many stores keep twice as many calls in flight.
//!
//! In all of them rax holds what is returned from the first instruction on, which is three bytes
//! long (`mempcpy` enters after this instruction), and nothing touches the stack.

/// A copy or a move of up to 64 bytes, from the first instruction on; more go to label 23.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_small {
    (behind $way:ident) => {
        ""
    };
    ($part:ident avx512vl) => {
        $crate::entry_copy_small!(classes $crate::entry_copy_two!(evex32))
    };
    ($part:ident $way:ident) => {
        $crate::entry_copy_small!(classes concat!(
            $crate::entry_copy_many!(ends sse),
            $crate::entry_copy_many!(four sse),
        ))
    };
    (classes $to_64:expr) => {
        concat!(
            "mov rax, rdi\n",
            "cmp rdx, 64\n",
            "ja 23f\n",
            "cmp edx, 32\n",
            "ja 28f\n",
            "cmp edx, 16\n",
            "jb 22f\n",
            $crate::entry_copy_two!(sse),
            ".p2align 5\n",
            "22:\n",
            "cmp edx, 8\n",
            "jae 24f\n",
            "cmp edx, 4\n",
            "jae 26f\n",
            "cmp edx, 1\n",
            "ja 27f\n",
            "jb 25f\n",
            "movzx ecx, byte ptr [rsi]\n",
            "mov [rdi], cl\n",
            "25:\n",
            "ret\n",
            ".p2align 5\n",
            "24:\n",
            "mov rcx, [rsi]\n",
            "mov rsi, [rsi + rdx - 8]\n",
            "mov [rdi], rcx\n",
            "mov [rdi + rdx - 8], rsi\n",
            "ret\n",
            ".p2align 5\n",
            "26:\n",
            "mov ecx, [rsi]\n",
            "mov esi, [rsi + rdx - 4]\n",
            "mov [rdi], ecx\n",
            "mov [rdi + rdx - 4], esi\n",
            "ret\n",
            ".p2align 5\n",
            "27:\n",
            "movzx ecx, word ptr [rsi]\n",
            "movzx esi, byte ptr [rsi + rdx - 1]\n",
            "mov [rdi], cx\n",
            "mov [rdi + rdx - 1], sil\n",
            "ret\n",
            ".p2align 6\n",
            "28:\n",
            $to_64,
            ".p2align 6\n",
        )
    };
}

/// A copy of one to two vectors.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_two {
    ($kind:ident) => {
        concat!(
            $crate::entry_group!(load $kind "rsi": 0 "+ 0", 1 "+ rdx - 1"),
            $crate::entry_group!(store $kind "rdi": 0 "+ 0", 1 "+ rdx - 1"),
            $crate::entry_vector!(done $kind),
            "ret\n",
        )
    };
}

/// A copy of more than two vectors. What the table or the C library may do is
/// asked before anything is loaded.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_many {
    // To four vectors: all of them are loaded.
    (four $kind:ident) => {
        concat!(
            $crate::entry_group!(store $kind "rdi": 0 "+ 0", 1 "+ 1"),
            $crate::entry_group!(store $kind "rdi": 6 "+ rdx - 2", 7 "+ rdx - 1"),
            $crate::entry_vector!(done $kind),
            "ret\n",
        )
    };
    // To eight vectors, of which the first two are in 0 and 1 and the last two in 6 and 7.
    (eight $kind:ident) => {
        concat!(
            $crate::entry_group!(load $kind "rsi": 2 "+ 2", 3 "+ 3"),
            $crate::entry_group!(load $kind "rsi": 4 "+ rdx - 4", 5 "+ rdx - 3"),
            $crate::entry_group!(store $kind "rdi": 0 "+ 0", 1 "+ 1", 2 "+ 2", 3 "+ 3"),
            $crate::entry_group!(store $kind "rdi":
                4 "+ rdx - 4", 5 "+ rdx - 3", 6 "+ rdx - 2", 7 "+ rdx - 1"),
            $crate::entry_vector!(done $kind),
            "ret\n",
        )
    };
    // The first two vectors and the last two.
    (ends $kind:ident) => {
        concat!(
            $crate::entry_group!(load $kind "rsi": 0 "+ 0", 1 "+ 1"),
            $crate::entry_group!(load $kind "rsi": 6 "+ rdx - 2", 7 "+ rdx - 1"),
        )
    };
    // 65 bytes and more. Eight vectors are as many as the entry does whatever the table says; more go to label 33.
    (eight_here $kind:ident) => {
        concat!(
            concat!("cmp rdx, 4 * ", $crate::entry_width!($kind), "\n"),
            "ja 29f\n",
            $crate::entry_copy_many!(ends $kind),
            $crate::entry_copy_many!(four $kind),
            ".p2align 6\n",
            "29:\n",
            concat!("cmp rdx, 8 * ", $crate::entry_width!($kind), "\n"),
            "ja 33f\n",
            $crate::entry_copy_itself!(),
            $crate::entry_copy_many!(ends $kind),
            $crate::entry_copy_many!(eight $kind),
            ".p2align 5\n",
            "33:\n",
            $crate::entry_copy_itself!(),
        )
    };
    // The same of two and four vectors; more than eight go to 35.
    (four_here $kind:ident) => {
        concat!(
            concat!("cmp rdx, 2 * ", $crate::entry_width!($kind), "\n"),
            "ja 29f\n",
            $crate::entry_copy_two!($kind),
            ".p2align 6\n",
            "29:\n",
            $crate::entry_copy_itself!(),
            "cmp rdx, [rip + {direct} + {row} * 8]\n",
            "ja 39f\n",
            $crate::entry_copy_many!(ends $kind),
            concat!("cmp rdx, 4 * ", $crate::entry_width!($kind), "\n"),
            "ja 30f\n",
            $crate::entry_copy_many!(four $kind),
            ".p2align 5\n",
            "30:\n",
            concat!("cmp rdx, 8 * ", $crate::entry_width!($kind), "\n"),
            "ja 35f\n",
            $crate::entry_copy_many!(eight $kind),
        )
    };
}

/// Nothing is done where the destination is the source: no time, and no fault where it may only be read.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_itself {
    () => {
        "cmp rdi, rsi\nje 34f\n"
    };
}

/// The loops of a copy, upwards, and downwards where the destination starts inside the source
/// (0 <= dst - src < n) or seems to by the bits that loads are first compared with stores by.
/// Registers 0 and 1 hold the first two vectors, 6 and 7 the last two.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_loops {
    ($kind:ident) => {
        concat!(
            ".p2align 4\n",
            "35:\n",
            "mov rcx, rdi\n",
            "sub rcx, rsi\n",
            "cmp rcx, rdx\n",
            "jb 37f\n",
            // Downwards as well where the destination lies less than 256 bytes above a multiple of
            // 4096 from the source, as in glibc: upwards each load would meet a store just made
            // whose lower twelve bits are its own. r8 is 1 where the source starts inside the
            // destination.
            "lea r8, [rcx + rdx]\n",
            "xor r8, rcx\n",
            "shr r8, 63\n",
            "and ecx, 0xF00\n",
            "add ecx, r8d\n",
            "jz 37f\n",
            $crate::entry_group!(load $kind "rsi": 4 "+ rdx - 4", 5 "+ rdx - 3"),
            // From the first aligned place behind dst to the last four vectors, rcx, and up to
            // three and a bit of them into these.
            concat!("lea rcx, [rdi + rdx - 4 * ", $crate::entry_width!($kind), "]\n"),
            "mov r10, rdi\n",
            "sub rsi, rdi\n",
            concat!("or rdi, ", $crate::entry_width!($kind), " - 1\n"),
            "inc rdi\n",
            ".p2align 6\n",
            "36:\n",
            $crate::entry_group!(load $kind "rdi + rsi": 1 "+ 0", 2 "+ 1", 3 "+ 2", 8 "+ 3"),
            $crate::entry_group!(put $kind "rdi": 1 "+ 0", 2 "+ 1", 3 "+ 2", 8 "+ 3"),
            concat!("sub rdi, -4 * ", $crate::entry_width!($kind), "\n"),
            "cmp rdi, rcx\n",
            "jb 36b\n",
            $crate::entry_group!(store $kind "rcx": 4 "+ 0", 5 "+ 1", 6 "+ 2", 7 "+ 3"),
            $crate::entry_group!(store $kind "r10": 0 "+ 0"),
            $crate::entry_vector!(done $kind),
            "ret\n",
            // The mirror image.
            ".p2align 5\n",
            "37:\n",
            $crate::entry_group!(load $kind "rsi": 2 "+ 2", 3 "+ 3"),
            concat!("lea rcx, [rdi + 4 * ", $crate::entry_width!($kind), "]\n"),
            "lea r8, [rdi + rdx]\n",
            "sub rsi, rdi\n",
            concat!("lea r9, [r8 - ", $crate::entry_width!($kind), "]\n"),
            concat!("and r8, -", $crate::entry_width!($kind), "\n"),
            ".p2align 6\n",
            "38:\n",
            $crate::entry_group!(load $kind "r8 + rsi": 4 "- 1", 5 "- 2", 6 "- 3", 8 "- 4"),
            $crate::entry_group!(put $kind "r8": 4 "- 1", 5 "- 2", 6 "- 3", 8 "- 4"),
            concat!("add r8, -4 * ", $crate::entry_width!($kind), "\n"),
            "cmp r8, rcx\n",
            "ja 38b\n",
            $crate::entry_group!(store $kind "rdi": 0 "+ 0", 1 "+ 1", 2 "+ 2", 3 "+ 3"),
            $crate::entry_group!(store $kind "r9": 7 "+ 0"),
            $crate::entry_vector!(done $kind),
            "34:\n",
            "ret\n",
        )
    };
}

/// A copy of more than 64 bytes in one entry.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_way {
    (sse2) => {
        concat!(
            $crate::entry_decided!(),
            "cmp rdx, 128\n",
            "ja 33f\n",
            $crate::entry_copy_many!(ends sse),
            $crate::entry_copy_many!(eight sse),
            ".p2align 5\n",
            "33:\n",
            $crate::entry_copy_itself!(),
            "jmp 39f\n",
            "34:\n",
            "ret\n",
        )
    };
    (avx2) => {
        concat!(
            $crate::entry_copy_many!(eight_here avx),
            "cmp rdx, [rip + {direct} + {row} * 8]\n",
            "ja 39f\n",
            $crate::entry_copy_many!(ends avx),
            $crate::entry_copy_loops!(avx),
            ".p2align 4\n",
        )
    };
    (avx512vl) => {
        concat!(
            $crate::entry_copy_many!(four_here evex64),
            $crate::entry_copy_loops!(evex64),
            ".p2align 4\n",
        )
    };
}

/// End of a copy or a move: the table.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_or_move {
    ($functions:ident, $row:ident, $operation:ident, $part:ident $way:ident, $before:expr, $after:expr
        $(, $($operand:tt)*)?) => {
        $crate::entry_text!($functions, $row, $crate::entry::Operation::$operation, (
            $crate::entry_copy_small!($part $way),
            "23:",
            $crate::entry_choice!($part copy),
            $crate::entry_copy_way!($way),
            "39:",
            $crate::entry_next!("rdx", "row", ""),
            $before,
            $crate::entry_through_the_table!("rdx"),
            $after,
        ) $(, $($operand)*)?)
    };
}
