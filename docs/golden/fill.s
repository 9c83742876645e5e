sse2:
    mov rax, rdi
    cmp rdx, 20h
    ja elsewhere
    cmp edx, 10h
    jb 1
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm0
    ret
1:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jb 2
    mov r8d, edx
    mov r10, rdx
    shr r8d, 1h
    and r8d, 4h
    mov [rdi], ecx
    sub r10, r8
    mov [rdi+r8], ecx
    mov [rdi+rdx-4h], ecx
    mov [rdi+r10-4h], ecx
    ret
2:
    test edx, edx
    je 3
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
3:
    ret
avx2:
    mov rax, rdi
    cmp rdx, 40h
    ja elsewhere
    cmp edx, 10h
    jb 2
    cmp edx, 20h
    jb 1
    vmovd xmm0, esi
    vpbroadcastb ymm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rdx-20h], ymm0
    vzeroupper
    ret
1:
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm0
    ret
2:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jb 3
    mov r8d, edx
    mov r10, rdx
    shr r8d, 1h
    and r8d, 4h
    mov [rdi], ecx
    sub r10, r8
    mov [rdi+r8], ecx
    mov [rdi+rdx-4h], ecx
    mov [rdi+r10-4h], ecx
    ret
3:
    test edx, edx
    je 4
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
4:
    ret
avx512vl:
    mov rax, rdi
    cmp rdx, 41h
    jae elsewhere
    vpbroadcastb zmm20, esi
    lea ecx, [rdi+3Fh]
    xor ecx, edi
    test ch, 10h
    jne elsewhere
    or rcx, 0FFFFFFFFFFFFFFFFh
    bzhi rcx, rcx, rdx
    kmovq k1, rcx
    vmovdqu8 [rdi]{k1}, zmm20
    ret
avx512vl.256:
    mov rax, rdi
    cmp rdx, 21h
    jae elsewhere
    vpbroadcastb ymm20, esi
    lea ecx, [rdi+1Fh]
    xor ecx, edi
    test ch, 10h
    jne elsewhere
    or ecx, 0FFFFFFFFh
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    vmovdqu8 [rdi]{k1}, ymm20
    ret
