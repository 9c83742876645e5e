//! Fills and zeros, by the size classes at the head of `storing.rs`.

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
            concat!("cmp ", $n, ", 8 * ", $crate::entry_width!($kind), "\n"),
            "ja 33f\n",
            $splat,
            $crate::entry_put!($kind: "+ 0", "+ 1"),
            concat!("cmp ", $n, ", 4 * ", $crate::entry_width!($kind), "\n"),
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
            concat!("cmp ", $n, ", 4 * ", $crate::entry_width!($kind), "\n"),
            "jbe 28f\n",
            $limit,
            concat!("cmp ", $n, ", 8 * ", $crate::entry_width!($kind), "\n"),
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
            concat!("lea rcx, [rdi + ", $n, " - 1]\n"),
            $crate::entry_put!(avx: "+ 0"),
            "or rdi, 31\n",
            "inc rdi\n",
            "and rcx, -32\n",
            $crate::entry_group!(put avx "rdi": 0 "+ 0", 0 "+ 1", 0 "+ 2"),
            "add rdi, 3 * 32\n",
            "sub rcx, 3 * 32\n",
            $crate::entry_fill_loop!(steps avx),
            $crate::entry_group!(store avx "rax": 0 concat!("+ ", $n, " - 1")),
            "vzeroupper\n",
            "ret\n",
        )
    };
    (evex64, $n:literal) => {
        concat!(
            concat!("lea rcx, [rdi + ", $n, " - 1]\n"),
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
            concat!("sub rdi, -4 * ", $crate::entry_width!($kind), "\n"),
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
            concat!("cmp ", $half, ", 4\n"),
            "jb 24f\n",
            "mov r8d, ", // 4 to 15, as in a copy
            $half,
            "\n",
            concat!("mov r10, ", $n, "\n"),
            "shr r8d, 1\n",
            "and r8d, 4\n",
            "mov [rdi], ecx\n",
            "sub r10, r8\n",
            "mov [rdi + r8], ecx\n",
            concat!("mov [rdi + ", $n, " - 4], ecx\n"),
            "mov [rdi + r10 - 4], ecx\n",
            "ret\n",
            ".p2align 4\n",
            "24:\n", // 0 to 3
            concat!("test ", $half, ", ", $half, "\n"),
            "jz 25f\n",
            concat!("mov r8d, ", $half, "\n"),
            "shr r8d, 1\n",
            "mov [rdi], cl\n",
            "mov [rdi + r8], cl\n",
            concat!("mov [rdi + ", $n, " - 1], cl\n"),
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
            concat!("cmp ", $n, ", 32\n"),
            "ja 23f\n",
            concat!("cmp ", $half, ", 16\n"),
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
            concat!("cmp ", $n, ", 64\n"),
            "ja 23f\n",
            concat!("cmp ", $half, ", 16\n"),
            "jb 22f\n",
            concat!("cmp ", $half, ", 32\n"),
            "jb 29f\n",
            $crate::entry_fill_two!(avx, $n, $crate::$byte!(avx)),
            ".p2align 6\n",
            "29:\n", // 16 to 31
            $crate::entry_fill_two!(sse, $n, $crate::$byte!(sse)),
            $crate::entry_fill_bytes!($n, $half, $crate::$byte!(word)),
            ".p2align 6\n",
            "23:\n",
            $crate::entry_fill_many!(eight_here avx, $n, $crate::$byte!(avx)),
            $limit,
            $crate::$byte!(avx),
            $crate::entry_fill_loop!(avx, $n),
            ".p2align 4\n",
        )
    };
    // One mask of 64 bytes, and no branch for no bytes, as in glibc; in the exported function one line of code up
    // to the first return.
    (avx512vl, $n:literal, $half:literal, $byte:ident, $limit:expr) => {
        concat!(
            "mov rax, rdi\n",
            concat!("cmp ", $n, ", 65\n"),
            "jae 26f\n",
            $crate::$byte!(evex64),
            $crate::entry_in_page!(64),
            "or rcx, -1\n",
            concat!("bzhi rcx, rcx, ", $n, "\n"),
            "kmovq k1, rcx\n",
            "vmovdqu8 [rdi]{{k1}}, zmm20\n",
            "ret\n",
            ".p2align 5\n",
            "26:\n",
            $crate::$byte!(evex64),
            concat!("cmp ", $n, ", 128\n"),
            "ja 23f\n",
            $crate::entry_fill_two!(evex64, $n, ""),
            ".p2align 4\n",
            "21:\n",
            concat!("cmp ", $half, ", 16\n"),
            "jb 22f\n",
            concat!("cmp ", $half, ", 32\n"),
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
    ($choice:expr, $way:ident, $($operand:tt)*) => {
        $crate::entry_text!(FILL, FILL_ROW, $crate::entry::Operation::Fill, (
            $choice,
            $crate::entry_fill_way!(
                $way, "rdx", "edx", entry_splat_byte, $crate::entry_fill_limit!()
            ),
            $crate::entry_fill_beyond_zeros!($way),
            "43:",
            $crate::entry_next!("rdx", "zero_row", ""),
            "mov rsi, rdx",
            ".hidden {zero}",
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
            zero_row = const $crate::entry::ZERO_ROW,
            $($operand)*
        )
    };
}

/// A zero: dst, n.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_zero_in {
    ($choice:expr, $way:ident, $($operand:tt)*) => {
        $crate::entry_text!(ZERO, ZERO_ROW, $crate::entry::Operation::Zero, (
            $choice,
            $crate::entry_fill_way!(
                $way, "rsi", "esi", entry_splat_zero,
                "cmp rsi, [rip + {direct} + {row} * 8]\nja 39f\n"
            ),
            "39:",
            $crate::entry_next!("rsi", "row", "mov rdx, rsi\nxor esi, esi\n"),
            $crate::entry_through_the_table!("rsi"),
        ), $($operand)*)
    };
}
