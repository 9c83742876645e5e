//! Fills and zeros, by the size classes at the head of `storing.rs`; `avx512vl` has one class up to 63 bytes, as glibc has:
//! a store under a mask is forwarded to no load, but programs' fills of mixed sizes lose more by mispredicted classes than by
//! that (0.87 of glibc's speed and 1.03, Zen 4; the table is in `docs/decisions/entry-stubs.md`).

/// Stores of one register, the first, at places from dst on.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_put {
    ($kind:ident: $($at:expr),+) => {
        concat!($($crate::entry_group!(store $kind "rdi": 0 $at)),+)
    };
}

/// A fill of up to 64 bytes (`avx512vl`: 63), from the first instruction on; more go to label 23. `$n` is the register of the size,
/// `$half` its lower half, `$byte` says how the byte comes into registers: `entry_splat_byte` or `entry_splat_zero`.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_small {
    // One class, unless the vector would reach into the next page: a fault under a mask is none, but costs as much.
    (avx512vl, $n:literal, $half:literal, $byte:ident) => {
        concat!(
            "mov rax, rdi\n",
            concat!("cmp ", $n, ", 63\n"),
            "ja 23f\n",
            "and edi, 4095\n",
            "cmp edi, 4096 - 64\n",
            "ja 21f\n",
            $crate::$byte!(evex64),
            "mov rcx, -1\n",
            concat!("bzhi rcx, rcx, ", $n, "\n"),
            "kmovq k1, rcx\n",
            "vmovdqu8 zmmword ptr [rax] {{k1}}, zmm20\n",
            "ret\n",
            ".p2align 5\n",
            "21:\n",
            "mov rdi, rax\n",
            $crate::entry_fill_small!(classes $n, $half, $byte),
        )
    };
    ($way:ident, $n:literal, $half:literal, $byte:ident) => {
        concat!(
            "mov rax, rdi\n",
            concat!("cmp ", $n, ", 64\n"),
            "ja 23f\n",
            $crate::entry_fill_small!(classes $n, $half, $byte),
        )
    };
    (classes $n:literal, $half:literal, $byte:ident) => {
        concat!(
            concat!("cmp ", $half, ", 16\n"),
            "jb 22f\n",
            $crate::$byte!(sse),
            concat!("cmp ", $half, ", 32\n"),
            "ja 28f\n",
            $crate::entry_put!(sse: "+ 0", concat!("+ ", $n, " - 1")),
            "ret\n",
            ".p2align 5\n",
            "28:\n",
            $crate::entry_put!(sse: "+ 0", "+ 1"),
            $crate::entry_put!(sse: concat!("+ ", $n, " - 2"), concat!("+ ", $n, " - 1")),
            "ret\n",
            ".p2align 6\n",
            $crate::$byte!(apart),
            "22:\n",
            $crate::$byte!(word),
            concat!("cmp ", $half, ", 8\n"),
            "jae 24f\n",
            concat!("cmp ", $half, ", 4\n"),
            "jae 26f\n",
            concat!("cmp ", $half, ", 1\n"),
            "ja 27f\n",
            "jb 25f\n",
            "mov [rdi], cl\n",
            "25:\n",
            "ret\n",
            ".p2align 4\n",
            "24:\n",
            "mov [rdi], rcx\n",
            concat!("mov [rdi + ", $n, " - 8], rcx\n"),
            "ret\n",
            ".p2align 4\n",
            "26:\n",
            "mov [rdi], ecx\n",
            concat!("mov [rdi + ", $n, " - 4], ecx\n"),
            "ret\n",
            ".p2align 4\n",
            "27:\n",
            "mov [rdi], cx\n",
            concat!("mov [rdi + ", $n, " - 1], cl\n"),
            "ret\n",
            ".p2align 6\n",
        )
    };
}

/// A fill of more than 64 bytes, with the byte in register 0. Upwards, so that stores to one line follow each other.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_many {
    // To four vectors; more go to label 29.
    (four $kind:ident, $n:literal) => {
        concat!(
            concat!("cmp ", $n, ", 4 * ", $crate::entry_width!($kind), "\n"),
            "ja 29f\n",
            $crate::entry_put!($kind: "+ 0", "+ 1"),
            $crate::entry_put!($kind: concat!("+ ", $n, " - 2"), concat!("+ ", $n, " - 1")),
            $crate::entry_vector!(done $kind),
            "ret\n",
            ".p2align 5\n",
            "29:\n",
        )
    };
    // To eight; more go to label 33.
    (eight $kind:ident, $n:literal) => {
        concat!(
            concat!("cmp ", $n, ", 8 * ", $crate::entry_width!($kind), "\n"),
            "ja 33f\n",
            $crate::entry_fill_many!(eight_of $kind, $n),
        )
    };
    (eight_of $kind:ident, $n:literal) => {
        concat!(
            $crate::entry_put!($kind: "+ 0", "+ 1", "+ 2", "+ 3"),
            $crate::entry_put!($kind: concat!("+ ", $n, " - 4"), concat!("+ ", $n, " - 3")),
            $crate::entry_put!($kind: concat!("+ ", $n, " - 2"), concat!("+ ", $n, " - 1")),
            $crate::entry_vector!(done $kind),
            "ret\n",
            ".p2align 5\n",
            "33:\n",
        )
    };
    // To two vectors first.
    (two $kind:ident, $n:literal) => {
        concat!(
            concat!("cmp ", $n, ", 2 * ", $crate::entry_width!($kind), "\n"),
            "ja 30f\n",
            $crate::entry_put!($kind: "+ 0", concat!("+ ", $n, " - 1")),
            "ret\n",
            ".p2align 6\n",
            "30:\n",
        )
    };
}

/// The loop of a fill of more than eight vectors: four at the start, four at a time, four at the end. All are
/// aligned but the first and the last: a store that straddles lines costs two.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_loop {
    ($kind:ident, $n:literal) => {
        concat!(
            concat!("lea rcx, [rdi + ", $n, " - 1]\n"),
            $crate::entry_put!($kind: "+ 0"),
            concat!("or rdi, ", $crate::entry_width!($kind), " - 1\n"),
            "inc rdi\n",
            concat!("and rcx, -", $crate::entry_width!($kind), "\n"),
            $crate::entry_group!(put $kind "rdi": 0 "+ 0", 0 "+ 1", 0 "+ 2"),
            concat!("add rdi, 3 * ", $crate::entry_width!($kind), "\n"),
            concat!("sub rcx, 3 * ", $crate::entry_width!($kind), "\n"),
            // From rdi, which is aligned, up to the last four, which begin at rcx, and three of them.
            ".p2align 6\n",
            "36:\n",
            $crate::entry_group!(put $kind "rdi": 0 "+ 0", 0 "+ 1", 0 "+ 2", 0 "+ 3"),
            concat!("sub rdi, -4 * ", $crate::entry_width!($kind), "\n"),
            "cmp rdi, rcx\n",
            "jb 36b\n",
            $crate::entry_group!(put $kind "rcx": 0 "+ 0", 0 "+ 1", 0 "+ 2"),
            $crate::entry_group!(store $kind "rax": 0 concat!("+ ", $n, " - 1")),
            $crate::entry_vector!(done $kind),
            "ret\n",
        )
    };
}

/// A fill of more than 64 bytes in one entry. `$limit` is what asks before more than the entry does
/// whatever the table says, and goes to label 39 for the table.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_way {
    (sse2, $n:literal, $byte:ident, $limit:expr) => {
        concat!(
            $crate::entry_decided!(),
            concat!("cmp ", $n, ", 128\n"),
            "ja 39f\n",
            $crate::$byte!(sse),
            $crate::entry_fill_many!(eight_of sse, $n),
        )
    };
    (avx2, $n:literal, $byte:ident, $limit:expr) => {
        concat!(
            // In front of the next branch: behind it a call of 65 to 128 bytes takes a cycle more (Zen 1).
            $crate::$byte!(avx),
            $crate::entry_fill_many!(four avx, $n),
            $crate::entry_fill_many!(eight avx, $n),
            $limit,
            $crate::entry_fill_loop!(avx, $n),
            ".p2align 4\n",
        )
    };
    (avx512vl, $n:literal, $byte:ident, $limit:expr) => {
        concat!(
            $crate::$byte!(evex64),
            $crate::entry_fill_many!(two evex64, $n),
            $crate::entry_fill_many!(four evex64, $n),
            $limit,
            $crate::entry_fill_many!(eight evex64, $n),
            $crate::entry_fill_loop!(evex64, $n),
            ".p2align 4\n",
        )
    };
}

/// The byte in esi: in each of a word's eight (rcx), or of a vector's.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_splat_byte {
    // So that no jump lies across 32 bytes.
    (apart) => {
        ".nops 14\n"
    };
    (word) => {
        "movzx ecx, sil\nmov r8, 0x0101010101010101\nimul rcx, r8\n"
    };
    (sse) => {
        "movd xmm0, esi\npunpcklbw xmm0, xmm0\npshuflw xmm0, xmm0, 0\npunpcklqdq xmm0, xmm0\n"
    };
    (avx) => {
        "vmovd xmm0, esi\nvpbroadcastb ymm0, xmm0\n"
    };
    (evex64) => {
        "vpbroadcastb zmm20, esi\n"
    };
}

/// Zeros in a register.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_splat_zero {
    (apart) => {
        ""
    };
    (word) => {
        "xor ecx, ecx\n"
    };
    (sse) => {
        "xorps xmm0, xmm0\n"
    };
    (avx) => {
        "vpxor xmm0, xmm0, xmm0\n"
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
        ""
    };
    ($other:ident) => {
        concat!("44:\ntest sil, sil\njnz 41b\n", $crate::entry_vector!(done $other))
    };
}

/// A fill: zeros of more than 256 bytes are their own operation's, by `{zero}`.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_fill_in {
    ($part:ident $way:ident, $($operand:tt)*) => {
        $crate::entry_text!(FILL, FILL_ROW, $crate::entry::Operation::Fill, (
            $crate::entry_choice!($part first),
            $crate::entry_fill_small!($way, "rdx", "edx", entry_splat_byte),
            "23:",
            $crate::entry_choice!($part then),
            $crate::entry_fill_way!($way, "rdx", entry_splat_byte, $crate::entry_fill_limit!()),
            $crate::entry_fill_beyond_zeros!($way),
            "43:",
            $crate::entry_next!("rdx", "zero_row", ""),
            "mov rsi, rdx",
            ".hidden {zero}",
            "jmp {zero}",
            ".p2align 4",
            "39:",
            $crate::entry_vector!(done $way),
            "test sil, sil",
            "jz 43b",
            // rdi is still dst, as the kernels expect it.
            $crate::entry_next!("rdx", "row", ""),
            $crate::entry_through_the_table!("rdx"),
            "/* {zero_row} */",
        ),
            zero_row = const $crate::entry::ZERO_ROW,
            $($operand)*
        )
    };
}

/// A zero: dst, n.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_zero_in {
    ($part:ident $way:ident, $($operand:tt)*) => {
        $crate::entry_text!(ZERO, ZERO_ROW, $crate::entry::Operation::Zero, (
            $crate::entry_choice!($part first),
            $crate::entry_fill_small!($way, "rsi", "esi", entry_splat_zero),
            "23:",
            $crate::entry_choice!($part then),
            $crate::entry_fill_way!(
                $way, "rsi", entry_splat_zero,
                "cmp rsi, [rip + {direct} + {row} * 8]\nja 39f\n"
            ),
            "39:",
            $crate::entry_next!("rsi", "row", "mov rdx, rsi\nxor esi, esi\n"),
            $crate::entry_through_the_table!("rsi"),
        ), $($operand)*)
    };
}
