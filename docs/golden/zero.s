sse2:
    mov rax, rdi
    cmp rsi, 20h
    ja elsewhere
    cmp esi, 10h
    jb 1
    xorps xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rsi-10h], xmm0
    ret
1:
    xor ecx, ecx
    cmp esi, 4h
    jb 2
    mov r8d, esi
    mov r10, rsi
    shr r8d, 1h
    and r8d, 4h
    mov [rdi], ecx
    sub r10, r8
    mov [rdi+r8], ecx
    mov [rdi+rsi-4h], ecx
    mov [rdi+r10-4h], ecx
    ret
2:
    test esi, esi
    je 3
    mov r8d, esi
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rsi-1h], cl
3:
    ret
avx2:
    mov rax, rdi
    cmp rsi, 40h
    ja elsewhere
    cmp esi, 10h
    jb 2
    cmp esi, 20h
    jb 1
    vpxor xmm0, xmm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rsi-20h], ymm0
    vzeroupper
    ret
1:
    xorps xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rsi-10h], xmm0
    ret
2:
    xor ecx, ecx
    cmp esi, 4h
    jb 3
    mov r8d, esi
    mov r10, rsi
    shr r8d, 1h
    and r8d, 4h
    mov [rdi], ecx
    sub r10, r8
    mov [rdi+r8], ecx
    mov [rdi+rsi-4h], ecx
    mov [rdi+r10-4h], ecx
    ret
3:
    test esi, esi
    je 4
    mov r8d, esi
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rsi-1h], cl
4:
    ret
avx512vl:
    mov rax, rdi
    cmp rsi, 41h
    jae elsewhere
    vpxord xmm20, xmm20, xmm20
    lea ecx, [rdi+3Fh]
    xor ecx, edi
    test ch, 10h
    jne elsewhere
    or rcx, 0FFFFFFFFFFFFFFFFh
    bzhi rcx, rcx, rsi
    kmovq k1, rcx
    vmovdqu8 [rdi]{k1}, zmm20
    ret
avx512vl.256:
    mov rax, rdi
    cmp rsi, 21h
    jae elsewhere
    vpxord xmm20, xmm20, xmm20
    lea ecx, [rdi+1Fh]
    xor ecx, edi
    test ch, 10h
    jne elsewhere
    or ecx, 0FFFFFFFFh
    bzhi ecx, ecx, esi
    kmovd k1, ecx
    vmovdqu8 [rdi]{k1}, ymm20
    ret
