    cmp rdx, 20h
    ja 7
    lea eax, [rdi+1Fh]
    lea ecx, [rsi+1Fh]
    xor eax, edi
    xor ecx, esi
    or eax, ecx
    test edx, edx
    je 1
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
1:
    xor eax, eax
    ret
2:
    cmp dword ptr [rip+data], 0FFFFFFFFh
    je 17
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
    jne 20
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
    jne 22
    ret
7:
    cmp rdx, [rip+data]
    ja 14
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    cmp rdx, 40h
    jbe 12
    vmovdqu ymm1, [rdi+20h]
    vpcmpeqb ymm1, ymm1, [rsi+20h]
    cmp rdx, 80h
    jbe 13
    vmovdqu ymm2, [rdi+40h]
    vpcmpeqb ymm2, ymm2, [rsi+40h]
    vmovdqu ymm3, [rdi+60h]
    vpcmpeqb ymm3, ymm3, [rsi+60h]
    vpand ymm4, ymm0, ymm1
    vpand ymm5, ymm2, ymm3
    vpand ymm4, ymm4, ymm5
    vpmovmskb eax, ymm4
    inc eax
    jne 29
    cmp rdx, 100h
    ja 8
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
    jne 28
    vzeroupper
    ret
8:
    lea r9, [rdi+rdx-80h]
    sub rsi, rdi
    and rdi, 0FFFFFFFFFFFFFFE0h
    sub rdi, 0FFFFFFFFFFFFFF80h
    nop word ptr cs:[rax+rax]
    nop word ptr [rax+rax]
9:
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
    jne 32
    sub rdi, 0FFFFFFFFFFFFFF80h
    cmp rdi, r9
    jb 9
    sub rdi, r9
    cmp edi, 60h
    jae 11
    vmovdqu ymm2, [r9+rsi+40h]
    vpcmpeqb ymm2, ymm2, [r9+40h]
    vmovdqu ymm3, [r9+rsi+60h]
    vpcmpeqb ymm3, ymm3, [r9+60h]
    cmp edi, 40h
    jae 10
    vmovdqu ymm0, [r9+rsi]
    vpcmpeqb ymm0, ymm0, [r9]
    vmovdqu ymm1, [r9+rsi+20h]
    vpcmpeqb ymm1, ymm1, [r9+20h]
    vpand ymm4, ymm0, ymm1
    vpand ymm5, ymm2, ymm3
    vpand ymm4, ymm4, ymm5
    vpmovmskb eax, ymm4
    inc eax
    jne 31
    vzeroupper
    ret
10:
    vpand ymm4, ymm2, ymm3
    vpmovmskb eax, ymm4
    inc eax
    jne 26
    vzeroupper
    ret
11:
    vmovdqu ymm3, [r9+rsi+60h]
    vpcmpeqb ymm3, ymm3, [r9+60h]
    vpmovmskb eax, ymm3
    inc eax
    jne 25
    vzeroupper
    ret
12:
    vmovdqu ymm1, [rdi+rdx-20h]
    vpcmpeqb ymm1, ymm1, [rsi+rdx-20h]
    vpand ymm4, ymm0, ymm1
    vpmovmskb eax, ymm4
    inc eax
    jne 27
    vzeroupper
    ret
13:
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
14:
    cmp rdx, 80h
    ja 17
    cmp byte ptr [rip+data], 0h
    je 17
    xor r8d, r8d
    lea r9, [rdx-20h]
15:
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
    jne 23
    cmp r8, r9
    jae 16
    add r8, 20h
    cmp r8, r9
    cmovae r8, r9
    jmp 15
16:
    ret
17:
    cmp rdx, 1000h
    jae 19
    mov rcx, rdx
    shr rcx, 5h
18:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
19:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 18
20:
    xor r10d, r10d
    test eax, eax
    jne 21
    mov r10, rcx
    mov eax, [rdi+rcx]
    xor eax, [rsi+rcx]
    jne 21
    lea r10, [r8-4h]
    mov eax, [rdi+r10]
    xor eax, [rsi+r10]
    jne 21
    lea r10, [rdx-4h]
    mov eax, [rdi+r10]
    xor eax, [rsi+r10]
21:
    tzcnt eax, eax
    shr eax, 3h
    add r10, rax
    movzx eax, byte ptr [rdi+r10]
    movzx ecx, byte ptr [rsi+r10]
    sub eax, ecx
    ret
22:
    xor r8d, r8d
    lea r9, [rdx-10h]
    jmp 24
23:
    lea r9, [r8+10h]
24:
    pmovmskb eax, xmm0
    sub eax, 0FFFFh
    jne 35
    pmovmskb eax, xmm1
    mov r8, r9
    sub eax, 0FFFFh
    jmp 35
25:
    mov rdi, r9
    add rsi, r9
    mov r8d, 60h
    jmp 34
26:
    mov rdi, r9
    add rsi, r9
    mov r8d, 40h
    vpmovmskb eax, ymm2
    inc eax
    jne 34
    vpmovmskb eax, ymm3
    mov r8d, 60h
    inc eax
    jmp 34
27:
    xor r8d, r8d
    vpmovmskb eax, ymm0
    inc eax
    jne 34
    vpmovmskb eax, ymm1
    lea r8, [rdx-20h]
    inc eax
    jmp 34
28:
    lea rdi, [rdi+rdx-80h]
    lea rsi, [rsi+rdx-80h]
29:
    mov r9d, 40h
    jmp 33
30:
    lea r9, [rdx-40h]
    jmp 33
31:
    mov rdi, r9
32:
    add rsi, rdi
    mov r9d, 40h
33:
    xor r8d, r8d
    vpmovmskb eax, ymm0
    inc eax
    jne 34
    vpmovmskb eax, ymm1
    mov r8d, 20h
    inc eax
    jne 34
    vpmovmskb eax, ymm2
    mov r8, r9
    inc eax
    jne 34
    vpmovmskb eax, ymm3
    lea r8, [r9+20h]
    inc eax
34:
    vzeroupper
35:
    tzcnt ecx, eax
    add r8, rcx
    movzx eax, byte ptr [rdi+r8]
    movzx ecx, byte ptr [rsi+r8]
    sub eax, ecx
    ret
