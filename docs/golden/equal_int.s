    cmp rdx, 20h
    ja 3
    lea eax, [rdi+1Fh]
    lea ecx, [rsi+1Fh]
    xor eax, edi
    xor ecx, esi
    or eax, ecx
    test edx, edx
    je 2
    test [rip+data], eax
    jne 11
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    vpmovmskb eax, ymm0
    inc eax
    bzhi eax, eax, edx
    jne 1
    inc eax
    vzeroupper
    ret
1:
    xor eax, eax
    vzeroupper
    ret
2:
    mov eax, 1h
    ret
3:
    cmp rdx, [rip+data]
    ja 15
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
    jne 21
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
    jne 21
    inc eax
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
    jne 21
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
    jne 21
    inc eax
    vzeroupper
    ret
6:
    vpand ymm4, ymm2, ymm3
    vpmovmskb eax, ymm4
    inc eax
    jne 21
    inc eax
    vzeroupper
    ret
7:
    vmovdqu ymm3, [r9+rsi+60h]
    vpcmpeqb ymm3, ymm3, [r9+60h]
    vpmovmskb eax, ymm3
    inc eax
    jne 21
    inc eax
    vzeroupper
    ret
8:
    vmovdqu ymm1, [rdi+rdx-20h]
    vpcmpeqb ymm1, ymm1, [rsi+rdx-20h]
    vpand ymm4, ymm0, ymm1
    vpmovmskb eax, ymm4
    inc eax
    jne 21
    inc eax
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
    jne 21
    inc eax
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
    jne 22
    xor eax, eax
    inc eax
    ret
11:
    mov ecx, [rip+data]
    cmp ecx, 0FFFFFFFFh
    je 18
    and ecx, eax
    cmp ecx, 1h
    je 10
    cmp edx, 10h
    jae 14
    cmp edx, 4h
    jae 13
    cmp edx, 1h
    je 12
    movzx ecx, word ptr [rdi]
    movzx r8d, byte ptr [rdi+rdx-1h]
    xor cx, [rsi]
    xor r8b, [rsi+rdx-1h]
    xor eax, eax
    or ecx, r8d
    sete al
    ret
12:
    movzx ecx, byte ptr [rdi]
    xor eax, eax
    cmp cl, [rsi]
    sete al
    ret
13:
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
    inc eax
    ret
14:
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
    inc eax
    ret
15:
    cmp rdx, 80h
    ja 18
    cmp byte ptr [rip+data], 0h
    je 18
    xor r8d, r8d
    lea r9, [rdx-20h]
16:
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
    jne 22
    cmp r8, r9
    jae 17
    add r8, 20h
    cmp r8, r9
    cmovae r8, r9
    jmp 16
17:
    inc eax
    ret
18:
    cmp rdx, 1000h
    jae 20
    mov rcx, rdx
    shr rcx, 5h
19:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
20:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 19
21:
    vzeroupper
22:
    xor eax, eax
    ret
