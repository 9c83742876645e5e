//! The way in of `memcmp` and of the test for equality, as machine code; see [`entry`](super) for why.
//!
//! | bytes | compare, equal | takes |
//! |---|---|---|
//! | 0 | equal | |
//! | 1-32 | 32, or 2 x 16, of which the first n bytes count | see below |
//! | 1, 2-3, 4-15, 16-32 | 1; 2 + 1; 2 x 4 + 2 x 4; 16 + 16 | SSE2 |
//! | 33-64 | 32 + 32, or 2 x 16, then the last 2 x 16 | direct, or SSE2 |
//! | 65-128 | 2 x 32 + 2 x 32, or steps of 2 x 16 | direct, or SSE2 |
//! | 129-256 | 4 x 32, then the last 4 x 32 | direct |
//! | more | 4 x 32, loop of 4 x 32 at places aligned in a, the last 4 x 32 | direct |
//! | beyond the direct limit | the table's kernel | the table's kernel |
//!
//! Up to 32 bytes are one class because calls of mixed sizes have then nothing to mispredict, which
//! costs more than all the rest. Its 32 bytes may reach beyond the buffers, never beyond the page
//! that they begin in: that is asked first ([`PAGE`](super::PAGE)). Where they would, before the table
//! is filled, and under Valgrind, which knows about bytes rather than pages, there are four classes.
//! The same question tells whether the CPU has AVX2 and BMI2: without them, the 32 bytes are 2 x 16.
//! All of the class is in one line and no more than sixteen instructions, fused ones counted once:
//! Zen takes eight of a line at a time.
//!
//! *Then* is a branch: what comes before it is found equal first, so that the first difference found
//! is the first there is, and buffers that differ early are not read to their end. Where the vectors
//! of one test overlap, they are looked through in the order of their places.
//!
//! The vectors of a test are combined to one mask of which every bit is set where all bytes are equal;
//! one more makes it 0, and the lowest bit set of anything else is the place of the first difference.
//! A loop step of 2 x 128 bytes takes four cycles with two 32-byte loads a cycle, which is what the
//! loads alone take on every AVX2 CPU up to now.

/// A comparison. rdi a, rsi b, rdx n.
///
/// `$first` compares n with 32, and may be longer than it need be; `$same` leaves in eax what stands
/// for equal buffers, where there is 0. `$near` has 25, for no bytes at all, and 57, where the lowest
/// bit set in eax is the place of the first difference. `$small` is what follows for at most 3 bytes:
/// 2 or 3 fall in, 1 comes to label 26, and 24 is where to go when the bytes at rcx differ.
/// `$apart` is what follows for buffers that differ, at labels 37, 38, 40 to 46, 54 and 55 (see the jumps there).
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_or_equal {
    ($functions:ident, $row:ident, $first:expr, $same:literal, $near:expr, $small:expr, $apart:expr) => {
        core::arch::naked_asm!(
            ".hidden {page}",
            $first,
            "ja 23f",
            "lea eax, [rdi + 31]", // 0 to 32: do 32 bytes from a or b on leave a page?
            "lea ecx, [rsi + 31]",
            "xor eax, edi",
            "xor ecx, esi",
            "or eax, ecx",
            "test edx, edx",
            "jz 25f",
            "test dword ptr [rip + {page}], eax",
            "jnz 20f",
            "vmovdqu ymm0, [rdi]",
            "vpcmpeqb ymm0, ymm0, [rsi]",
            "vpmovmskb eax, ymm0",
            "inc eax",
            "bzhi eax, eax, edx", // what lies behind the buffers does not count
            "jnz 57f",
            $same,
            "vzeroupper",
            "ret",
            $near,

            ".p2align 6",
            "23:", // 33 and more
            "cmp rdx, [rip + {direct} + {row} * 8]",
            "ja 27f",
            "vmovdqu ymm0, [rdi]",
            "vpcmpeqb ymm0, ymm0, [rsi]",
            "cmp rdx, 64",
            "jbe 28f",
            "vmovdqu ymm1, [rdi + 32]",
            "vpcmpeqb ymm1, ymm1, [rsi + 32]",
            "cmp rdx, 128",
            "jbe 29f",
            "vmovdqu ymm2, [rdi + 64]",
            "vpcmpeqb ymm2, ymm2, [rsi + 64]",
            "vmovdqu ymm3, [rdi + 96]",
            "vpcmpeqb ymm3, ymm3, [rsi + 96]",
            "vpand ymm4, ymm0, ymm1",
            "vpand ymm5, ymm2, ymm3",
            "vpand ymm4, ymm4, ymm5",
            "vpmovmskb eax, ymm4",
            "inc eax",
            "jnz 44f",
            "cmp rdx, 256",
            "ja 33f",
            "vmovdqu ymm0, [rdi + rdx - 128]",
            "vpcmpeqb ymm0, ymm0, [rsi + rdx - 128]",
            "vmovdqu ymm1, [rdi + rdx - 96]",
            "vpcmpeqb ymm1, ymm1, [rsi + rdx - 96]",
            "vmovdqu ymm2, [rdi + rdx - 64]",
            "vpcmpeqb ymm2, ymm2, [rsi + rdx - 64]",
            "vmovdqu ymm3, [rdi + rdx - 32]",
            "vpcmpeqb ymm3, ymm3, [rsi + rdx - 32]",
            "vpand ymm4, ymm0, ymm1",
            "vpand ymm5, ymm2, ymm3",
            "vpand ymm4, ymm4, ymm5",
            "vpmovmskb eax, ymm4",
            "inc eax",
            "jnz 45f",
            $same,
            "vzeroupper",
            "ret",

            // 257 and more: from the last aligned place of what is known to be equal to the last 128
            // bytes, r9, and at most 127 bytes into them. rsi is b less a.
            ".p2align 6",
            "33:",
            "lea r9, [rdi + rdx - 128]",
            "sub rsi, rdi",
            "and rdi, -32",
            "sub rdi, -128",
            ".p2align 5",
            "34:",
            "vmovdqu ymm0, [rdi + rsi]",
            "vpcmpeqb ymm0, ymm0, [rdi]",
            "vmovdqu ymm1, [rdi + rsi + 32]",
            "vpcmpeqb ymm1, ymm1, [rdi + 32]",
            "vmovdqu ymm2, [rdi + rsi + 64]",
            "vpcmpeqb ymm2, ymm2, [rdi + 64]",
            "vmovdqu ymm3, [rdi + rsi + 96]",
            "vpcmpeqb ymm3, ymm3, [rdi + 96]",
            "vpand ymm4, ymm0, ymm1",
            "vpand ymm5, ymm2, ymm3",
            "vpand ymm4, ymm4, ymm5",
            "vpmovmskb eax, ymm4",
            "inc eax",
            "jnz 46f",
            "sub rdi, -128",
            "cmp rdi, r9",
            "jb 34b",
            // What is left is all of the last 128 bytes or no more than 64 or 32 of them: half of all
            // loads straddle lines where the buffers lie differently, so none is made for nothing.
            "sub rdi, r9",
            "cmp edi, 96",
            "jae 36f",
            "vmovdqu ymm2, [r9 + rsi + 64]",
            "vpcmpeqb ymm2, ymm2, [r9 + 64]",
            "vmovdqu ymm3, [r9 + rsi + 96]",
            "vpcmpeqb ymm3, ymm3, [r9 + 96]",
            "cmp edi, 64",
            "jae 35f",
            "vmovdqu ymm0, [r9 + rsi]",
            "vpcmpeqb ymm0, ymm0, [r9]",
            "vmovdqu ymm1, [r9 + rsi + 32]",
            "vpcmpeqb ymm1, ymm1, [r9 + 32]",
            "vpand ymm4, ymm0, ymm1",
            "vpand ymm5, ymm2, ymm3",
            "vpand ymm4, ymm4, ymm5",
            "vpmovmskb eax, ymm4",
            "inc eax",
            "jnz 54f",
            $same,
            "vzeroupper",
            "ret",
            ".p2align 5",
            "35:",
            "vpand ymm4, ymm2, ymm3",
            "vpmovmskb eax, ymm4",
            "inc eax",
            "jnz 37f",
            $same,
            "vzeroupper",
            "ret",
            ".p2align 5",
            "36:",
            "vmovdqu ymm3, [r9 + rsi + 96]",
            "vpcmpeqb ymm3, ymm3, [r9 + 96]",
            "vpmovmskb eax, ymm3",
            "inc eax",
            "jnz 38f",
            $same,
            "vzeroupper",
            "ret",

            ".p2align 6",
            "28:", // 33 to 64
            "vmovdqu ymm1, [rdi + rdx - 32]",
            "vpcmpeqb ymm1, ymm1, [rsi + rdx - 32]",
            "vpand ymm4, ymm0, ymm1",
            "vpmovmskb eax, ymm4",
            "inc eax",
            "jnz 42f",
            $same,
            "vzeroupper",
            "ret",

            ".p2align 6",
            "29:", // 65 to 128
            "vmovdqu ymm2, [rdi + rdx - 64]",
            "vpcmpeqb ymm2, ymm2, [rsi + rdx - 64]",
            "vmovdqu ymm3, [rdi + rdx - 32]",
            "vpcmpeqb ymm3, ymm3, [rsi + rdx - 32]",
            "vpand ymm4, ymm0, ymm1",
            "vpand ymm5, ymm2, ymm3",
            "vpand ymm4, ymm4, ymm5",
            "vpmovmskb eax, ymm4",
            "inc eax",
            "jnz 43f",
            $same,
            "vzeroupper",
            "ret",

            ".p2align 4",
            "56:", // 1 to 32 without AVX2 or BMI2
            "movdqu xmm0, [rdi]",
            "movdqu xmm2, [rsi]",
            "movdqu xmm1, [rdi + 16]",
            "movdqu xmm3, [rsi + 16]",
            "pcmpeqb xmm0, xmm2",
            "pcmpeqb xmm1, xmm3",
            "pmovmskb eax, xmm0",
            "pmovmskb ecx, xmm1",
            "shl ecx, 16",
            "or eax, ecx",
            "not eax",
            "bts rax, rdx", // what lies behind the buffers counts as a difference
            "tzcnt rcx, rax",
            "cmp ecx, edx",
            "jne 24f",
            "xor eax, eax",
            $same,
            "ret",

            ".p2align 4",
            "20:", // 1 to 32, but not as above
            "mov ecx, [rip + {page}]",
            "cmp ecx, -1",
            "je 39f",
            // The lowest bit alone: no page is left, but there is no AVX2 or no BMI2.
            "and ecx, eax",
            "cmp ecx, 1",
            "je 56b",
            "cmp edx, 16",
            "jae 21f",
            "cmp edx, 4",
            "jae 22f",
            "cmp edx, 1",
            "je 26f",
            $small,

            ".p2align 4",
            "22:", // 4 to 15: the inner blocks are 0 or 4 bytes from the ends
            "mov ecx, edx",
            "mov eax, [rdi]",
            "shr ecx",
            "mov r11d, [rdi + rdx - 4]",
            "and ecx, 4",
            "mov r8, rdx",
            "sub r8, rcx",
            "mov r9d, [rdi + rcx]",
            "mov r10d, [rdi + r8 - 4]",
            "xor eax, [rsi]",
            "xor r11d, [rsi + rdx - 4]",
            "xor r9d, [rsi + rcx]",
            "xor r10d, [rsi + r8 - 4]",
            "or r11d, r9d",
            "or r10d, eax",
            "or r11d, r10d",
            "jnz 55f",
            "xor eax, eax",
            $same,
            "ret",

            ".p2align 4",
            "21:", // 16 to 32
            "movdqu xmm0, [rdi]",
            "movdqu xmm2, [rsi]",
            "movdqu xmm1, [rdi + rdx - 16]",
            "movdqu xmm3, [rsi + rdx - 16]",
            "pcmpeqb xmm0, xmm2",
            "pcmpeqb xmm1, xmm3",
            "movdqa xmm2, xmm0",
            "pand xmm2, xmm1",
            "pmovmskb eax, xmm2",
            "sub eax, 0xFFFF",
            "jnz 40f",
            $same,
            "ret",

            // Not direct: without AVX2, before the table is filled, and beyond the limit.
            ".p2align 4",
            "27:", // 33 and more
            "cmp rdx, 128",
            "ja 39f",
            // Nobody has filled the table yet: a program that only makes short comparisons would stay
            // with these otherwise.
            "cmp byte ptr [rip + {rows} + {row} * {row_bytes} + 8], 0",
            "je 39f",
            // 32 bytes at r8, at most at r9: the last 32.
            "xor r8d, r8d",
            "lea r9, [rdx - 32]",
            "30:",
            "movdqu xmm0, [rdi + r8]",
            "movdqu xmm2, [rsi + r8]",
            "movdqu xmm1, [rdi + r8 + 16]",
            "movdqu xmm3, [rsi + r8 + 16]",
            "pcmpeqb xmm0, xmm2",
            "pcmpeqb xmm1, xmm3",
            "movdqa xmm2, xmm0",
            "pand xmm2, xmm1",
            "pmovmskb eax, xmm2",
            "sub eax, 0xFFFF",
            "jnz 41f",
            "cmp r8, r9",
            "jae 31f",
            "add r8, 32",
            "cmp r8, r9",
            "cmovae r8, r9",
            "jmp 30b",
            "31:",
            $same,
            "ret",

            ".p2align 4",
            "39:",
            $crate::entry_through_the_table!("rdx"),
            $apart,
            direct = sym $crate::entry::DIRECT,
            page = sym $crate::entry::PAGE,
            rows = sym $crate::entry::ROWS,
            row = const $crate::entry::$row,
            row_bytes = const $crate::entry::ROW_BYTES,
            functions = sym $crate::entry::$functions,
        )
    };
}

/// The body of a naked function with `memcmp`'s contract. `$first` as in `entry_compare_or_equal`.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare {
    () => {
        $crate::entry_compare!("cmp rdx, 32")
    };
    ($first:expr) => {
        $crate::entry_compare_or_equal!(
            COMPARE,
            COMPARE_ROW,
            $first,
            "",
            concat!(
                "25:\n",
                "xor eax, eax\n",
                "ret\n",
                "57:\n",
                "tzcnt ecx, eax\n",
                "movzx eax, byte ptr [rdi + rcx]\n",
                "movzx ecx, byte ptr [rsi + rcx]\n",
                "sub eax, ecx\n",
                "vzeroupper\n",
                "ret\n",
            ),
            concat!(
                // 2 or 3: as numbers of 31 bits, the first byte at the top.
                "movzx eax, word ptr [rdi]\n",
                "movzx ecx, word ptr [rsi]\n",
                "bswap eax\n",
                "bswap ecx\n",
                "shr eax\n",
                "shr ecx\n",
                "movzx r8d, byte ptr [rdi + rdx - 1]\n",
                "movzx r9d, byte ptr [rsi + rdx - 1]\n",
                "or eax, r8d\n",
                "or ecx, r9d\n",
                "sub eax, ecx\n",
                "ret\n",
                "26:\n", // 1
                "xor ecx, ecx\n",
                "24:\n", // the bytes at rcx differ
                "movzx eax, byte ptr [rdi + rcx]\n",
                "movzx ecx, byte ptr [rsi + rcx]\n",
                "sub eax, ecx\n",
                "ret\n",
            ),
            concat!(
                // Blocks of 4 at 0, rcx, r8 - 4 and rdx - 4; eax has what differs in the first.
                "55:\n",
                "xor r10d, r10d\n",
                "test eax, eax\n",
                "jnz 51f\n",
                "mov r10, rcx\n",
                "mov eax, [rdi + rcx]\n",
                "xor eax, [rsi + rcx]\n",
                "jnz 51f\n",
                "lea r10, [r8 - 4]\n",
                "mov eax, [rdi + r10]\n",
                "xor eax, [rsi + r10]\n",
                "jnz 51f\n",
                "lea r10, [rdx - 4]\n",
                "mov eax, [rdi + r10]\n",
                "xor eax, [rsi + r10]\n",
                "jz 52f\n", // another thread has made them equal since they were found to differ
                "51:\n",
                "tzcnt eax, eax\n",
                "shr eax, 3\n",
                "add r10, rax\n",
                "movzx eax, byte ptr [rdi + r10]\n",
                "movzx ecx, byte ptr [rsi + r10]\n",
                "sub eax, ecx\n",
                "52:\n",
                "ret\n",
                // Two vectors of 16, at r8 and r9.
                "40:\n",
                "xor r8d, r8d\n",
                "lea r9, [rdx - 16]\n",
                "jmp 47f\n",
                "41:\n",
                "lea r9, [r8 + 16]\n",
                "47:\n",
                "pmovmskb eax, xmm0\n",
                "sub eax, 0xFFFF\n",
                "jnz 50f\n",
                "pmovmskb eax, xmm1\n",
                "mov r8, r9\n",
                "sub eax, 0xFFFF\n",
                "jmp 50f\n",
                // The last one of 32 and the last two of the 128 bytes at r9; rsi is b less a.
                "38:\n",
                "mov rdi, r9\n",
                "add rsi, r9\n",
                "mov r8d, 96\n",
                "jmp 49f\n",
                "37:\n",
                "mov rdi, r9\n",
                "add rsi, r9\n",
                "mov r8d, 64\n",
                "vpmovmskb eax, ymm2\n",
                "inc eax\n",
                "jnz 49f\n",
                "vpmovmskb eax, ymm3\n",
                "mov r8d, 96\n",
                "inc eax\n",
                "jmp 49f\n",
                // Two of 32, at the ends.
                "42:\n",
                "xor r8d, r8d\n",
                "vpmovmskb eax, ymm0\n",
                "inc eax\n",
                "jnz 49f\n",
                "vpmovmskb eax, ymm1\n",
                "lea r8, [rdx - 32]\n",
                "inc eax\n",
                "jmp 49f\n",
                // Four of 32: two from the start, two from r9 on.
                "45:\n",
                "lea rdi, [rdi + rdx - 128]\n",
                "lea rsi, [rsi + rdx - 128]\n",
                "44:\n",
                "mov r9d, 64\n",
                "jmp 48f\n",
                "43:\n",
                "lea r9, [rdx - 64]\n",
                "jmp 48f\n",
                "54:\n",
                "mov rdi, r9\n",
                "46:\n",
                "add rsi, rdi\n",
                "mov r9d, 64\n",
                "48:\n",
                "xor r8d, r8d\n",
                "vpmovmskb eax, ymm0\n",
                "inc eax\n",
                "jnz 49f\n",
                "vpmovmskb eax, ymm1\n",
                "mov r8d, 32\n",
                "inc eax\n",
                "jnz 49f\n",
                "vpmovmskb eax, ymm2\n",
                "mov r8, r9\n",
                "inc eax\n",
                "jnz 49f\n",
                "vpmovmskb eax, ymm3\n",
                "lea r8, [r9 + 32]\n",
                "inc eax\n",
                "49:\n",
                "vzeroupper\n",
                // The first of the vector at r8 that eax has a bit for. `tzcnt` is `bsf` to a CPU
                // that does not know it, which is the same where there is a bit.
                "50:\n",
                "tzcnt ecx, eax\n",
                "add r8, rcx\n",
                "movzx eax, byte ptr [rdi + r8]\n",
                "movzx ecx, byte ptr [rsi + r8]\n",
                "sub eax, ecx\n",
                "ret\n",
            )
        )
    };
}

/// The body of a naked function that tests for equality: 1 or 0.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_equal {
    () => {
        $crate::entry_compare_or_equal!(
            EQUAL,
            EQUAL_ROW,
            "cmp rdx, 32",
            "inc eax",
            concat!(
                "57:\n",
                "xor eax, eax\n",
                "vzeroupper\n",
                "ret\n",
                "25:\n",
                "mov eax, 1\n",
                "ret\n",
            ),
            concat!(
                "movzx ecx, word ptr [rdi]\n", // 2 or 3
                "movzx r8d, byte ptr [rdi + rdx - 1]\n",
                "xor cx, [rsi]\n",
                "xor r8b, [rsi + rdx - 1]\n",
                "xor eax, eax\n",
                "or ecx, r8d\n",
                "sete al\n",
                "ret\n",
                "26:\n", // 1
                "movzx ecx, byte ptr [rdi]\n",
                "xor eax, eax\n",
                "cmp cl, [rsi]\n",
                "sete al\n",
                "ret\n",
            ),
            concat!(
                "37:\n38:\n42:\n43:\n44:\n45:\n46:\n54:\n",
                "vzeroupper\n",
                "24:\n55:\n40:\n41:\n",
                "xor eax, eax\n",
                "ret\n",
            )
        )
    };
}
