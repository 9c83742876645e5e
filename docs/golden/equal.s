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
    jne elsewhere
    xor eax, eax
    inc eax
    ret
1:
    mov eax, 1h
    ret
2:
    cmp dword ptr [rip+data], 0FFFFFFFFh
    je elsewhere
    cmp edx, 10h
    jae 5
    cmp edx, 4h
    jae 4
    cmp edx, 1h
    je 3
    movzx ecx, word ptr [rdi]
    movzx r8d, byte ptr [rdi+rdx-1h]
    xor cx, [rsi]
    xor r8b, [rsi+rdx-1h]
    xor eax, eax
    or ecx, r8d
    sete al
    ret
3:
    movzx ecx, byte ptr [rdi]
    xor eax, eax
    cmp cl, [rsi]
    sete al
    ret
4:
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
    inc eax
    ret
5:
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
    inc eax
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
    jne 2
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    vpmovmskb eax, ymm0
    inc eax
    bzhi eax, eax, edx
    sete al
    movzx eax, al
    vzeroupper
    ret
1:
    mov eax, 1h
    ret
2:
    cmp edx, 10h
    jae 5
    cmp edx, 4h
    jae 4
    cmp edx, 1h
    je 3
    movzx ecx, word ptr [rdi]
    movzx r8d, byte ptr [rdi+rdx-1h]
    xor cx, [rsi]
    xor r8b, [rsi+rdx-1h]
    xor eax, eax
    or ecx, r8d
    sete al
    ret
3:
    movzx ecx, byte ptr [rdi]
    xor eax, eax
    cmp cl, [rsi]
    sete al
    ret
4:
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
    inc eax
    ret
5:
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
    inc eax
    ret
avx512vl:
    mov ecx, 0FFFFFFFFh
    cmp rdx, 21h
    jae elsewhere
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    vmovdqu8 ymm20{k1}{z}, [rdi]
    vpcmpneqb k2{k1}, ymm20, [rsi]
    xor eax, eax
    kortestd k2, k2
    sete al
    ret
avx512vl.256:
    mov ecx, 0FFFFFFFFh
    cmp rdx, 21h
    jae elsewhere
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    vmovdqu8 ymm20{k1}{z}, [rdi]
    vpcmpneqb k2{k1}, ymm20, [rsi]
    xor eax, eax
    kortestd k2, k2
    sete al
    ret
