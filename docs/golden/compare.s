    cmp rdx, 20h
    ja 3
    lea eax, [rdi+1Fh]
    lea ecx, [rsi+1Fh]
    xor eax, edi
    xor ecx, esi
    or eax, ecx
    test edx, edx
    je 1
    test [rip+data], eax
    jne 11
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
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    vzeroupper
    ret
3:
    cmp rdx, [rip+data]
    ja 16
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    cmp rdx, 40h
    jbe 8
    vmovdqu ymm1, [rdi+20h]
    vpcmpeqb ymm1, ymm1, [rsi+20h]
    cmp rdx, 80h
    jbe 9
    vmovdqu ymm2, [rdi+40h]
    vpcmpeqb ymm2, ymm2, [rsi+40h]
    vmovdqu ymm3, [rdi+60h]
    vpcmpeqb ymm3, ymm3, [rsi+60h]
    vpand ymm4, ymm0, ymm1
    vpand ymm5, ymm2, ymm3
    vpand ymm4, ymm4, ymm5
    vpmovmskb eax, ymm4
    inc eax
    jne 31
    cmp rdx, 100h
    ja 4
    vmovdqu ymm0, [rdi+rdx-80h]
    vpcmpeqb ymm0, ymm0, [rsi+rdx-80h]
    vmovdqu ymm1, [rdi+rdx-60h]
    vpcmpeqb ymm1, ymm1, [rsi+rdx-60h]
    vmovdqu ymm2, [rdi+rdx-40h]
    vpcmpeqb ymm2, ymm2, [rsi+rdx-40h]
    vmovdqu ymm3, [rdi+rdx-20h]
    vpcmpeqb ymm3, ymm3, [rsi+rdx-20h]
    vpand ymm4, ymm0, ymm1
    vpand ymm5, ymm2, ymm3
    vpand ymm4, ymm4, ymm5
    vpmovmskb eax, ymm4
    inc eax
    jne 30
    vzeroupper
    ret
4:
    lea r9, [rdi+rdx-80h]
    sub rsi, rdi
    and rdi, 0FFFFFFFFFFFFFFE0h
    sub rdi, 0FFFFFFFFFFFFFF80h
    nop word ptr cs:[rax+rax]
    nop word ptr [rax+rax]
5:
    vmovdqu ymm0, [rdi+rsi]
    vpcmpeqb ymm0, ymm0, [rdi]
    vmovdqu ymm1, [rdi+rsi+20h]
    vpcmpeqb ymm1, ymm1, [rdi+20h]
    vmovdqu ymm2, [rdi+rsi+40h]
    vpcmpeqb ymm2, ymm2, [rdi+40h]
    vmovdqu ymm3, [rdi+rsi+60h]
    vpcmpeqb ymm3, ymm3, [rdi+60h]
    vpand ymm4, ymm0, ymm1
    vpand ymm5, ymm2, ymm3
    vpand ymm4, ymm4, ymm5
    vpmovmskb eax, ymm4
    inc eax
    jne 34
    sub rdi, 0FFFFFFFFFFFFFF80h
    cmp rdi, r9
    jb 5
    sub rdi, r9
    cmp edi, 60h
    jae 7
    vmovdqu ymm2, [r9+rsi+40h]
    vpcmpeqb ymm2, ymm2, [r9+40h]
    vmovdqu ymm3, [r9+rsi+60h]
    vpcmpeqb ymm3, ymm3, [r9+60h]
    cmp edi, 40h
    jae 6
    vmovdqu ymm0, [r9+rsi]
    vpcmpeqb ymm0, ymm0, [r9]
    vmovdqu ymm1, [r9+rsi+20h]
    vpcmpeqb ymm1, ymm1, [r9+20h]
    vpand ymm4, ymm0, ymm1
    vpand ymm5, ymm2, ymm3
    vpand ymm4, ymm4, ymm5
    vpmovmskb eax, ymm4
    inc eax
    jne 33
    vzeroupper
    ret
6:
    vpand ymm4, ymm2, ymm3
    vpmovmskb eax, ymm4
    inc eax
    jne 28
    vzeroupper
    ret
7:
    vmovdqu ymm3, [r9+rsi+60h]
    vpcmpeqb ymm3, ymm3, [r9+60h]
    vpmovmskb eax, ymm3
    inc eax
    jne 27
    vzeroupper
    ret
8:
    vmovdqu ymm1, [rdi+rdx-20h]
    vpcmpeqb ymm1, ymm1, [rsi+rdx-20h]
    vpand ymm4, ymm0, ymm1
    vpmovmskb eax, ymm4
    inc eax
    jne 29
    vzeroupper
    ret
9:
    vmovdqu ymm2, [rdi+rdx-40h]
    vpcmpeqb ymm2, ymm2, [rsi+rdx-40h]
    vmovdqu ymm3, [rdi+rdx-20h]
    vpcmpeqb ymm3, ymm3, [rsi+rdx-20h]
    vpand ymm4, ymm0, ymm1
    vpand ymm5, ymm2, ymm3
    vpand ymm4, ymm4, ymm5
    vpmovmskb eax, ymm4
    inc eax
    jne 32
    vzeroupper
    ret
10:
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
    jne 13
    xor eax, eax
    ret
11:
    mov ecx, [rip+data]
    cmp ecx, 0FFFFFFFFh
    je 19
    and ecx, eax
    cmp ecx, 1h
    je 10
    cmp edx, 10h
    jae 15
    cmp edx, 4h
    jae 14
    cmp edx, 1h
    je 12
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
12:
    xor ecx, ecx
13:
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
14:
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
    jne 22
    xor eax, eax
    ret
15:
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
    jne 24
    ret
16:
    cmp rdx, 80h
    ja 19
    cmp byte ptr [rip+data], 0h
    je 19
    xor r8d, r8d
    lea r9, [rdx-20h]
17:
    movdqu xmm0, [rdi+r8]
    movdqu xmm2, [rsi+r8]
    movdqu xmm1, [rdi+r8+10h]
    movdqu xmm3, [rsi+r8+10h]
    pcmpeqb xmm0, xmm2
    pcmpeqb xmm1, xmm3
    movdqa xmm2, xmm0
    pand xmm2, xmm1
    pmovmskb eax, xmm2
    sub eax, 0FFFFh
    jne 25
    cmp r8, r9
    jae 18
    add r8, 20h
    cmp r8, r9
    cmovae r8, r9
    jmp 17
18:
    ret
19:
    cmp rdx, 1000h
    jae 21
    mov rcx, rdx
    shr rcx, 5h
20:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
21:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 20
22:
    xor r10d, r10d
    test eax, eax
    jne 23
    mov r10, rcx
    mov eax, [rdi+rcx]
    xor eax, [rsi+rcx]
    jne 23
    lea r10, [r8-4h]
    mov eax, [rdi+r10]
    xor eax, [rsi+r10]
    jne 23
    lea r10, [rdx-4h]
    mov eax, [rdi+r10]
    xor eax, [rsi+r10]
23:
    tzcnt eax, eax
    shr eax, 3h
    add r10, rax
    movzx eax, byte ptr [rdi+r10]
    movzx ecx, byte ptr [rsi+r10]
    sub eax, ecx
    ret
24:
    xor r8d, r8d
    lea r9, [rdx-10h]
    jmp 26
25:
    lea r9, [r8+10h]
26:
    pmovmskb eax, xmm0
    sub eax, 0FFFFh
    jne 37
    pmovmskb eax, xmm1
    mov r8, r9
    sub eax, 0FFFFh
    jmp 37
27:
    mov rdi, r9
    add rsi, r9
    mov r8d, 60h
    jmp 36
28:
    mov rdi, r9
    add rsi, r9
    mov r8d, 40h
    vpmovmskb eax, ymm2
    inc eax
    jne 36
    vpmovmskb eax, ymm3
    mov r8d, 60h
    inc eax
    jmp 36
29:
    xor r8d, r8d
    vpmovmskb eax, ymm0
    inc eax
    jne 36
    vpmovmskb eax, ymm1
    lea r8, [rdx-20h]
    inc eax
    jmp 36
30:
    lea rdi, [rdi+rdx-80h]
    lea rsi, [rsi+rdx-80h]
31:
    mov r9d, 40h
    jmp 35
32:
    lea r9, [rdx-40h]
    jmp 35
33:
    mov rdi, r9
34:
    add rsi, rdi
    mov r9d, 40h
35:
    xor r8d, r8d
    vpmovmskb eax, ymm0
    inc eax
    jne 36
    vpmovmskb eax, ymm1
    mov r8d, 20h
    inc eax
    jne 36
    vpmovmskb eax, ymm2
    mov r8, r9
    inc eax
    jne 36
    vpmovmskb eax, ymm3
    lea r8, [r9+20h]
    inc eax
36:
    vzeroupper
37:
    tzcnt ecx, eax
    add r8, rcx
    movzx eax, byte ptr [rdi+r8]
    movzx ecx, byte ptr [rsi+r8]
    sub eax, ecx
    ret
