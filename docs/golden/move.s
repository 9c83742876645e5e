sse2:
    mov rax, rdi
    cmp rdx, 20h
    ja elsewhere
    cmp edx, 10h
    jb 1
    movups xmm0, [rsi]
    movups xmm1, [rsi+rdx-10h]
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm1
    ret
1:
    cmp edx, 4h
    jb 2
    mov ecx, edx
    mov r8d, [rsi]
    shr ecx, 1h
    mov r9d, [rsi+rdx-4h]
    and ecx, 4h
    mov r10, rdx
    sub r10, rcx
    mov r11d, [rsi+rcx]
    mov esi, [rsi+r10-4h]
    mov [rdi], r8d
    mov [rdi+rcx], r11d
    mov [rdi+r10-4h], esi
    mov [rdi+rdx-4h], r9d
    ret
2:
    test edx, edx
    je 3
    mov r9d, edx
    shr r9d, 1h
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi+r9]
    movzx esi, byte ptr [rsi+rdx-1h]
    mov [rdi], cl
    mov [rdi+r9], r8b
    mov [rdi+rdx-1h], sil
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
    vmovdqu ymm0, [rsi]
    vmovdqu ymm1, [rsi+rdx-20h]
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rdx-20h], ymm1
    vzeroupper
    ret
1:
    movups xmm0, [rsi]
    movups xmm1, [rsi+rdx-10h]
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm1
    ret
2:
    cmp edx, 4h
    jb 3
    mov ecx, edx
    mov r8d, [rsi]
    shr ecx, 1h
    mov r9d, [rsi+rdx-4h]
    and ecx, 4h
    mov r10, rdx
    sub r10, rcx
    mov r11d, [rsi+rcx]
    mov esi, [rsi+r10-4h]
    mov [rdi], r8d
    mov [rdi+rcx], r11d
    mov [rdi+r10-4h], esi
    mov [rdi+rdx-4h], r9d
    ret
3:
    test edx, edx
    je 4
    mov r9d, edx
    shr r9d, 1h
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi+r9]
    movzx esi, byte ptr [rsi+rdx-1h]
    mov [rdi], cl
    mov [rdi+r9], r8b
    mov [rdi+rdx-1h], sil
4:
    ret
avx512vl:
    mov rax, rdi
    cmp rdx, 21h
    jae elsewhere
    cmp edx, 10h
    jb 1
    vmovdqu64 xmm20, [rsi]
    vmovdqu64 xmm21, [rsi+rdx-10h]
    vmovdqu64 [rdi], xmm20
    vmovdqu64 [rdi+rdx-10h], xmm21
    ret
1:
    lea ecx, [rdi+0Fh]
    xor ecx, edi
    test ch, 10h
    jne elsewhere
    or ecx, 0FFFFFFFFh
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    je 2
    vmovdqu8 xmm20{k1}{z}, [rsi]
    vmovdqu8 [rdi]{k1}, xmm20
2:
    ret
avx512vl.256:
    mov rax, rdi
    cmp rdx, 21h
    jae elsewhere
    cmp edx, 10h
    jb 1
    vmovdqu64 xmm20, [rsi]
    vmovdqu64 xmm21, [rsi+rdx-10h]
    vmovdqu64 [rdi], xmm20
    vmovdqu64 [rdi+rdx-10h], xmm21
    ret
1:
    lea ecx, [rdi+0Fh]
    xor ecx, edi
    test ch, 10h
    jne elsewhere
    or ecx, 0FFFFFFFFh
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    je 2
    vmovdqu8 xmm20{k1}{z}, [rsi]
    vmovdqu8 [rdi]{k1}, xmm20
2:
    ret
