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
avx512vl:
    mov rax, rdi
    mov r9d, edi
    and r9d, 0FFFh
    cmp rsi, 20h
    ja elsewhere
    cmp r9d, 0FF0h
    ja elsewhere
    vpxord xmm20, xmm20, xmm20
    mov ecx, 0FFFFFFFFh
    xor r8d, r8d
    bzhi ecx, ecx, esi
    je elsewhere
    sub esi, 10h
    kmovd k1, ecx
    cmovb esi, r8d
    vmovdqu8 [rdi]{k1}, xmm20
    vmovdqu8 [rdi+rsi]{k1}, xmm20
    ret
avx512vl.masked:
    mov rax, rdi
    mov r9d, edi
    and r9d, 0FFFh
    cmp rsi, 40h
    jae elsewhere
    cmp r9d, 0FE0h
    ja 1
    vpxord xmm20, xmm20, xmm20
    mov ecx, 0FFFFFFFFh
    xor r8d, r8d
    bzhi ecx, ecx, esi
    je 5
    sub esi, 20h
    kmovd k1, ecx
    cmovb esi, r8d
    vmovdqu8 [rdi]{k1}, ymm20
    vmovdqu8 [rdi+rsi]{k1}, ymm20
    ret
1:
    cmp esi, 10h
    jb 3
    vpxord xmm20, xmm20, xmm20
    cmp esi, 20h
    jbe 2
    vmovdqu64 [rdi], ymm20
    vmovdqu64 [rdi+rsi-20h], ymm20
    ret
2:
    vmovdqu64 [rdi], xmm20
    vmovdqu64 [rdi+rsi-10h], xmm20
    ret
3:
    xor ecx, ecx
    cmp esi, 4h
    jb 4
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
4:
    test esi, esi
    je 5
    mov r8d, esi
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rsi-1h], cl
5:
    ret
avx2:
    mov rax, rdi
    cmp rsi, 40h
    ja elsewhere
    cmp esi, 10h
    jb 3
    cmp esi, 20h
    jb 2
    vpxor xmm0, xmm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rsi-20h], ymm0
    vzeroupper
    ret
2:
    xorps xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rsi-10h], xmm0
    ret
3:
    xor ecx, ecx
    cmp esi, 4h
    jb 4
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
4:
    test esi, esi
    je 5
    mov r8d, esi
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rsi-1h], cl
5:
    ret
