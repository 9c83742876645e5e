//! Results of comparisons: where buffers were found to differ, and the sizes that end at once.
//! `comparing.rs` has what finds it, and says which registers the difference is in by the label.
//! Which of several it is in follows no pattern in most programs, so that is found without branches:
//! a mispredicted one costs more than the rest of the call.

/// Place of the difference in [`entry_compare_evex`].
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_evex_apart {
    () => {
        concat!(
            // That at 32 or the last of 64.
            "44:\n",
            "vptestmb k1, zmm20, zmm20\n",
            "vptestmb k2, zmm21, zmm21\n",
            "mov r8d, 32\n",
            "lea r9, [rdx - 64]\n",
            "kmovq rax, k1\n",
            "kmovq rcx, k2\n",
            "test rax, rax\n",
            "cmovz rax, rcx\n",
            "cmovz r8, r9\n",
            "jmp 50f\n",
            // Register 20 is that of the bytes from 32 on: it becomes that of those from 0 on.
            "49:\n",
            "vpxord xmm24, xmm24, xmm24\n",
            "valignq zmm20, zmm20, zmm24, 4\n",
            "jmp 48f\n",
            // The last vector of the 256 bytes at rcx, and the last two; rsi is b less a.
            "53:\n",
            "lea rdi, [rcx + 192]\n",
            "add rsi, rdi\n",
            "xor r8d, r8d\n",
            "jmp 50f\n",
            "45:\n",
            "lea rdi, [rcx + 128]\n",
            // Four of 64: two from the start, two from r9 on.
            "46:\n",
            "mov r9d, 128\n",
            "47:\n",
            "add rsi, rdi\n",
            "48:\n",
            "vptestmb k1, zmm20, zmm20\n",
            "vptestmb k2, zmm21, zmm21\n",
            "vptestmb k3, zmm22, zmm22\n",
            "vptestmb k4, zmm23, zmm23\n",
            "lea r8, [r9 + 64]\n",
            "kmovq rax, k4\n",
            "kmovq rcx, k3\n",
            "test rcx, rcx\n",
            "cmovnz rax, rcx\n",
            "cmovnz r8, r9\n",
            "kmovq rcx, k2\n",
            "mov r9d, 64\n",
            "test rcx, rcx\n",
            "cmovnz rax, rcx\n",
            "cmovnz r8, r9\n",
            "xor r9d, r9d\n",
            "kmovq rcx, k1\n",
            "test rcx, rcx\n",
            "cmovnz rax, rcx\n",
            "cmovnz r8, r9\n",
            "50:\n",
            "tzcnt rcx, rax\n",
            $crate::entry_compare_byte!(),
            // One of 32 at rdi.
            "66:\n",
            "add rsi, rdi\n",
            "xor r8d, r8d\n",
            "jmp 50b\n",
            // Four of 32 at rdi, of which the last two may be equal; rsi is b less a.
            "64:\n",
            "add rsi, rdi\n",
            "vptestmb k1, ymm20, ymm20\n",
            "vptestmb k2, ymm21, ymm21\n",
            "vptestmb k3, ymm22, ymm22\n",
            "vptestmb k4, ymm23, ymm23\n",
            "kunpckdq k1, k2, k1\n",
            "kunpckdq k3, k4, k3\n",
            "mov r8d, 64\n",
            "xor r9d, r9d\n",
            "kmovq rax, k3\n",
            "kmovq rcx, k1\n",
            "test rcx, rcx\n",
            "cmovnz rax, rcx\n",
            "cmovnz r8, r9\n",
            "jmp 50b\n",
        )
    };
}

/// `memcmp`'s result for the byte that is rcx behind r8.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_byte {
    () => {
        "add r8, rcx
        movzx eax, byte ptr [rdi + r8]
        movzx ecx, byte ptr [rsi + r8]
        sub eax, ecx
        ret
        "
    };
}

/// Place of the difference in `entry_compare_classes`; the last of it goes on to label 50.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_classes_apart {
    () => {
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
            // Two vectors of 16: the first, and the last.
            "40:\n",
            "xor r8d, r8d\n",
            "lea r9, [rdx - 16]\n",
            "mov ecx, eax\n",
            "pmovmskb eax, xmm0\n",
            "sub eax, 0xFFFF\n",
            "cmovz eax, ecx\n",
            "cmovz r8, r9\n",
        )
    };
}

/// Place of the difference, for `memcmp`: in the classes, and in one entry.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_apart {
    // A bit for each of 2 to 32 bytes that differs, and perhaps more behind the last.
    (near) => {
        concat!(
            "24:\n",
            "pmovmskb eax, xmm0\n",
            "not r8d\n",
            "xor eax, 0xFFFF\n",
            "shl r8, cl\n",
            "or rax, r8\n",
            "tzcnt rcx, rax\n",
            $crate::entry_compare_bytes!(),
        )
    };
    (classes) => {
        concat!($crate::entry_compare_classes_apart!(), $crate::entry_compare_apart!(last))
    };
    // The first 32 bytes, and the last, by a bit each in eax.
    (last_of_two) => {
        concat!(
            "24:\n",
            "tzcnt ecx, eax\n",
            $crate::entry_compare_bytes!(),
            "42:\n",
            "tzcnt ecx, eax\n",
            "lea rcx, [rcx + rdx - 32]\n",
            $crate::entry_compare_bytes!(),
        )
    };
    // The first 32 bytes, the last, and 32 at r8.
    (two) => {
        concat!(
            "56:\n",
            "tzcnt ecx, eax\n",
            $crate::entry_compare_bytes!(),
            "42:\n",
            "lea r8, [rdx - 32]\n",
            "41:\n",
            $crate::entry_compare_apart!(sixteens),
            "add rcx, r8\n",
            $crate::entry_compare_bytes!(),
        )
    };
    // Two vectors of 16 in a row. The lowest bit of a number is that of its negative, too.
    (sixteens) => {
        "pmovmskb ecx, xmm0
        sub ecx, 0xFFFF
        shl eax, 16
        or ecx, eax
        tzcnt ecx, ecx
        "
    };
    (sse2) => {
        ""
    };
    (avx2) => {
        concat!(
            // The last of the 128 bytes at r9; rsi is b less a.
            "38:\n",
            "mov rdi, r9\n",
            "add rsi, r9\n",
            "mov r8d, 96\n",
            "jmp 49f\n",
            // Three of 32, in registers 1 to 3: at r9 + 64, where 1 is equal, that of the loop; at 32, and at 64 or the end.
            "37:\n",
            "mov rdi, r9\n",
            "add rsi, r9\n",
            "44:\n",
            "mov r8d, 64\n",
            "jmp 47f\n",
            "43:\n",
            "lea r8, [rdx - 64]\n",
            "47:\n",
            $crate::entry_compare_apart!(two "2" "3" "eax" "rax" "ecx" "rcx"),
            "mov r9d, 32\n",
            "vpmovmskb ecx, ymm1\n",
            "inc ecx\n",
            "cmovnz rax, rcx\n",
            "cmovnz r8, r9\n",
            "jmp 48f\n",
            // Four of 32: the last, those at r9, those at rdi.
            "45:\n",
            "lea rdi, [rdi + rdx - 128]\n",
            "lea rsi, [rsi + rdx - 128]\n",
            "jmp 40f\n",
            "54:\n",
            "mov rdi, r9\n",
            "46:\n",
            "add rsi, rdi\n",
            "40:\n",
            $crate::entry_compare_apart!(two "2" "3" "r9d" "r9" "r10d" "r10"),
            "xor r8d, r8d\n",
            "mov ecx, 64\n",
            $crate::entry_compare_apart!(two "0" "1" "eax" "rax" "r11d" "r11"),
            "cmovz rax, r9\n",
            "cmovz r8d, ecx\n",
            "48:\n",
            "tzcnt rcx, rax\n",
            "vzeroupper\n",
            $crate::entry_compare_byte!(),
            "49:\n",
            "vzeroupper\n",
            $crate::entry_compare_apart!(last),
        )
    };
    // Two vectors of 32 with a bit for each byte that is equal, and one more: the lowest bit is that of the first
    // that differs, and there is none, in the flags too, where none does.
    (two $first:literal $second:literal $low:literal $mask:literal $high:literal $other:literal) => {
        concat!(
            concat!("vpmovmskb ", $high, ", ymm", $second, "\n"),
            concat!("shl ", $other, ", 32\n"),
            concat!("vpmovmskb ", $low, ", ymm", $first, "\n"),
            concat!("or ", $mask, ", ", $other, "\n"),
            concat!("inc ", $mask, "\n"),
        )
    };
    (last) => {
        concat!(
            // The first of the vector at r8 that eax has a bit for. `tzcnt` is `bsf` to a CPU
            // that does not know it, which is the same where there is a bit.
            "50:\n",
            "tzcnt ecx, eax\n",
            $crate::entry_compare_byte!(),
        )
    };
    (avx512vl) => {
        $crate::entry_compare_evex_apart!()
    };
}

/// `memcmp`'s result for the bytes at rcx, or so far from there.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_bytes {
    ($($offset:literal)?) => {
        concat!(
            concat!("movzx eax, byte ptr [rdi + rcx", $($offset,)? "]\n"),
            concat!("movzx ecx, byte ptr [rsi + rcx", $($offset,)? "]\n"),
            "sub eax, ecx\n",
            "ret\n"
        )
    };
}

/// The answer of a `memcmp` of 2 to 32 bytes; eax is 0. Whether they are equal is asked as early as it can be: after stores that are not
/// forwarded every instruction behind the loads is waited for.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_near {
    // The first 32 bytes of more: in eax the first that differs.
    (two) => {
        "pmovmskb ecx, xmm1
        pmovmskb eax, xmm0
        shl ecx, 16
        or eax, ecx
        inc eax
        "
    };
    // Up to 32 bytes under a mask: in k1 those that differ.
    (masked) => {
        concat!(
            "kmovd eax, k1\n",
            "test eax, eax\n",
            "jnz 24f\n",
            "ret\n",
            ".p2align 4\n",
            "24:\n",
            "tzcnt ecx, eax\n",
            $crate::entry_compare_bytes!(),
        )
    };
    () => {
        concat!(
            "pand xmm1, xmm0\n",
            "pmovmskb r8d, xmm1\n",
            "or r8d, r9d\n",
            "cmp r8w, -1\n",
            "jne 24f\n",
            "ret\n",
        )
    };
}

/// A `memcmp` of several bytes, 2 or 3, and of one or none.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_compare_small {
    (several) => {
        // As numbers of 31 bits, the first byte at the top.
        "movzx eax, word ptr [rdi]
        movzx ecx, word ptr [rsi]
        bswap eax
        bswap ecx
        shr eax
        shr ecx
        movzx r8d, byte ptr [rdi + rdx - 1]
        movzx r9d, byte ptr [rsi + rdx - 1]
        or eax, r8d
        or ecx, r9d
        sub eax, ecx
        ret
        "
    };
    (one) => {
        "jb 26f
        movzx eax, byte ptr [rdi]
        movzx ecx, byte ptr [rsi]
        sub eax, ecx
        ret
        26:
        xor eax, eax
        ret
        "
    };
}

/// As `entry_compare_apart`, where any difference is the same.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_equal_apart {
    (near) => {
        ""
    };
    (classes) => {
        "55:\n40:\nxor eax, eax\nret\n"
    };
    (last_of_two) => {
        "24:\n42:\nxor eax, eax\nret\n"
    };
    (two) => {
        "41:\n42:\n56:\nxor eax, eax\nret\n"
    };
    (sse2) => {
        ""
    };
    (avx2) => {
        concat!("37:\n38:\n43:\n44:\n45:\n46:\n54:\n", "vzeroupper\n", "xor eax, eax\nret\n",)
    };
    (avx512vl) => {
        "44:\n45:\n46:\n47:\n48:\n49:\n53:\n64:\n66:\nxor eax, eax\nret\n"
    };
}

/// As `entry_compare_near`, where any difference is the same; no branch: the caller has one.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_equal_near {
    (two) => {
        $crate::entry_compare_xmm!(test)
    };
    (masked) => {
        "xor eax, eax\nkortestd k1, k1\nsetz al\nret\n"
    };
    () => {
        "pand xmm0, xmm1
        pmovmskb ecx, xmm0
        or ecx, r9d
        cmp cx, -1
        sete al
        ret
        "
    };
}

/// As `entry_compare_small`, where any difference is the same.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_equal_small {
    (several) => {
        "movzx ecx, word ptr [rdi]
        movzx r8d, byte ptr [rdi + rdx - 1]
        xor cx, [rsi]
        xor r8b, [rsi + rdx - 1]
        xor eax, eax
        or ecx, r8d
        sete al
        ret
        "
    };
    (one) => {
        "jb 26f
        movzx ecx, byte ptr [rdi]
        xor eax, eax
        cmp cl, [rsi]
        sete al
        ret
        26:
        mov eax, 1
        ret
        "
    };
}
