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
avx512vl:
    mov rax, rdi
    mov r9d, edi
    and r9d, 0FFFh
    cmp rdx, 20h
    ja elsewhere
    cmp r9d, 0FF0h
    ja elsewhere
    vpbroadcastb ymm20, esi
    mov ecx, 0FFFFFFFFh
    xor r8d, r8d
    bzhi ecx, ecx, edx
    je elsewhere
    sub edx, 10h
    kmovd k1, ecx
    cmovb edx, r8d
    vmovdqu8 [rdi]{k1}, xmm20
    vmovdqu8 [rdi+rdx]{k1}, xmm20
    ret
avx512vl.masked:
    mov rax, rdi
    mov r9d, edi
    and r9d, 0FFFh
    cmp rdx, 40h
    jae elsewhere
    cmp r9d, 0FE0h
    ja 1
    vpbroadcastb ymm20, esi
    mov ecx, 0FFFFFFFFh
    xor r8d, r8d
    bzhi ecx, ecx, edx
    je 5
    sub edx, 20h
    kmovd k1, ecx
    cmovb edx, r8d
    vmovdqu8 [rdi]{k1}, ymm20
    vmovdqu8 [rdi+rdx]{k1}, ymm20
    ret
1:
    cmp edx, 10h
    jb 3
    vpbroadcastb ymm20, esi
    cmp edx, 20h
    jbe 2
    vmovdqu64 [rdi], ymm20
    vmovdqu64 [rdi+rdx-20h], ymm20
    ret
2:
    vmovdqu64 [rdi], xmm20
    vmovdqu64 [rdi+rdx-10h], xmm20
    ret
3:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jb 4
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
4:
    test edx, edx
    je 5
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
5:
    ret
avx2:
    mov rax, rdi
    cmp rdx, 40h
    ja elsewhere
    cmp edx, 10h
    jb 3
    cmp edx, 20h
    jb 2
    vmovd xmm0, esi
    vpbroadcastb ymm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rdx-20h], ymm0
    vzeroupper
    ret
2:
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm0
    ret
3:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jb 4
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
4:
    test edx, edx
    je 5
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
5:
    ret
