//! `memcmp` and the test for equality; see [`entry`](super) for the rest.
//!
//! | bytes | `sse2` | `avx2` | `avx512vl` |
//! |---|---|---|---|
//! | 1 | 1 | the same | 32 under a mask |
//! | 2-32 | 16 + 16, of which the first n count | the same | 32 under a mask |
//! | classes: 2-3, 4-15, 16-32 | 2 + 1; 2 x 4 + 2 x 4; 16 + 16 | the same | |
//! | 33-64 | 2 x 16, then the last 2 x 16 | the same | 32, then the last 32 |
//! | 65-128 | 2 x 16, then three times 2 x 16 | 2 x 16, then 32 + 2 x 32 ([halved](crate::choice::Chosen::halves): as `sse2`) | 2 x 16, then 32 + 64 |
//! | 129-256 | the table's kernel | 2 x 16, then 3 x 32, then the last 4 x 32 | 2 x 16, then 32 + 64 + 2 x 64 |
//! | more | | 2 x 16, then 3 x 32, loop of 4 x 32 at places aligned in a, the last 1, 2 or 4 x 32 | the same with 64 |
//! | more than 512, [`NARROW`](super::NARROW) | | | 32 + 64, then as `avx2` |
//! | beyond the direct limit | | the table's kernel | the table's kernel |
//!
//! Up to 64 bytes `sse2` and `avx2` are the same. Up to 32 it is one class, because calls of mixed sizes have then nothing
//! to mispredict, which costs more than all the rest. The second 16 bytes are the last, or the first once more where there
//! are fewer than 16: so no line is waited for that the buffers do not reach, but the 16 that less is read as.
//! These may reach beyond the buffers,
//! never beyond the page that they begin in: that is asked first ([`PAGE`](super::PAGE)). Where
//! they would, before the table is filled, and under Valgrind, which knows about bytes rather than
//! pages, there are the classes.
//!
//! *Then* is a branch: what comes before it is found equal first, so that the first difference
//! found is the first there is, and buffers that differ early are not read to their end. Most that differ do so in
//! their first 32 bytes, where `sse2` and `avx2` use no vector of 32: nothing is left to be cleared. Where the
//! vectors of one test overlap, they are looked through in the order of their places.
//!
//! The difference is computed from the loaded registers. Bytes are never loaded again: another thread may have
//! changed them.

/// Comparisons of 2 to 32 bytes by classes that read nothing else, from label 20 on. `$same` is an instruction that
/// leaves in eax what stands for equal buffers, where
/// there is 0, or nothing; `$small` is what follows for 2 or 3 bytes. Labels 55 and 40 are where to go when bytes differ.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_classes {
    ($same:expr, $small:expr) => {
        concat!(
            "cmp edx, 16\n",
            "jae 21f\n",
            "cmp edx, 4\n",
            "jae 22f\n",
            $small,
            ".p2align 4\n",
            "22:\n", // 4 to 15: the inner blocks are 0 or 4 bytes from the ends
            "mov ecx, edx\n",
            "mov eax, [rdi]\n",
            "shr ecx\n",
            "mov r11d, [rdi + rdx - 4]\n",
            "and ecx, 4\n",
            "mov r8, rdx\n",
            "sub r8, rcx\n",
            "mov r9d, [rdi + rcx]\n",
            "mov r10d, [rdi + r8 - 4]\n",
            "xor eax, [rsi]\n",
            "xor r11d, [rsi + rdx - 4]\n",
            "xor r9d, [rsi + rcx]\n",
            "xor r10d, [rsi + r8 - 4]\n",
            "or r11d, r9d\n",
            "or r10d, eax\n",
            "or r11d, r10d\n",
            "jnz 55f\n",
            "xor eax, eax\n",
            $same,
            "ret\n",
            ".p2align 4\n",
            "21:\n", // 16 to 32
            $crate::entry_compare_xmm!("", " + rdx - 16"),
            $crate::entry_compare_xmm!(test),
            "jnz 40f\n",
            $same,
            "ret\n",
        )
    };
}

/// Two vectors of 16 bytes at these places of both buffers: in xmm0 and xmm1 a byte for each that is equal. Then in xmm1 those
/// that are equal in both, and in eax and the flags whether all are.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_xmm {
    (test) => {
        "pand xmm1, xmm0
        pmovmskb eax, xmm1
        sub eax, 0xFFFF
        "
    };
    // 65 to 128 bytes, of which the first 32 are equal: three times 32 at r8, by vectors of 16.
    (three $two:expr) => {
        concat!(
            concat!("mov r8d, 32\n", $two, "jnz 41b\n"),
            concat!("lea r8, [rdx - 64]\n", $two, "jnz 41b\n"),
            concat!("lea r8, [rdx - 32]\n", $two, "jnz 41b\n"),
        )
    };
    (vex) => {
        "vmovdqu xmm0, [rdi + r8]
        vpcmpeqb xmm0, xmm0, [rsi + r8]
        vmovdqu xmm1, [rdi + r8 + 16]
        vpcmpeqb xmm1, xmm1, [rsi + r8 + 16]
        vpand xmm1, xmm1, xmm0
        vpmovmskb eax, xmm1
        sub eax, 0xFFFF
        "
    };
    (sse) => {
        concat!(
            $crate::entry_compare_xmm!(" + r8", " + r8 + 16"),
            $crate::entry_compare_xmm!(test),
        )
    };
    ($first:literal, $second:literal) => {
        concat!(
            concat!("movdqu xmm0, [rdi", $first, "]\n"),
            concat!("movdqu xmm2, [rsi", $first, "]\n"),
            concat!("movdqu xmm1, [rdi", $second, "]\n"),
            concat!("movdqu xmm3, [rsi", $second, "]\n"),
            "pcmpeqb xmm0, xmm2\npcmpeqb xmm1, xmm3\n",
        )
    };
}

/// A comparison of up to 64 bytes, from the first instruction on; more go to label 28, their first 32 bytes equal. `$same` as in
/// [`entry_compare_classes`]; `$small`, `$near` and `$apart` are the macros of the operation's answers.
///
/// Nothing is read of no bytes: 7 of 100 tests for equality have none (Fleetbench).
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_head {
    // Up to 32 one class, also of no bytes, and nothing is read that is not compared: a load under a mask does not fault.
    (avx512vl, $same:expr, $small:ident, $near:ident, $apart:ident) => {
        concat!(
            "cmp rdx, 32\n",
            "{{disp32}} ja 23f\n",
            "or ecx, -1\n",
            "bzhi ecx, ecx, edx\n",
            "kmovd k1, ecx\n",
            "vmovdqu8 ymm20 {{k1}} {{z}}, ymmword ptr [rdi]\n",
            "vpcmpneqb k1 {{k1}}, ymm20, ymmword ptr [rsi]\n",
            $crate::$near!(masked),
            ".p2align 5\n",
            "23:\n",
            $crate::entry_compare_evex!(near "", "24f"),
            "cmp rdx, 64\n",
            "ja 28f\n",
            $crate::entry_compare_evex!(near " + rdx - 32", "42f"),
            $same,
            "ret\n",
            $crate::$apart!(last_of_two),
            ".p2align 6\n",
        )
    };
    ($way:ident, $same:expr, $small:ident, $near:ident, $apart:ident) => {
        concat!(
            "cmp rdx, 32\n",
            "{{disp32}} ja 23f\n", // long forms, so that no jump lies across 32 bytes, with a choice in front or without
            "cmp edx, 1\n",
            "jbe 25f\n",
            "{{rex}} mov eax, edi\n",
            "{{rex}} or eax, esi\n",
            "and eax, 4095\n",
            "cmp eax, dword ptr [rip + {page}]\n",
            "jg 20f\n",
            "mov ecx, edx\n",
            "mov r9, -1\n",
            "shl r9, cl\n", // set where there is no byte
            "xor eax, eax\n",
            "sub ecx, 16\n",
            "cmovb ecx, eax\n",
            $crate::entry_compare_xmm!("", " + rcx"),
            $crate::$near!(),
            ".p2align 5\n",
            "25:\n",
            $crate::$small!(one),
            ".p2align 4\n",
            $crate::$apart!(near),
            ".p2align 4\n",
            "20:\n", // 2 to 32, but not as above
            "cmp dword ptr [rip + {page}], -1\n",
            "je 39f\n",
            $crate::entry_compare_classes!($same, $crate::$small!(several)),
            $crate::$apart!(classes),
            ".p2align 6\n",
            "23:\n",
            $crate::entry_compare_xmm!("", " + 16"),
            $crate::$near!(two),
            "jnz 56f\n",
            "cmp rdx, 64\n",
            "ja 28f\n",
            $crate::entry_compare_xmm!(" + rdx - 32", " + rdx - 16"),
            $crate::entry_compare_xmm!(test),
            "jnz 42f\n",
            $same,
            "ret\n",
            $crate::$apart!(two),
            ".p2align 6\n",
        )
    };
}

/// Vectors of 32 bytes at a place of either buffer: which bytes are equal, in ymm registers, and whether all are: in the
/// flags, and in eax for the first that is not. `one` in that register, `three` in 1 to 3, `four` in 0 to 3.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_ymm {
    (one $r:literal $a:literal, $b:literal) => {
        concat!($crate::entry_compare_ymm!(load $r $a, $b, ""), $crate::entry_compare_ymm!(test $r))
    };
    // That at 32 first, and two.
    (three $a:literal, $b:literal) => {
        concat!(
            $crate::entry_compare_ymm!(load 1 "rdi", "rsi", " + 32"),
            $crate::entry_compare_ymm!(load 2 3 $a, $b),
            $crate::entry_compare_ymm!(test three)
        )
    };
    (four $a:literal, $b:literal) => {
        concat!(
            $crate::entry_compare_ymm!(load 0 1 $a, $b),
            $crate::entry_compare_ymm!(load 2 $a, $b, " + 64"),
            $crate::entry_compare_ymm!(load 3 $a, $b, " + 96"),
            $crate::entry_compare_ymm!(test four)
        )
    };
    (load $r:literal $next:literal $a:literal, $b:literal) => {
        concat!(
            $crate::entry_compare_ymm!(load $r $a, $b, ""),
            $crate::entry_compare_ymm!(load $next $a, $b, " + 32")
        )
    };
    (load $r:literal $a:literal, $b:literal, $at:literal) => {
        concat!(
            concat!("vmovdqu ymm", $r, ", [", $a, $at, "]\n"),
            concat!("vpcmpeqb ymm", $r, ", ymm", $r, ", [", $b, $at, "]\n")
        )
    };
    (test two) => {
        concat!("vpand ymm4, ymm2, ymm3\n", $crate::entry_compare_ymm!(test 4))
    };
    (test three) => {
        concat!("vpand ymm4, ymm2, ymm3\nvpand ymm4, ymm4, ymm1\n", $crate::entry_compare_ymm!(test 4))
    };
    (test four) => {
        concat!(
            "vpand ymm4, ymm0, ymm1\nvpand ymm5, ymm2, ymm3\nvpand ymm4, ymm4, ymm5\n",
            $crate::entry_compare_ymm!(test 4)
        )
    };
    (test $r:literal) => {
        concat!("vpmovmskb eax, ymm", $r, "\ninc eax\n")
    };
}

/// Two vectors of 64 or 32 bytes at places of both buffers: their differences in 20 and 21, or those and what
/// is there in 22 and 23, and in the flags whether there are any.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_differences {
    (32 $a:literal, $b:literal, $at:expr, $which:tt) => {
        $crate::entry_differences!(of "ymm", " + 32]", "d", $a, $b, $at, $which)
    };
    ($a:literal, $b:literal, $at:expr, $which:tt) => {
        $crate::entry_differences!(of "zmm", " + 64]", "q", $a, $b, $at, $which)
    };
    (of $v:literal, $next:literal, $mask:literal, $a:literal, $b:literal, $at:expr, 0) => {
        concat!(
            $crate::entry_differences!(load $v "20", $a, $at, "]"),
            concat!("vpxorq ", $v, "20, ", $v, "20, [", $b, $at, "]\n"),
            $crate::entry_differences!(load $v "21", $a, $at, $next),
            concat!("vpxorq ", $v, "21, ", $v, "21, [", $b, $at, $next, "\n"),
        )
    };
    // (a ^ b) | what is there: truth table 0xBE of the three, whose second is that.
    (of $v:literal, $next:literal, $mask:literal, $a:literal, $b:literal, $at:expr, 2) => {
        concat!(
            $crate::entry_differences!(load $v "22", $a, $at, "]"),
            concat!("vpternlogq ", $v, "22, ", $v, "20, [", $b, $at, "], 0xDE\n"),
            $crate::entry_differences!(load $v "23", $a, $at, $next),
            concat!("vpternlogq ", $v, "23, ", $v, "21, [", $b, $at, $next, ", 0xDE\n"),
            concat!("vporq ", $v, "24, ", $v, "22, ", $v, "23\n"),
            concat!("vptestmb k1, ", $v, "24, ", $v, "24\n"),
            concat!("kortest", $mask, " k1, k1\n"),
        )
    };
    (load $v:literal $number:literal, $a:literal, $at:expr, $end:literal) => {
        concat!("vmovdqu64 ", $v, $number, ", [", $a, $at, $end, "\n")
    };
}

/// Comparisons with EVEX registers.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_evex {
    (larger, $same:expr) => {
        concat!(
            "cmp rdx, 128\n",
            "ja 29f\n",
            $crate::entry_compare_evex!(second),
            "vmovdqu64 zmm21, [rdi + rdx - 64]\n",
            "vpxorq zmm21, zmm21, [rsi + rdx - 64]\n",
            "vporq zmm22, zmm20, zmm21\n",
            "vptestmb k1, zmm22, zmm22\n",
            "kortestq k1, k1\n",
            "jnz 44f\n",
            "xor eax, eax\n",
            $same,
            "ret\n",
            ".p2align 4\n",
            "29:\n", // 129 and more
            "cmp rdx, 256\n",
            "ja 33f\n",
            $crate::entry_compare_evex!(second),
            $crate::entry_compare_evex!(third),
            $crate::entry_differences!("rdi", "rsi", " + rdx - 128", 2),
            "lea r9, [rdx - 128]\n",
            "jnz 49f\n",
            "xor eax, eax\n",
            $same,
            "ret\n",
            ".p2align 5\n",
            "33:\n", // 257 and more
            "cmp rdx, [rip + {direct} + {row} * 8]\n",
            "ja 39f\n",
            "cmp rdx, 512\n",
            "jbe 32f\n",
            "cmp byte ptr [rip + {narrow}], 0\n",
            "je 32f\n",
            $crate::entry_compare_evex!(narrow, $same),
            ".p2align 5\n",
            "32:\n",
            $crate::entry_compare_evex!(second),
            $crate::entry_compare_evex!(third),
            $crate::entry_differences!("rdi", "rsi", " + 128", 2),
            "mov r9d, 128\n",
            "jnz 49f\n",
            // The last 256 bytes begin at rcx; rsi is b less a. What is known to be equal ends at
            // rdi, beyond 512 bytes at an aligned place.
            "lea rcx, [rdi + rdx - 256]\n",
            "sub rsi, rdi\n",
            "add rdi, 256\n",
            "cmp rdx, 512\n",
            "jbe 35f\n",
            "and rdi, -64\n",
            ".p2align 5\n",
            "34:\n",
            $crate::entry_differences!("rdi + rsi", "rdi", "", 0),
            $crate::entry_differences!("rdi + rsi", "rdi", " + 128", 2),
            "jnz 46f\n",
            "add rdi, 256\n",
            "cmp rdi, rcx\n",
            "jb 34b\n",
            // The rest is no more than 64 or 128 bytes, or two vectors from here on and the last two:
            // loads straddle lines where the buffers lie differently or the size is odd, so none is made
            // for nothing.
            "35:\n",
            "sub rdi, rcx\n",
            "cmp edi, 128\n",
            "jae 36f\n",
            "mov r9d, 128\n",
            "sub r9, rdi\n",
            "add rdi, rcx\n",
            $crate::entry_differences!("rdi + rsi", "rdi", "", 0),
            $crate::entry_differences!("rcx + rsi", "rcx", " + 128", 2),
            "jnz 47f\n",
            "xor eax, eax\n",
            $same,
            "ret\n",
            ".p2align 5\n",
            "36:\n",
            "cmp edi, 192\n",
            "jae 37f\n",
            $crate::entry_differences!("rcx + rsi", "rcx", " + 128", 0),
            "vporq zmm24, zmm20, zmm21\n",
            "vptestmb k1, zmm24, zmm24\n",
            "kortestq k1, k1\n",
            "jnz 45f\n",
            "xor eax, eax\n",
            $same,
            "ret\n",
            ".p2align 5\n",
            "37:\n",
            "vmovdqu64 zmm20, [rcx + 192]\n",
            "vpcmpneqb k1, zmm20, [rcx + rsi + 192]\n",
            "kmovq rax, k1\n",
            "test rax, rax\n",
            "jnz 53f\n",
            $same,
            "ret\n",
        )
    };
    // 32 bytes at a place: to that label if they differ; eax says where.
    (near $at:literal, $apart:literal) => {
        concat!(
            concat!("vmovdqu64 ymm20, ymmword ptr [rdi", $at, "]\n"),
            concat!("vpcmpneqb k1, ymm20, ymmword ptr [rsi", $at, "]\n"),
            "kmovd eax, k1\ntest eax, eax\n",
            concat!("jnz ", $apart, "\n"),
        )
    };
    // Difference of bytes 32 to 63, and 64 to 127.
    (second) => {
        "vmovdqu64 ymm20, [rdi + 32]
        vpxorq ymm20, ymm20, [rsi + 32]
        "
    };
    (third) => {
        "vmovdqu64 zmm21, [rdi + 64]
        vpxorq zmm21, zmm21, [rsi + 64]
        "
    };
    // The same by 32 behind the first 128 bytes.
    (narrow, $same:expr) => {
        concat!(
            $crate::entry_compare_evex!(second),
            $crate::entry_compare_evex!(third),
            "vporq zmm22, zmm20, zmm21\n",
            "vptestmb k1, zmm22, zmm22\n",
            "kortestq k1, k1\n",
            "jnz 49f\n",
            "lea rcx, [rdi + rdx - 128]\n",
            "sub rsi, rdi\n",
            "and rdi, -32\n",
            "sub rdi, -128\n",
            ".p2align 5\n",
            "61:\n",
            $crate::entry_differences!(32 "rdi + rsi", "rdi", "", 0),
            $crate::entry_differences!(32 "rdi + rsi", "rdi", " + 64", 2),
            "jnz 64f\n",
            "sub rdi, -128\n",
            "cmp rdi, rcx\n",
            "jb 61b\n",
            "sub rdi, rcx\n",
            "cmp edi, 96\n",
            "jae 63f\n",
            "cmp edi, 64\n",
            "mov rdi, rcx\n",
            "jae 62f\n",
            $crate::entry_differences!(32 "rdi + rsi", "rdi", "", 0),
            $crate::entry_differences!(32 "rdi + rsi", "rdi", " + 64", 2),
            "jnz 64f\n",
            "xor eax, eax\n",
            $same,
            "ret\n",
            ".p2align 5\n",
            "62:\n",
            "add rdi, 64\n",
            $crate::entry_differences!(32 "rdi + rsi", "rdi", "", 0),
            "vporq ymm24, ymm20, ymm21\n",
            "vptestmb k1, ymm24, ymm24\n",
            "kortestd k1, k1\n",
            "jnz 64f\n",
            "xor eax, eax\n",
            $same,
            "ret\n",
            ".p2align 5\n",
            "63:\n",
            "lea rdi, [rcx + 96]\n",
            "vmovdqu64 ymm20, [rdi + rsi]\n",
            "vpcmpneqb k1, ymm20, [rdi]\n",
            "kmovd eax, k1\n",
            "test eax, eax\n",
            "jnz 66f\n",
            $same,
            "ret\n",
        )
    };
}

/// A comparison of more than 64 bytes in one entry, the first 32 of them equal; `$same` as in `entry_compare_classes`. `$apart` is what follows
/// for buffers that differ.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_way {
    (sse2, $same:expr, $apart:expr) => {
        concat!(
            $crate::entry_decided!(),
            "cmp rdx, 128\n",
            "ja 39f\n",
            $crate::entry_compare_xmm!(three $crate::entry_compare_xmm!(sse)),
            $same,
            "ret\n",
            $apart,
            ".p2align 4\n",
        )
    };
    (avx2, $same:expr, $apart:expr) => {
        concat!(
            "cmp rdx, 128\n",
            "{{disp32}} ja 29f\n",
            "{{rex}} cmp dl, byte ptr [rip + {chosen} + {halves}]\n", // long, too
            "jbe 30f\n",
            $crate::entry_compare_ymm!(three "rdi + rdx - 64", "rsi + rdx - 64"),
            "jnz 43f\n",
            $same,
            "vzeroupper\n",
            "ret\n",
            ".p2align 5\n",
            "29:\n", // 129 and more
            "cmp rdx, 256\n",
            "ja 33f\n",
            $crate::entry_compare_ymm!(three "rdi + 64", "rsi + 64"),
            "jnz 44f\n",
            $crate::entry_compare_ymm!(four "rdi + rdx - 128", "rsi + rdx - 128"),
            "jnz 45f\n",
            $same,
            "vzeroupper\n",
            "ret\n",
            // 257 and more: from the last aligned place of what is known to be equal to the last
            // 128 bytes, r9, and at most 127 bytes into them. rsi is b less a.
            // So that the loop is aligned and nothing to align it lies on the way.
            ".p2align 6\n",
            ".nops 31\n",
            "33:\n",
            "cmp rdx, [rip + {direct} + {row} * 8]\n",
            "ja 39f\n",
            $crate::entry_compare_ymm!(three "rdi + 64", "rsi + 64"),
            "jnz 44f\n",
            "lea r9, [rdi + rdx - 128]\n",
            "sub rsi, rdi\n",
            "and rdi, -32\n",
            "sub rdi, -128\n",
            ".p2align 5\n",
            "34:\n",
            $crate::entry_compare_ymm!(four "rdi + rsi", "rdi"),
            "jnz 46f\n",
            "sub rdi, -128\n",
            "cmp rdi, r9\n",
            "jb 34b\n",
            // The rest is all of the last 128 bytes or no more than 64 or 32 of them: half of
            // all loads straddle lines where the buffers lie differently, so none is made for
            // nothing.
            "sub rdi, r9\n",
            "cmp edi, 96\n",
            "jae 36f\n",
            $crate::entry_compare_ymm!(load 2 3 "r9 + rsi + 64", "r9 + 64"),
            "cmp edi, 64\n",
            "jae 35f\n",
            $crate::entry_compare_ymm!(load 0 1 "r9 + rsi", "r9"),
            $crate::entry_compare_ymm!(test four),
            "jnz 54f\n",
            $same,
            "vzeroupper\n",
            "ret\n",
            ".p2align 5\n",
            "35:\n",
            $crate::entry_compare_ymm!(test two),
            "jnz 37f\n",
            $same,
            "vzeroupper\n",
            "ret\n",
            ".p2align 5\n",
            "36:\n",
            $crate::entry_compare_ymm!(one 3 "r9 + rsi + 96", "r9 + 96"),
            "jnz 38f\n",
            $same,
            "vzeroupper\n",
            "ret\n",
            ".p2align 6\n",
            "30:\n", // 65 to 128 where vectors of 32 are two halves: nothing is to be cleared
            $crate::entry_compare_xmm!(three $crate::entry_compare_xmm!(vex)),
            $same,
            "ret\n",
            $apart,
            ".p2align 4\n",
        )
    };
    (avx512vl, $same:expr, $apart:expr) => {
        concat!(
            $crate::entry_compare_evex!(larger, $same),
            $apart,
            ".p2align 4\n",
        )
    };
}

/// `memcmp` in one entry.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_in {
    ($part:ident $way:ident, $($operand:tt)*) => {
        $crate::entry_comparison!(
            (COMPARE, COMPARE_ROW, Compare), $part $way, "",
            (entry_compare_small, entry_compare_near, entry_compare_apart), $($operand)*
        )
    };
}

/// The test for equality in one entry: 1 or 0.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_equal_in {
    ($part:ident $way:ident, $($operand:tt)*) => {
        $crate::entry_comparison!(
            (EQUAL, EQUAL_ROW, Equal), $part $way, "inc eax\n",
            (entry_equal_small, entry_equal_near, entry_equal_apart), $($operand)*
        )
    };
}

/// A comparison with its own answers (`differing.rs`); behind it is the table.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_comparison {
    (($functions:ident, $row:ident, $operation:ident), $part:ident $way:ident, $same:expr,
        ($small:ident, $near:ident, $apart:ident) $(, $($operand:tt)*)?) => {
        $crate::entry_text!($functions, $row, $crate::entry::Operation::$operation, (
            ".hidden {page}\n.hidden {narrow}",
            $crate::entry_choice!($part first),
            $crate::entry_compare_head!($way, $same, $small, $near, $apart),
            "28:",
            $crate::entry_choice!($part then),
            $crate::entry_compare_way!($way, $same, $crate::$apart!($way)),
            "39:",
            $crate::entry_next!("rdx", "row", ""),
            $crate::entry_through_the_table!("rdx"),
            "/* {page} {narrow} {halves} */",
        ),
            page = sym $crate::entry::PAGE,
            narrow = sym $crate::entry::NARROW,
            halves = const $crate::entry::HALVES
            $(, $($operand)*)?
        )
    };
}
