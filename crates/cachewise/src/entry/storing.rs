//! Copies, moves, fills and zeros: the size classes once, and what each entry makes of them.
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
    // Eight vectors are as many as the entry does whatever the table says; more go to label 33.
    (eight_here $kind:ident) => {
        concat!(
            "cmp rdx, 8 * ",
            $crate::entry_width!($kind),
            "\n",
            "ja 33f\n",
            $crate::entry_copy_many!(ends $kind),
            "cmp rdx, 4 * ",
            $crate::entry_width!($kind),
            "\n",
            "jbe 28f\n",
            $crate::entry_copy_many!(eight $kind),
            ".p2align 5\n",
            "28:\n",
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
            "cmp rdx, 4 * ",
            $crate::entry_width!($kind),
            "\n",
            "jbe 28f\n",
            "cmp rdx, 8 * ",
            $crate::entry_width!($kind),
            "\n",
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
            "lea rcx, [rdi + rdx - 4 * ",
            $crate::entry_width!($kind),
            "]\n",
            "mov r10, rdi\n",
            "sub rsi, rdi\n",
            "or rdi, ",
            $crate::entry_width!($kind),
            " - 1\n",
            "inc rdi\n",
            ".p2align 6\n",
            "36:\n",
            $crate::entry_group!(load $kind "rdi + rsi": 1 "+ 0", 2 "+ 1", 3 "+ 2", 8 "+ 3"),
            $crate::entry_group!(put $kind "rdi": 1 "+ 0", 2 "+ 1", 3 "+ 2", 8 "+ 3"),
            "sub rdi, -4 * ",
            $crate::entry_width!($kind),
            "\n",
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
            "lea rcx, [rdi + 4 * ",
            $crate::entry_width!($kind),
            "]\n",
            "lea r8, [rdi + rdx]\n",
            "sub rsi, rdi\n",
            "lea r9, [r8 - ",
            $crate::entry_width!($kind),
            "]\n",
            "and r8, -",
            $crate::entry_width!($kind),
            "\n",
            ".p2align 6\n",
            "38:\n",
            $crate::entry_group!(load $kind "r8 + rsi": 4 "- 1", 5 "- 2", 6 "- 3", 8 "- 4"),
            $crate::entry_group!(put $kind "r8": 4 "- 1", 5 "- 2", 6 "- 3", 8 "- 4"),
            "add r8, -4 * ",
            $crate::entry_width!($kind),
            "\n",
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
            ".p2align 6\n",
            "23:\n",
            $crate::entry_copy_many!(eight_here sse),
        )
    };
    (avx2) => {
        concat!(
            "mov rax, rdi\n",
            "cmp rdx, 64\n",
            "ja {larger} + 26\n", // behind what that begins with
            "cmp edx, 16\n",
            "jb 22f\n",
            "cmp edx, 32\n",
            "jb 29f\n",
            $crate::entry_copy_two!(avx),
            ".p2align 6\n",
            "29:\n", // 16 to 31
            $crate::entry_copy_two!(sse),
            $crate::entry_copy_bytes!(),
        )
    };
    (avx2_larger) => {
        concat!(
            "mov rax, rdi\n",
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
            "cmp edx, 16\n",
            "jb 20f\n",
            $crate::entry_copy_two!(evex16),
            ".p2align 6\n",
            "20:\n", // 0 to 15
            $crate::entry_in_page!(both 16),
            "or ecx, -1\n",
            "bzhi ecx, ecx, edx\n",
            "kmovd k1, ecx\n",
            "jz 25f\n",
            "vmovdqu8 xmm20{{k1}}{{z}}, [rsi]\n",
            "vmovdqu8 [rdi]{{k1}}, xmm20\n",
            "25:\n",
            "ret\n",
            ".p2align 6\n",
            "27:\n", // 33 and more
            $crate::entry_huge!("rdx"),
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
        $after:expr $(, $($operand:tt)+)?) => {
        $crate::entry_text!($functions, $row, $operation, (
            $choice,
            $way,
            "39:",
            $crate::entry_next!("rdx", "row", ""),
            $before,
            $crate::entry_through_the_table!("rdx"),
            $after,
        ) $(, $($operand)+)?)
    };
}

/// Stores of one register, the first, at places from dst on.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_put {
    ($kind:ident: $($at:expr),+) => {
        concat!($($crate::entry_group!(store $kind "rdi": 0 $at)),+)
    };
}

/// A fill of more than two vectors; as `entry_copy_many`. `$n` is the register of
/// the size, `$splat` what brings the byte into register 0, `$limit` what asks for the table.
/// Upwards, so that stores to one line follow each other. Eight vectors are as many as the entry
/// does whatever the table says, or four, as in a copy; more than eight go to label 33, or with
/// `four_here` to 35.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_many {
    (eight_here $kind:ident, $n:literal, $splat:expr) => {
        concat!(
            "cmp ",
            $n,
            ", 8 * ",
            $crate::entry_width!($kind),
            "\n",
            "ja 33f\n",
            $splat,
            $crate::entry_put!($kind: "+ 0", "+ 1"),
            "cmp ",
            $n,
            ", 4 * ",
            $crate::entry_width!($kind),
            "\n",
            "ja 28f\n",
            $crate::entry_put!($kind: concat!("+ ", $n, " - 2"), concat!("+ ", $n, " - 1")),
            $crate::entry_vector!(done $kind),
            "ret\n",
            ".p2align 5\n",
            "28:\n",
            $crate::entry_put!($kind: "+ 2", "+ 3"),
            $crate::entry_put!($kind: concat!("+ ", $n, " - 4"), concat!("+ ", $n, " - 3")),
            $crate::entry_put!($kind: concat!("+ ", $n, " - 2"), concat!("+ ", $n, " - 1")),
            $crate::entry_vector!(done $kind),
            "ret\n",
            ".p2align 5\n",
            "33:\n",
        )
    };
    // The byte is in the register.
    (four_here $kind:ident, $n:literal, $limit:expr) => {
        concat!(
            ".p2align 6\n",
            "23:\n",
            "cmp ",
            $n,
            ", 4 * ",
            $crate::entry_width!($kind),
            "\n",
            "jbe 28f\n",
            $limit,
            "cmp ",
            $n,
            ", 8 * ",
            $crate::entry_width!($kind),
            "\n",
            "ja 35f\n",
            $crate::entry_put!($kind: "+ 0", "+ 1", "+ 2", "+ 3"),
            $crate::entry_put!($kind: concat!("+ ", $n, " - 4"), concat!("+ ", $n, " - 3")),
            $crate::entry_put!($kind: concat!("+ ", $n, " - 2"), concat!("+ ", $n, " - 1")),
            $crate::entry_vector!(done $kind),
            "ret\n",
            ".p2align 5\n",
            "28:\n",
            $crate::entry_put!($kind: "+ 0", "+ 1"),
            $crate::entry_put!($kind: concat!("+ ", $n, " - 2"), concat!("+ ", $n, " - 1")),
            $crate::entry_vector!(done $kind),
            "ret\n",
            ".p2align 5\n",
            "35:\n",
        )
    };
}

/// The loop of a fill of more than eight vectors: four at the start, four at a time, four at the end. All are
/// aligned but the first and the last: a store that straddles lines costs two, and one that straddles pages
/// 25 cycles on Zen 4. With masks these two are aligned as well.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_loop {
    (avx, $n:literal) => {
        concat!(
            "lea rcx, [rdi + ",
            $n,
            " - 1]\n",
            $crate::entry_put!(avx: "+ 0"),
            "or rdi, 31\n",
            "inc rdi\n",
            "and rcx, -32\n",
            $crate::entry_group!(put avx "rdi": 0 "+ 0", 0 "+ 1", 0 "+ 2"),
            "add rdi, 3 * 32\n",
            "sub rcx, 3 * 32\n",
            $crate::entry_fill_loop!(steps avx),
            "vmovdqu [rax + ",
            $n,
            " - 32], ymm0\n",
            "vzeroupper\n",
            "ret\n",
        )
    };
    (evex64, $n:literal) => {
        concat!(
            "lea rcx, [rdi + ",
            $n,
            " - 1]\n",
            "or r8, -1\n",
            "shlx r9, r8, rdi\n", // shifts by what is beyond an aligned place
            "and rdi, -64\n",
            "kmovq k1, r9\n",
            "mov r9, rcx\n",
            "not r9\n",
            "and rcx, -64\n",
            "shrx r9, r8, r9\n",
            "kmovq k2, r9\n",
            "vmovdqu8 [rdi]{{k1}}, zmm20\n",
            $crate::entry_group!(put evex64 "rdi": 0 "+ 1", 0 "+ 2", 0 "+ 3"),
            "sub rdi, -4 * 64\n",
            "sub rcx, 3 * 64\n",
            $crate::entry_fill_loop!(steps evex64),
            "vmovdqu8 [rcx + 3 * 64]{{k2}}, zmm20\n",
            "ret\n",
        )
    };
    // From rdi, which is aligned, up to the last four, which begin at rcx, and three of them.
    (steps $kind:ident) => {
        concat!(
            ".p2align 6\n",
            "36:\n",
            $crate::entry_group!(put $kind "rdi": 0 "+ 0", 0 "+ 1", 0 "+ 2", 0 "+ 3"),
            "sub rdi, -4 * ",
            $crate::entry_width!($kind),
            "\n",
            "cmp rdi, rcx\n",
            "jb 36b\n",
            $crate::entry_group!(put $kind "rcx": 0 "+ 0", 0 "+ 1", 0 "+ 2"),
        )
    };
}

/// A fill of 0 to 15 bytes, at label 22: the byte in each of ecx's four.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_bytes {
    ($n:literal, $half:literal, $word:expr) => {
        concat!(
            ".p2align 4\n",
            "22:\n",
            $word,
            "cmp ",
            $half,
            ", 4\n",
            "jb 24f\n",
            "mov r8d, ", // 4 to 15, as in a copy
            $half,
            "\n",
            "mov r10, ",
            $n,
            "\n",
            "shr r8d, 1\n",
            "and r8d, 4\n",
            "mov [rdi], ecx\n",
            "sub r10, r8\n",
            "mov [rdi + r8], ecx\n",
            "mov [rdi + ",
            $n,
            " - 4], ecx\n",
            "mov [rdi + r10 - 4], ecx\n",
            "ret\n",
            ".p2align 4\n",
            "24:\n", // 0 to 3
            "test ",
            $half,
            ", ",
            $half,
            "\n",
            "jz 25f\n",
            "mov r8d, ",
            $half,
            "\n",
            "shr r8d, 1\n",
            "mov [rdi], cl\n",
            "mov [rdi + r8], cl\n",
            "mov [rdi + ",
            $n,
            " - 1], cl\n",
            "25:\n",
            "ret\n",
        )
    };
}

/// A fill of one to two vectors.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_two {
    ($kind:ident, $n:literal, $splat:expr) => {
        concat!(
            $splat,
            $crate::entry_put!($kind: "+ 0", concat!("+ ", $n, " - 1")),
            $crate::entry_vector!(done $kind),
            "ret\n",
        )
    };
}

/// All of a fill's or a zero's text in one entry. `$byte` says how the byte comes into registers:
/// `entry_splat_byte` or `entry_splat_zero`; `$limit` is what asks before more than 256 bytes are
/// done here, and goes to label 39 for the table.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_way {
    (sse2, $n:literal, $half:literal, $byte:ident, $limit:expr) => {
        concat!(
            "mov rax, rdi\n",
            "cmp ",
            $n,
            ", 32\n",
            "ja 23f\n",
            "cmp ",
            $half,
            ", 16\n",
            "jb 22f\n",
            $crate::entry_fill_two!(sse, $n, $crate::$byte!(sse)),
            $crate::entry_fill_bytes!($n, $half, $crate::$byte!(word)),
            ".p2align 6\n",
            "23:\n",
            $crate::entry_fill_many!(eight_here sse, $n, $crate::$byte!(sse)),
        )
    };
    (avx2, $n:literal, $half:literal, $byte:ident, $limit:expr) => {
        concat!(
            "mov rax, rdi\n",
            "cmp ",
            $n,
            ", 64\n",
            "ja {larger} + 26\n", // behind what that begins with
            "cmp ",
            $half,
            ", 16\n",
            "jb 22f\n",
            "cmp ",
            $half,
            ", 32\n",
            "jb 29f\n",
            $crate::entry_fill_two!(avx, $n, $crate::$byte!(avx)),
            ".p2align 6\n",
            "29:\n", // 16 to 31
            $crate::entry_fill_two!(sse, $n, $crate::$byte!(sse)),
            $crate::entry_fill_bytes!($n, $half, $crate::$byte!(word)),
        )
    };
    (avx2_larger, $n:literal, $half:literal, $byte:ident, $limit:expr) => {
        concat!(
            "mov rax, rdi\n",
            $crate::entry_fill_many!(eight_here avx, $n, $crate::$byte!(avx)),
            $limit,
            $crate::$byte!(avx),
            $crate::entry_fill_loop!(avx, $n),
            ".p2align 4\n",
        )
    };
    // One mask of 64 bytes, as in glibc, and in the exported function one line of code up to the first return.
    (avx512vl, $n:literal, $half:literal, $byte:ident, $limit:expr) => {
        concat!(
            $crate::$byte!(evex64),
            $crate::entry_in_page!(dst 64),
            "or rcx, -1\n",
            "bzhi rcx, rcx, ",
            $n,
            "\n",
            "jz 25f\n",
            "kmovq k1, rcx\n",
            "vmovdqu8 [rdi]{{k1}}, zmm20\n",
            "25:\n",
            "ret\n",
            ".p2align 5\n",
            "26:\n",
            $crate::entry_huge!($n),
            $crate::$byte!(evex64),
            "cmp ",
            $n,
            ", 128\n",
            "ja 23f\n",
            $crate::entry_fill_two!(evex64, $n, ""),
            ".p2align 4\n",
            "21:\n",
            "cmp ",
            $half,
            ", 16\n",
            "jb 22f\n",
            "cmp ",
            $half,
            ", 32\n",
            "jbe 29f\n",
            $crate::entry_fill_two!(evex32, $n, ""),
            ".p2align 5\n",
            "29:\n", // 16 to 32
            $crate::entry_fill_two!(evex16, $n, ""),
            $crate::entry_fill_bytes!($n, $half, $crate::$byte!(word)),
            $crate::entry_fill_many!(four_here evex64, $n, $limit),
            $crate::entry_fill_loop!(evex64, $n),
            ".p2align 4\n",
        )
    };
}

/// The byte in esi: in each of a word's four (ecx), or of a vector's.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_splat_byte {
    (word) => {
        "movzx ecx, sil\nimul ecx, ecx, 0x01010101\n"
    };
    (sse) => {
        "movd xmm0, esi\npunpcklbw xmm0, xmm0\npshuflw xmm0, xmm0, 0\npunpcklqdq xmm0, xmm0\n"
    };
    (avx) => {
        "vmovd xmm0, esi\nvpbroadcastb ymm0, xmm0\n"
    };
    (evex32) => {
        "vpbroadcastb ymm20, esi\n"
    };
    (evex64) => {
        "vpbroadcastb zmm20, esi\n"
    };
}

/// The same of zeros.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_splat_zero {
    (word) => {
        "xor ecx, ecx\n"
    };
    (sse) => {
        "xorps xmm0, xmm0\n"
    };
    (avx) => {
        "vpxor xmm0, xmm0, xmm0\n"
    };
    (evex32) => {
        "vpxord xmm20, xmm20, xmm20\n"
    };
    (evex64) => {
        "vpxord xmm20, xmm20, xmm20\n"
    };
}

/// Before more than 256 bytes of a fill: the table beyond its limit, and zeros beyond theirs, at
/// label 44. No branch is taken where neither is: one cost a cycle of twelve at 384 bytes.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_limit {
    () => {
        concat!(
            "cmp rdx, [rip + {direct} + {row} * 8]\n",
            "ja 39f\n",
            "cmp rdx, [rip + {direct} + {zero_row} * 8]\n",
            "ja 44f\n",
            "41:\n",
        )
    };
}

/// Beyond the limit of zeros other bytes go on, and zeros to what follows.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_beyond_zeros {
    (sse2) => {
        "jmp 39f\n"
    };
    ($other:ident) => {
        "44:\ntest sil, sil\njnz 41b\n"
    };
}

/// A fill: zeros of more than 256 bytes are their own operation's, by `{zero}`.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_in {
    ($choice:expr, avx2) => {
        $crate::entry_text!(FILL, FILL_ROW, $crate::entry::Operation::Fill, (
            $choice,
            $crate::entry_fill_way!(avx2, "rdx", "edx", entry_splat_byte, ""),
        ), larger = sym $crate::entry::ways::fill::avx2_larger)
    };
    ($choice:expr, $way:ident $(, $($operand:tt)+)?) => {
        $crate::entry_text!(FILL, FILL_ROW, $crate::entry::Operation::Fill, (
            $choice,
            $crate::entry_fill_way!(
                $way, "rdx", "edx", entry_splat_byte, $crate::entry_fill_limit!()
            ),
            $crate::entry_fill_beyond_zeros!($way),
            "43:",
            $crate::entry_next!("rdx", "zero_row", ""),
            "mov rsi, rdx",
            "jmp {zero}",
            ".p2align 4",
            "39:",
            "test sil, sil",
            "jz 43b",
            // rdi is still dst, as the kernels expect it.
            $crate::entry_next!("rdx", "row", ""),
            $crate::entry_through_the_table!("rdx"),
            "/* {zero_row} */",
        ),
            zero = sym $crate::raw::zero,
            zero_row = const $crate::entry::ZERO_ROW,
            larger = sym $crate::entry::ways::fill::avx2_larger
            $(, $($operand)+)?
        )
    };
}

/// A zero: dst, n.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_zero_in {
    ($choice:expr, avx2) => {
        $crate::entry_text!(ZERO, ZERO_ROW, $crate::entry::Operation::Zero, (
            $choice,
            $crate::entry_fill_way!(avx2, "rsi", "esi", entry_splat_zero, ""),
        ), larger = sym $crate::entry::ways::zero::avx2_larger)
    };
    ($choice:expr, $way:ident $(, $($operand:tt)+)?) => {
        $crate::entry_text!(ZERO, ZERO_ROW, $crate::entry::Operation::Zero, (
            $choice,
            $crate::entry_fill_way!(
                $way, "rsi", "esi", entry_splat_zero,
                "cmp rsi, [rip + {direct} + {row} * 8]\nja 39f\n"
            ),
            "39:",
            $crate::entry_next!("rsi", "row", "mov rdx, rsi\nxor esi, esi\n"),
            $crate::entry_through_the_table!("rsi"),
        ), larger = sym $crate::entry::ways::zero::avx2_larger $(, $($operand)+)?)
    };
}
