sse2:
    cmp rdx, 20h
    ja elsewhere
    test edx, edx
    je 1
    lea eax, [rdi+1Fh]
    lea ecx, [rsi+1Fh]
    xor eax, edi
    xor ecx, esi
    or eax, ecx
    test [rip+data], eax
    jne 2
    movdqu xmm0, [rdi]
    movdqu xmm2, [rsi]
    movdqu xmm1, [rdi+10h]
    movdqu xmm3, [rsi+10h]
    pcmpeqb xmm0, xmm2
    pcmpeqb xmm1, xmm3
    pmovmskb eax, xmm0
    pmovmskb ecx, xmm1
    shl ecx, 10h
    or eax, ecx
    not eax
    bts rax, rdx
    tzcnt rcx, rax
    cmp ecx, edx
    jne 4
    xor eax, eax
    ret
1:
    xor eax, eax
    ret
2:
    cmp dword ptr [rip+data], 0FFFFFFFFh
    je elsewhere
    cmp edx, 10h
    jae 6
    cmp edx, 4h
    jae 5
    cmp edx, 1h
    je 3
    movzx eax, word ptr [rdi]
    movzx ecx, word ptr [rsi]
    bswap eax
    bswap ecx
    shr eax, 1h
    shr ecx, 1h
    movzx r8d, byte ptr [rdi+rdx-1h]
    movzx r9d, byte ptr [rsi+rdx-1h]
    or eax, r8d
    or ecx, r9d
    sub eax, ecx
    ret
3:
    xor ecx, ecx
4:
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
5:
    mov ecx, edx
    mov eax, [rdi]
    shr ecx, 1h
    mov r11d, [rdi+rdx-4h]
    and ecx, 4h
    mov r8, rdx
    sub r8, rcx
    mov r9d, [rdi+rcx]
    mov r10d, [rdi+r8-4h]
    xor eax, [rsi]
    xor r11d, [rsi+rdx-4h]
    xor r9d, [rsi+rcx]
    xor r10d, [rsi+r8-4h]
    or r11d, r9d
    or r10d, eax
    or r11d, r10d
    jne elsewhere
    xor eax, eax
    ret
6:
    movdqu xmm0, [rdi]
    movdqu xmm2, [rsi]
    movdqu xmm1, [rdi+rdx-10h]
    movdqu xmm3, [rsi+rdx-10h]
    pcmpeqb xmm0, xmm2
    pcmpeqb xmm1, xmm3
    movdqa xmm2, xmm0
    pand xmm2, xmm1
    pmovmskb eax, xmm2
    sub eax, 0FFFFh
    jne elsewhere
    ret
avx2:
    cmp rdx, 20h
    ja elsewhere
    test edx, edx
    je 1
    lea eax, [rdi+1Fh]
    lea ecx, [rsi+1Fh]
    xor eax, edi
    xor ecx, esi
    or eax, ecx
    test [rip+data], eax
    jne 3
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    vpmovmskb eax, ymm0
    inc eax
    bzhi eax, eax, edx
    jne 2
    vzeroupper
    ret
1:
    xor eax, eax
    ret
2:
    tzcnt ecx, eax
    vzeroupper
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
3:
    cmp edx, 10h
    jae 6
    cmp edx, 4h
    jae 5
    cmp edx, 1h
    je 4
    movzx eax, word ptr [rdi]
    movzx ecx, word ptr [rsi]
    bswap eax
    bswap ecx
    shr eax, 1h
    shr ecx, 1h
    movzx r8d, byte ptr [rdi+rdx-1h]
    movzx r9d, byte ptr [rsi+rdx-1h]
    or eax, r8d
    or ecx, r9d
    sub eax, ecx
    ret
4:
    xor ecx, ecx
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
5:
    mov ecx, edx
    mov eax, [rdi]
    shr ecx, 1h
    mov r11d, [rdi+rdx-4h]
    and ecx, 4h
    mov r8, rdx
    sub r8, rcx
    mov r9d, [rdi+rcx]
    mov r10d, [rdi+r8-4h]
    xor eax, [rsi]
    xor r11d, [rsi+rdx-4h]
    xor r9d, [rsi+rcx]
    xor r10d, [rsi+r8-4h]
    or r11d, r9d
    or r10d, eax
    or r11d, r10d
    jne elsewhere
    xor eax, eax
    ret
6:
    movdqu xmm0, [rdi]
    movdqu xmm2, [rsi]
    movdqu xmm1, [rdi+rdx-10h]
    movdqu xmm3, [rsi+rdx-10h]
    pcmpeqb xmm0, xmm2
    pcmpeqb xmm1, xmm3
    movdqa xmm2, xmm0
    pand xmm2, xmm1
    pmovmskb eax, xmm2
    sub eax, 0FFFFh
    jne elsewhere
    ret
avx512vl:
    mov ecx, 0FFFFFFFFh
    cmp rdx, 21h
    jae elsewhere
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    vmovdqu8 ymm20{k1}{z}, [rdi]
    vpcmpneqb k2{k1}, ymm20, [rsi]
    kmovd eax, k2
    test eax, eax
    jne 1
    ret
1:
    tzcnt ecx, eax
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
avx512vl.256:
    mov ecx, 0FFFFFFFFh
    cmp rdx, 21h
    jae elsewhere
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    vmovdqu8 ymm20{k1}{z}, [rdi]
    vpcmpneqb k2{k1}, ymm20, [rsi]
    kmovd eax, k2
    test eax, eax
    jne 1
    ret
1:
    tzcnt ecx, eax
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
