//! Copies, moves, fills and zeros: the size classes once, and what each entry makes of them; fills and zeros
//! are in `filling.rs`.
//!
//! | bytes | `sse2` | `avx2` | `avx512vl` |
//! |---|---|---|---|
//! | 0-3 | first, middle and last byte | the same | one masked 16 (a fill: 64) |
//! | 4-15 | 2 x 4 + 2 x 4 | the same | the same |
//! | 16-32 | 16 + 16 | the same | 16 + 16 (a fill: one masked 64) |
//! | to 64 | 2 x 16 + 2 x 16 | 32 + 32 | 32 + 32 (a fill: one masked 64) |
//! | to 128 | 4 x 16 + 4 x 16 | 2 x 32 + 2 x 32 | 64 + 64 |
//! | to 256 | the table's kernel | 4 x 32 + 4 x 32 | 2 x 64 + 2 x 64 |
//! | to 384, 512 | | 6 x 32 + 6 x 32, 8 x 32 + 8 x 32 (a fill: the loop) | 4 x 64 + 4 x 64 |
//! | more | | 32, loop of 4 x 32 at aligned places, 4 x 32 | the same with 64 |
//! | beyond the direct limit | | the table's kernel | the table's kernel |
//!
//! At the end of a page `avx512vl` has the classes of `avx2`.
//!
//! The grammar is llvm-libc's: a class is served by blocks from its head and as many from its tail,
//! which overlap where the size is not the class's largest. Nothing branches but on the class; in
//! that of 4 to 15 bytes the place of the inner blocks is computed. All loads of a class come
//! before its first store, and the loop asks for the direction, so that a copy is also a move up to
//! the table.
//!
//! In all of them rax holds what is returned from the first instruction on, which is three bytes
//! long (who wants another value enters behind it), and nothing touches the stack.

/// A copy or a move of 0 to 15 bytes, at label 22.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_bytes {
    () => {
        concat!(
            ".p2align 6\n",
            "21:\n", // at the end of a page
            "22:\n",
            "cmp edx, 4\n",
            "jb 24f\n",
            "mov ecx, edx\n", // 4 to 15: the inner blocks are 0 or 4 bytes from the ends
            "mov r8d, [rsi]\n",
            "shr ecx, 1\n",
            "mov r9d, [rsi + rdx - 4]\n",
            "and ecx, 4\n",
            "mov r10, rdx\n",
            "sub r10, rcx\n",
            "mov r11d, [rsi + rcx]\n",
            "mov esi, [rsi + r10 - 4]\n",
            "mov [rdi], r8d\n",
            "mov [rdi + rcx], r11d\n",
            "mov [rdi + r10 - 4], esi\n",
            "mov [rdi + rdx - 4], r9d\n",
            "ret\n",
            ".p2align 6\n",
            "24:\n", // 0 to 3
            "test edx, edx\n",
            "jz 25f\n",
            "mov r9d, edx\n",
            "shr r9d, 1\n",
            "movzx ecx, byte ptr [rsi]\n",
            "movzx r8d, byte ptr [rsi + r9]\n",
            "movzx esi, byte ptr [rsi + rdx - 1]\n",
            "mov [rdi], cl\n",
            "mov [rdi + r9], r8b\n",
            "mov [rdi + rdx - 1], sil\n",
            "25:\n",
            "ret\n",
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
    // Eight vectors are as many as the entry does whatever the table says; more go to label 33. To four vectors nothing
    // is jumped over: programs copy 65 to 128 bytes twice as often as 129 to 256 (`measure::distributions`), and 33
    // to 64 as often again. The padding lets the larger class of `avx2` end near label 23, so that the jump back is short.
    (eight_here $kind:ident) => {
        concat!(
            ".p2align 6\n",
            ".nops 48\n",
            "28:\n",
            $crate::entry_copy_many!(eight $kind),
            ".p2align 6\n",
            "23:\n",
            concat!("cmp rdx, 8 * ", $crate::entry_width!($kind), "\n"),
            "ja 33f\n",
            $crate::entry_copy_many!(ends $kind),
            concat!("cmp edx, 4 * ", $crate::entry_width!($kind), "\n"),
            "ja 28b\n",
            $crate::entry_copy_many!(four $kind),
            ".p2align 5\n",
            "33:\n",
        )
    };
    // Four vectors are as many as the entry does whatever the table says; more than eight go to 35.
    (four_here $kind:ident) => {
        concat!(
            ".p2align 6\n",
            "23:\n",
            "cmp rdx, [rip + {direct} + {row} * 8]\n",
            "ja 39f\n",
            $crate::entry_copy_many!(ends $kind),
            concat!("cmp rdx, 4 * ", $crate::entry_width!($kind), "\n"),
            "jbe 28f\n",
            concat!("cmp rdx, 8 * ", $crate::entry_width!($kind), "\n"),
            "ja 35f\n",
            $crate::entry_copy_many!(eight $kind),
            ".p2align 5\n",
            "28:\n",
            $crate::entry_copy_many!(four $kind),
        )
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
            ".p2align 5\n",
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
            "ret\n",
        )
    };
}

/// All of a copy's text in one entry.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_way {
    (sse2) => {
        concat!(
            "mov rax, rdi\n",
            "cmp rdx, 32\n",
            "ja 23f\n",
            "cmp edx, 16\n",
            "jb 22f\n",
            $crate::entry_copy_two!(sse),
            $crate::entry_copy_bytes!(),
            $crate::entry_copy_many!(eight_here sse),
        )
    };
    (avx2) => {
        concat!(
            "mov rax, rdi\n",
            "cmp rdx, 64\n",
            "ja 23f\n",
            "cmp edx, 16\n",
            "jb 22f\n",
            "cmp edx, 32\n",
            "jb 29f\n",
            $crate::entry_copy_two!(avx),
            ".p2align 6\n",
            "29:\n", // 16 to 31
            $crate::entry_copy_two!(sse),
            $crate::entry_copy_bytes!(),
            $crate::entry_copy_many!(eight_here avx),
            "cmp rdx, [rip + {direct} + {row} * 8]\n",
            "ja 39f\n",
            $crate::entry_copy_many!(ends avx),
            "cmp rdx, 12 * 32\n",
            "ja 34f\n",
            $crate::entry_group!(load avx "rsi": 2 "+ 2", 3 "+ 3"),
            $crate::entry_group!(load avx "rsi": 4 "+ rdx - 4", 5 "+ rdx - 3"),
            $crate::entry_group!(load avx "rsi": 8 "+ 4", 9 "+ 5"),
            $crate::entry_group!(load avx "rsi": 10 "+ rdx - 6", 11 "+ rdx - 5"),
            $crate::entry_group!(store avx "rdi":
                0 "+ 0", 1 "+ 1", 2 "+ 2", 3 "+ 3", 8 "+ 4", 9 "+ 5"),
            $crate::entry_group!(store avx "rdi":
                10 "+ rdx - 6", 11 "+ rdx - 5", 4 "+ rdx - 4", 5 "+ rdx - 3",
                6 "+ rdx - 2", 7 "+ rdx - 1"),
            "vzeroupper\n",
            "ret\n",
            ".p2align 5\n",
            "34:\n",
            "cmp rdx, 16 * 32\n",
            "ja 35f\n",
            $crate::entry_group!(load avx "rsi": 2 "+ 2", 3 "+ 3", 8 "+ 4", 9 "+ 5"),
            $crate::entry_group!(load avx "rsi": 12 "+ 6", 13 "+ 7"),
            $crate::entry_group!(load avx "rsi":
                14 "+ rdx - 8", 15 "+ rdx - 7", 10 "+ rdx - 6", 11 "+ rdx - 5",
                4 "+ rdx - 4", 5 "+ rdx - 3"),
            $crate::entry_group!(store avx "rdi":
                0 "+ 0", 1 "+ 1", 2 "+ 2", 3 "+ 3", 8 "+ 4", 9 "+ 5", 12 "+ 6", 13 "+ 7"),
            $crate::entry_group!(store avx "rdi":
                14 "+ rdx - 8", 15 "+ rdx - 7", 10 "+ rdx - 6", 11 "+ rdx - 5",
                4 "+ rdx - 4", 5 "+ rdx - 3", 6 "+ rdx - 2", 7 "+ rdx - 1"),
            "vzeroupper\n",
            "ret\n",
            $crate::entry_copy_loops!(avx),
            ".p2align 4\n",
        )
    };
    (avx512vl) => {
        concat!(
            "mov rax, rdi\n",
            "cmp rdx, 33\n",
            "jae 27f\n",
            "cmp edx, 16\n",
            "jb 20f\n",
            $crate::entry_copy_two!(evex16),
            ".p2align 6\n",
            "20:\n", // 0 to 15
            $crate::entry_in_page!(16),
            "or ecx, -1\n",
            "bzhi ecx, ecx, edx\n",
            "kmovd k1, ecx\n",
            "jz 25f\n",
            "vmovdqu8 xmm20{{k1}}{{z}}, [rsi]\n",
            "vmovdqu8 [rdi]{{k1}}, xmm20\n",
            "25:\n",
            "ret\n",
            ".p2align 6\n",
            "27:\n",
            "cmp rdx, 64\n",
            "jbe 29f\n",
            "cmp rdx, 128\n",
            "ja 23f\n",
            $crate::entry_copy_two!(evex64),
            ".p2align 6\n",
            "29:\n",
            $crate::entry_copy_two!(evex32),
            $crate::entry_copy_bytes!(),
            $crate::entry_copy_many!(four_here evex64),
            $crate::entry_copy_loops!(evex64),
            ".p2align 4\n",
        )
    };
}

/// What a copy or a move ends with: the table.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_or_move {
    ($functions:ident, $row:ident, $operation:expr, $choice:expr, $way:expr, $before:expr,
        $after:expr $(, $($operand:tt)*)?) => {
        $crate::entry_text!($functions, $row, $operation, (
            $choice,
            $way,
            "39:",
            $crate::entry_next!("rdx", "row", ""),
            $before,
            $crate::entry_through_the_table!("rdx"),
            $after,
        ) $(, $($operand)*)?)
    };
}
