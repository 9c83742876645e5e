//! The way in on x86-64: `memcpy`, `memmove`, `memset`, zeroing and, in `comparing.rs`, `memcmp` and
//! the test for equality, from the first instruction to the jump into the table, as machine code that
//! no compiler rearranges.
//!
//! Not for use by programs: `raw.rs` makes its functions of these macros, and so do the C library
//! and the preload library, whose exported functions then *are* the operation rather than a jump to
//! it. A call between crates goes through the global offset table, and that indirect jump was
//! measured at 1.3 ns for 256 bytes, two fifths of the operation itself.
//!
//! The grammar is llvm-libc's: a class is served by blocks from its head and as many from its tail,
//! which overlap where the size is not the class's largest. Nothing branches but on the class, and the
//! class of 4 to 15 bytes is wider than one pair of blocks serves: there the place of the inner blocks
//! is computed from the size. Calls of one size would be some 10 % faster with two classes; calls of
//! sizes as programs make them mispredict less with one, and more than a third of those are of 4 to 15.
//!
//! | bytes | copy, move | fill, zero | takes |
//! |---|---|---|---|
//! | 0 | nothing | nothing | |
//! | 1-3 | first, middle and last byte | the same | |
//! | 4-15 | 2 x 4 + 2 x 4 | the same | |
//! | 16-31 | 16 + 16 | the same | SSE2 |
//! | 32-64 | 32 + 32, or 2 x 16 + 2 x 16 | the same | direct, or SSE2 |
//! | 65-128 | 2 x 32 + 2 x 32, or 4 x 16 + 4 x 16 | the same | direct, or SSE2 |
//! | 129-256 | 4 x 32 + 4 x 32 | the same | direct |
//! | 257-384 | 6 x 32 + 6 x 32 | 4 x 32, loop of 4 x 32 at aligned places, 4 x 32 | direct |
//! | more | 32, loop of 4 x 32 at aligned places, 4 x 32 | the loop | direct |
//! | beyond the direct limit | the table's kernel | the table's kernel | |
//!
//! *Direct* means up to the row's limit ([`DIRECT`]): for as long as the decisions say the plain AVX
//! loop. Up to 384 bytes every load of a copy comes before its first store, so that it is also a move.
//!
//! In all of them rax holds what is returned from the first instruction on, and nothing touches the
//! stack.

mod comparing;

pub use crate::dispatch::{COMPARE, COPY, DIRECT, EQUAL, FILL, MOVE, PAGE, ROW_BYTES, ROWS, ZERO};
use crate::profile;
use crate::reuse::Reuse;
use cachewise_kernels::Operation;

/// The numbers of the rows for calls without a hint.
pub const COPY_ROW: usize = profile::row(Operation::Copy, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const MOVE_ROW: usize = profile::row(Operation::Move, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const FILL_ROW: usize = profile::row(Operation::Fill, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const ZERO_ROW: usize = profile::row(Operation::Zero, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const COMPARE_ROW: usize = profile::row(Operation::Compare, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const EQUAL_ROW: usize = profile::row(Operation::Equal, Reuse::Unknown);

/// From a size to its kernel, as `dispatch::class` and `dispatch::function` have it, and a jump
/// there. `$n` is the register of the size.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_through_the_table {
    ($n:literal) => {
        concat!(
            // Nobody outside the library or program that this is linked into has them, so that
            // their distance from here is known, in a shared library too.
            ".hidden {direct}\n.hidden {rows}\n.hidden {functions}\n",
            "cmp ",
            $n,
            ", 4096\n",
            "jae 3f\n",
            "mov rcx, ",
            $n,
            "\n",
            "shr rcx, 5\n",
            "2:\n",
            "lea r8, [rip + {rows} + {row} * {row_bytes}]\n",
            "movzx ecx, byte ptr [r8 + rcx]\n",
            "lea r8, [rip + {functions}]\n",
            "jmp qword ptr [r8 + rcx * 8]\n",
            // An eighth of an octave: class = 128 + 8 * (octave - 12) + (n >> (octave - 3)) - 8.
            "3:\n",
            "bsr r9, ",
            $n,
            "\n",
            "lea ecx, [r9 - 3]\n",
            "mov r8, ",
            $n,
            "\n",
            "shr r8, cl\n",
            "lea rcx, [r8 + r9 * 8 + 24]\n",
            "jmp 2b\n",
        )
    };
}

/// A copy or a move. rdi dst, rsi src, rdx n.
///
/// `$first` puts into rax what is returned; `$long` stands before the loop, where buffers that
/// overlap may be told by `jb 37f`; `$table` before the look-up, whose kernel returns dst; `$last`
/// behind everything. Labels from 40 on are theirs, and so are operands at the end.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy_or_move {
    ($functions:ident, $row:ident, $first:expr, $long:expr, $table:expr, $last:expr
        $(, $($operand:tt)+)?) => {
        core::arch::naked_asm!(
            $first,
            "cmp rdx, 64",
            "ja 23f",
            "cmp edx, 16",
            "jb 22f",
            "cmp edx, 32",
            "jb 29f",
            "cmp rdx, [rip + {direct} + {row} * 8]", // 32 to 64
            "ja 30f",
            "vmovdqu ymm0, [rsi]",
            "vmovdqu ymm1, [rsi + rdx - 32]",
            "vmovdqu [rdi], ymm0",
            "vmovdqu [rdi + rdx - 32], ymm1",
            "vzeroupper",
            "ret",
            ".p2align 6",
            "29:", // 16 to 31
            "movups xmm0, [rsi]",
            "movups xmm3, [rsi + rdx - 16]",
            "movups [rdi], xmm0",
            "movups [rdi + rdx - 16], xmm3",
            "ret",
            ".p2align 4",
            "30:", // 32 to 64
            "movups xmm0, [rsi]",
            "movups xmm3, [rsi + rdx - 16]",
            "movups xmm1, [rsi + 16]",
            "movups xmm2, [rsi + rdx - 32]",
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm1",
            "movups [rdi + rdx - 32], xmm2",
            "movups [rdi + rdx - 16], xmm3",
            "ret",

            ".p2align 6",
            "22:", // 0 to 15
            "cmp edx, 4",
            "jb 24f",
            "mov ecx, edx", // 4 to 15: the inner blocks are 0 or 4 bytes from the ends
            "mov r8d, [rsi]",
            "shr ecx, 1",
            "mov r9d, [rsi + rdx - 4]",
            "and ecx, 4",
            "mov r10, rdx",
            "sub r10, rcx",
            "mov r11d, [rsi + rcx]",
            "mov esi, [rsi + r10 - 4]",
            "mov [rdi], r8d",
            "mov [rdi + rcx], r11d",
            "mov [rdi + r10 - 4], esi",
            "mov [rdi + rdx - 4], r9d",
            "ret",
            ".p2align 6",
            "24:", // 0 to 3
            "test edx, edx",
            "jz 25f",
            "mov r9d, edx",
            "shr r9d, 1",
            "movzx ecx, byte ptr [rsi]",
            "movzx r8d, byte ptr [rsi + r9]",
            "movzx esi, byte ptr [rsi + rdx - 1]",
            "mov [rdi], cl",
            "mov [rdi + r9], r8b",
            "mov [rdi + rdx - 1], sil",
            "25:",
            "ret",

            ".p2align 6",
            "23:", // 65 and more
            "cmp rdx, [rip + {direct} + {row} * 8]",
            "ja 27f",
            "vmovdqu ymm0, [rsi]",
            "vmovdqu ymm1, [rsi + 32]",
            "vmovdqu ymm6, [rsi + rdx - 64]",
            "vmovdqu ymm7, [rsi + rdx - 32]",
            "cmp rdx, 128",
            "jbe 28f",
            "vmovdqu ymm2, [rsi + 64]",
            "vmovdqu ymm3, [rsi + 96]",
            "vmovdqu ymm4, [rsi + rdx - 128]",
            "vmovdqu ymm5, [rsi + rdx - 96]",
            "cmp rdx, 256",
            "ja 33f",
            "vmovdqu [rdi], ymm0",
            "vmovdqu [rdi + 32], ymm1",
            "vmovdqu [rdi + 64], ymm2",
            "vmovdqu [rdi + 96], ymm3",
            "vmovdqu [rdi + rdx - 128], ymm4",
            "vmovdqu [rdi + rdx - 96], ymm5",
            "vmovdqu [rdi + rdx - 64], ymm6",
            "vmovdqu [rdi + rdx - 32], ymm7",
            "vzeroupper",
            "ret",
            ".p2align 4",
            "28:", // 65 to 128
            "vmovdqu [rdi], ymm0",
            "vmovdqu [rdi + 32], ymm1",
            "vmovdqu [rdi + rdx - 64], ymm6",
            "vmovdqu [rdi + rdx - 32], ymm7",
            "vzeroupper",
            "ret",

            ".p2align 5",
            "33:", // 257 and more
            "cmp rdx, 384",
            "ja 35f",
            "vmovdqu ymm8, [rsi + 128]",
            "vmovdqu ymm9, [rsi + 160]",
            "vmovdqu ymm10, [rsi + rdx - 192]",
            "vmovdqu ymm11, [rsi + rdx - 160]",
            "vmovdqu [rdi], ymm0",
            "vmovdqu [rdi + 32], ymm1",
            "vmovdqu [rdi + 64], ymm2",
            "vmovdqu [rdi + 96], ymm3",
            "vmovdqu [rdi + 128], ymm8",
            "vmovdqu [rdi + 160], ymm9",
            "vmovdqu [rdi + rdx - 192], ymm10",
            "vmovdqu [rdi + rdx - 160], ymm11",
            "vmovdqu [rdi + rdx - 128], ymm4",
            "vmovdqu [rdi + rdx - 96], ymm5",
            "vmovdqu [rdi + rdx - 64], ymm6",
            "vmovdqu [rdi + rdx - 32], ymm7",
            "vzeroupper",
            "ret",

            // 385 and more, upwards. ymm0 holds the first 32 bytes, ymm4 to ymm7 the last 128. The
            // loop runs from the first aligned place behind dst to the last 128 bytes, rcx, and
            // may come up to 127 bytes into them.
            ".p2align 5",
            "35:",
            $long,
            "lea rcx, [rdi + rdx - 128]",
            "mov r10, rdi",
            "sub rsi, rdi",
            "or rdi, 31",
            "inc rdi",
            ".p2align 5",
            "36:",
            "vmovdqu ymm1, [rdi + rsi]",
            "vmovdqu ymm2, [rdi + rsi + 32]",
            "vmovdqu ymm3, [rdi + rsi + 64]",
            "vmovdqu ymm8, [rdi + rsi + 96]",
            "vmovdqa [rdi], ymm1",
            "vmovdqa [rdi + 32], ymm2",
            "vmovdqa [rdi + 64], ymm3",
            "vmovdqa [rdi + 96], ymm8",
            "sub rdi, -128",
            "cmp rdi, rcx",
            "jb 36b",
            "vmovdqu [rcx], ymm4",
            "vmovdqu [rcx + 32], ymm5",
            "vmovdqu [rcx + 64], ymm6",
            "vmovdqu [rcx + 96], ymm7",
            "vmovdqu [r10], ymm0",
            "vzeroupper",
            "ret",

            // The mirror image, for a destination that starts inside the source. ymm0 to ymm3 hold
            // the first 128 bytes, ymm7 the last 32.
            ".p2align 5",
            "37:",
            "lea rcx, [rdi + 128]",
            "lea r8, [rdi + rdx]",
            "sub rsi, rdi",
            "lea r9, [r8 - 32]",
            "and r8, -32",
            ".p2align 5",
            "38:",
            "vmovdqu ymm4, [r8 + rsi - 32]",
            "vmovdqu ymm5, [r8 + rsi - 64]",
            "vmovdqu ymm6, [r8 + rsi - 96]",
            "vmovdqu ymm8, [r8 + rsi - 128]",
            "vmovdqa [r8 - 32], ymm4",
            "vmovdqa [r8 - 64], ymm5",
            "vmovdqa [r8 - 96], ymm6",
            "vmovdqa [r8 - 128], ymm8",
            "add r8, -128",
            "cmp r8, rcx",
            "ja 38b",
            "vmovdqu [rdi], ymm0",
            "vmovdqu [rdi + 32], ymm1",
            "vmovdqu [rdi + 64], ymm2",
            "vmovdqu [rdi + 96], ymm3",
            "vmovdqu [r9], ymm7",
            "vzeroupper",
            "ret",

            // Not direct: without AVX2, before the table is filled, and beyond the limit.
            ".p2align 4",
            "27:", // 65 and more
            "cmp rdx, 128",
            "ja 39f",
            "movups xmm0, [rsi]",
            "movups xmm1, [rsi + 16]",
            "movups xmm2, [rsi + 32]",
            "movups xmm3, [rsi + 48]",
            "movups xmm4, [rsi + rdx - 64]",
            "movups xmm5, [rsi + rdx - 48]",
            "movups xmm6, [rsi + rdx - 32]",
            "movups xmm7, [rsi + rdx - 16]",
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm1",
            "movups [rdi + 32], xmm2",
            "movups [rdi + 48], xmm3",
            "movups [rdi + rdx - 64], xmm4",
            "movups [rdi + rdx - 48], xmm5",
            "movups [rdi + rdx - 32], xmm6",
            "movups [rdi + rdx - 16], xmm7",
            "ret",

            ".p2align 4",
            "39:",
            $table,
            $crate::entry_through_the_table!("rdx"),
            $last,
            direct = sym $crate::entry::DIRECT,
            rows = sym $crate::entry::ROWS,
            row = const $crate::entry::$row,
            row_bytes = const $crate::entry::ROW_BYTES,
            functions = sym $crate::entry::$functions,
            $($($operand)+)?
        )
    };
}

/// The body of a naked function with `memcpy`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_copy {
    () => {
        $crate::entry_copy_or_move!(COPY, COPY_ROW, "mov rax, rdi", "", "", "")
    };
}

/// The body of a naked function with `memmove`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_move {
    () => {
        $crate::entry_move!("mov rax, rdi", "", "")
    };
    ($first:expr, $($hook:tt)+) => {
        $crate::entry_copy_or_move!(
            MOVE,
            MOVE_ROW,
            $first,
            $crate::entry_backwards!(),
            $($hook)+
        )
    };
}

/// For the loop of a move: backwards if 0 <= dst - src < n.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_backwards {
    () => {
        "mov rcx, rdi\nsub rcx, rsi\ncmp rcx, rdx\njb 37f"
    };
}

/// A fill or a zero. rdi dst, `$n` the register of n, `$half` its lower half; `$word` leaves the byte
/// in each of ecx's four, `$vector` sixteen in xmm0, `$wide` thirty-two in ymm0. `$first`, `$table`
/// and `$last` as in a copy; `$long` stands before what more than 256 bytes take, where ymm0 is in use.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_or_zero {
    ($functions:ident, $row:ident, $n:literal, $half:literal, $word:literal, $vector:literal, $wide:literal,
        $first:expr, $long:expr, $table:expr, $last:expr $(, $($operand:tt)+)?) => {
        core::arch::naked_asm!(
            $first,
            concat!("cmp ", $n, ", 64"),
            "ja 23f",
            concat!("cmp ", $half, ", 16"),
            "jb 22f",
            concat!("cmp ", $half, ", 32"),
            "jb 29f",
            concat!("cmp ", $n, ", [rip + {direct} + {row} * 8]"), // 32 to 64
            "ja 30f",
            $wide,
            "vmovdqu [rdi], ymm0",
            concat!("vmovdqu [rdi + ", $n, " - 32], ymm0"),
            "vzeroupper",
            "ret",
            ".p2align 6",
            "29:", // 16 to 31
            $vector,
            "movups [rdi], xmm0",
            concat!("movups [rdi + ", $n, " - 16], xmm0"),
            "ret",
            ".p2align 4",
            "30:", // 32 to 64
            $vector,
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm0",
            concat!("movups [rdi + ", $n, " - 32], xmm0"),
            concat!("movups [rdi + ", $n, " - 16], xmm0"),
            "ret",

            ".p2align 4",
            "22:", // 0 to 15
            $word,
            concat!("cmp ", $half, ", 4"),
            "jb 24f",
            concat!("mov r8d, ", $half), // 4 to 15, as in a copy
            concat!("mov r10, ", $n),
            "shr r8d, 1",
            "and r8d, 4",
            "mov [rdi], ecx",
            "sub r10, r8",
            "mov [rdi + r8], ecx",
            concat!("mov [rdi + ", $n, " - 4], ecx"),
            "mov [rdi + r10 - 4], ecx",
            "ret",
            ".p2align 4",
            "24:", // 0 to 3
            concat!("test ", $half, ", ", $half),
            "jz 25f",
            concat!("mov r8d, ", $half),
            "shr r8d, 1",
            "mov [rdi], cl",
            "mov [rdi + r8], cl",
            concat!("mov [rdi + ", $n, " - 1], cl"),
            "25:",
            "ret",

            ".p2align 6",
            "23:", // 65 and more
            concat!("cmp ", $n, ", [rip + {direct} + {row} * 8]"),
            "ja 27f",
            $wide,
            // Upwards, so that stores to one line follow each other.
            "vmovdqu [rdi], ymm0",
            "vmovdqu [rdi + 32], ymm0",
            concat!("cmp ", $n, ", 128"),
            "jbe 28f",
            "vmovdqu [rdi + 64], ymm0",
            "vmovdqu [rdi + 96], ymm0",
            concat!("cmp ", $n, ", 256"),
            "ja 33f",
            concat!("vmovdqu [rdi + ", $n, " - 128], ymm0"),
            concat!("vmovdqu [rdi + ", $n, " - 96], ymm0"),
            "28:",
            concat!("vmovdqu [rdi + ", $n, " - 64], ymm0"),
            concat!("vmovdqu [rdi + ", $n, " - 32], ymm0"),
            "vzeroupper",
            "ret",

            // 257 and more: aligned steps from the last aligned place in the first 128 bytes up to the
            // last 128, those. A store that straddles lines costs two.
            ".p2align 5",
            "33:",
            $long,
            concat!("lea rcx, [rdi + ", $n, " - 128]"),
            "sub rdi, -128",
            "and rdi, -32",
            ".p2align 5",
            "36:",
            "vmovdqa [rdi], ymm0",
            "vmovdqa [rdi + 32], ymm0",
            "vmovdqa [rdi + 64], ymm0",
            "vmovdqa [rdi + 96], ymm0",
            "sub rdi, -128",
            "cmp rdi, rcx",
            "jb 36b",
            "vmovdqu [rcx], ymm0",
            "vmovdqu [rcx + 32], ymm0",
            "vmovdqu [rcx + 64], ymm0",
            "vmovdqu [rcx + 96], ymm0",
            "vzeroupper",
            "ret",

            // Not direct: without AVX2, before the table is filled, and beyond the limit.
            ".p2align 4",
            "27:", // 65 and more
            concat!("cmp ", $n, ", 128"),
            "ja 39f",
            $vector,
            "movups [rdi], xmm0",
            "movups [rdi + 16], xmm0",
            "movups [rdi + 32], xmm0",
            "movups [rdi + 48], xmm0",
            concat!("movups [rdi + ", $n, " - 64], xmm0"),
            concat!("movups [rdi + ", $n, " - 48], xmm0"),
            concat!("movups [rdi + ", $n, " - 32], xmm0"),
            concat!("movups [rdi + ", $n, " - 16], xmm0"),
            "ret",

            ".p2align 4",
            "39:",
            $table,
            // rdi is still dst, as the kernels expect it.
            $crate::entry_through_the_table!($n),
            $last,
            direct = sym $crate::entry::DIRECT,
            rows = sym $crate::entry::ROWS,
            row = const $crate::entry::$row,
            row_bytes = const $crate::entry::ROW_BYTES,
            functions = sym $crate::entry::$functions,
            $($($operand)+)?
        )
    };
}

/// The body of a naked function with `memset`'s contract.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill {
    () => {
        $crate::entry_fill!("mov rax, rdi", "", "", "")
    };
    ($($hook:tt)+) => {
        $crate::entry_fill_or_zero!(
            FILL,
            FILL_ROW,
            "rdx",
            "edx",
            "movzx ecx, sil\nimul ecx, ecx, 0x01010101",
            "movd xmm0, esi\npunpcklbw xmm0, xmm0\npshuflw xmm0, xmm0, 0\npunpcklqdq xmm0, xmm0",
            "vmovd xmm0, esi\nvpbroadcastb ymm0, xmm0",
            $($hook)+
        )
    };
}

/// The body of a naked function that zeroes: dst, n.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_zero {
    () => {
        $crate::entry_zero!("mov rax, rdi", "", "", "")
    };
    ($($hook:tt)+) => {
        $crate::entry_fill_or_zero!(
            ZERO,
            ZERO_ROW,
            "rsi",
            "esi",
            "xor ecx, ecx",
            "xorps xmm0, xmm0",
            "vpxor xmm0, xmm0, xmm0",
            $($hook)+
        )
    };
}
