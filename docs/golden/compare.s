1:
    cmp rdx, 200h
    jbe 2
    mov rax, rdi
    and rax, 1Fh
    je 5
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    vpmovmskb ecx, ymm0
    xor ecx, 0FFFFFFFFh
    je 6
    tzcnt ecx, ecx
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    vzeroupper
    ret
2:
    mov ecx, 80h
    nop word ptr cs:[rax+rax]
3:
    vmovdqu ymm0, [rdi+rcx-80h]
    vmovdqu ymm1, [rdi+rcx-60h]
    vmovdqu ymm2, [rdi+rcx-20h]
    vpcmpeqb ymm2, ymm2, [rsi+rcx-20h]
    vmovdqu ymm3, [rdi+rcx-40h]
    vpcmpeqb ymm3, ymm3, [rsi+rcx-40h]
    vpand ymm2, ymm3, ymm2
    vpcmpeqb ymm1, ymm1, [rsi+rcx-60h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx-80h]
    vpand ymm0, ymm0, ymm1
    vpand ymm0, ymm0, ymm2
    vpmovmskb eax, ymm0
    cmp eax, 0FFFFFFFFh
    jne 4
    sub rcx, 0FFFFFFFFFFFFFF80h
    cmp rdx, rcx
    ja 3
    vmovdqu ymm0, [rdi+rdx-80h]
    vmovdqu ymm1, [rdi+rdx-60h]
    vmovdqu ymm2, [rdi+rdx-20h]
    vpcmpeqb ymm2, ymm2, [rsi+rdx-20h]
    vmovdqu ymm3, [rdi+rdx-40h]
    vpcmpeqb ymm3, ymm3, [rsi+rdx-40h]
    vpand ymm2, ymm3, ymm2
    vpcmpeqb ymm1, ymm1, [rsi+rdx-60h]
    vpcmpeqb ymm0, ymm0, [rsi+rdx-80h]
    vpand ymm0, ymm0, ymm1
    vpand ymm0, ymm0, ymm2
    vpmovmskb eax, ymm0
    cmp eax, 0FFFFFFFFh
    je 10
    lea rax, [rdi+rdx]
    add rax, 0FFFFFFFFFFFFFF80h
    lea rcx, [rsi+rdx-80h]
    vmovdqu ymm0, [rax]
    vpcmpeqb ymm0, ymm0, [rcx]
    vpmovmskb edx, ymm0
    xor edx, 0FFFFFFFFh
    je 15
    xor esi, esi
    jmp 16
4:
    vmovdqu ymm0, [rdi+rcx-80h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx-80h]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    je 11
    xor edx, edx
    jmp 12
5:
    xor ecx, ecx
    jmp 7
6:
    mov ecx, 20h
    sub rcx, rax
7:
    add rdx, 0FFFFFFFFFFFFFF80h
8:
    vmovdqu ymm0, [rdi+rcx]
    vmovdqu ymm1, [rdi+rcx+20h]
    vmovdqu ymm2, [rdi+rcx+60h]
    vpcmpeqb ymm2, ymm2, [rsi+rcx+60h]
    vmovdqu ymm3, [rdi+rcx+40h]
    vpcmpeqb ymm3, ymm3, [rsi+rcx+40h]
    vpand ymm2, ymm3, ymm2
    vpcmpeqb ymm1, ymm1, [rsi+rcx+20h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx]
    vpand ymm0, ymm0, ymm1
    vpand ymm0, ymm0, ymm2
    vpmovmskb eax, ymm0
    cmp eax, 0FFFFFFFFh
    jne 9
    sub rcx, 0FFFFFFFFFFFFFF80h
    cmp rcx, rdx
    jb 8
    vmovdqu ymm0, [rdi+rdx]
    vmovdqu ymm1, [rdi+rdx+20h]
    vmovdqu ymm2, [rdi+rdx+60h]
    vpcmpeqb ymm2, ymm2, [rsi+rdx+60h]
    vmovdqu ymm3, [rdi+rdx+40h]
    vpcmpeqb ymm3, ymm3, [rsi+rdx+40h]
    vpand ymm2, ymm3, ymm2
    vpcmpeqb ymm1, ymm1, [rsi+rdx+20h]
    vpcmpeqb ymm0, ymm0, [rsi+rdx]
    vpand ymm0, ymm0, ymm1
    vpand ymm0, ymm0, ymm2
    vpmovmskb eax, ymm0
    cmp eax, 0FFFFFFFFh
    je 10
    add rdi, rdx
    add rsi, rdx
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    je 17
    xor ecx, ecx
    jmp 18
9:
    vmovdqu ymm0, [rdi+rcx]
    vpcmpeqb ymm0, ymm0, [rsi+rcx]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    je 13
    xor edx, edx
    jmp 14
10:
    xor eax, eax
    vzeroupper
    ret
11:
    vmovdqu ymm0, [rdi+rcx-60h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx-60h]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    mov edx, 20h
    jne 12
    vmovdqu ymm0, [rdi+rcx-40h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx-40h]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    mov edx, 40h
    jne 12
    vmovdqu ymm0, [rdi+rcx-20h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx-20h]
    vpmovmskb eax, ymm0
    not eax
    mov edx, 60h
12:
    mov eax, eax
    mov r8d, 40h
    tzcnt r8, rax
    add r8, rdx
    add rdi, r8
    movzx eax, byte ptr [rcx+rdi-80h]
    add rsi, r8
    movzx ecx, byte ptr [rcx+rsi-80h]
    sub eax, ecx
    vzeroupper
    ret
13:
    vmovdqu ymm0, [rdi+rcx+20h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx+20h]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    mov edx, 20h
    jne 14
    vmovdqu ymm0, [rdi+rcx+40h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx+40h]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    mov edx, 40h
    jne 14
    vmovdqu ymm0, [rdi+rcx+60h]
    vpcmpeqb ymm0, ymm0, [rsi+rcx+60h]
    vpmovmskb eax, ymm0
    not eax
    mov edx, 60h
14:
    mov eax, eax
    mov r8d, 40h
    tzcnt r8, rax
    add r8, rdx
    add rdi, r8
    movzx eax, byte ptr [rcx+rdi]
    add rsi, r8
    movzx ecx, byte ptr [rcx+rsi]
    sub eax, ecx
    vzeroupper
    ret
15:
    vmovdqu ymm0, [rax+20h]
    vpcmpeqb ymm0, ymm0, [rcx+20h]
    vpmovmskb edx, ymm0
    xor edx, 0FFFFFFFFh
    mov esi, 20h
    jne 16
    vmovdqu ymm0, [rax+40h]
    vpcmpeqb ymm0, ymm0, [rcx+40h]
    vpmovmskb edx, ymm0
    xor edx, 0FFFFFFFFh
    mov esi, 40h
    jne 16
    vmovdqu ymm0, [rax+60h]
    vpcmpeqb ymm0, ymm0, [rcx+60h]
    vpmovmskb edx, ymm0
    not edx
    mov esi, 60h
16:
    add rax, rsi
    add rcx, rsi
    mov edx, edx
    mov esi, 40h
    tzcnt rsi, rdx
    movzx eax, byte ptr [rsi+rax]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    vzeroupper
    ret
17:
    vmovdqu ymm0, [rdi+20h]
    vpcmpeqb ymm0, ymm0, [rsi+20h]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    mov ecx, 20h
    jne 18
    vmovdqu ymm0, [rdi+40h]
    vpcmpeqb ymm0, ymm0, [rsi+40h]
    vpmovmskb eax, ymm0
    xor eax, 0FFFFFFFFh
    mov ecx, 40h
    jne 18
    vmovdqu ymm0, [rdi+60h]
    vpcmpeqb ymm0, ymm0, [rsi+60h]
    vpmovmskb eax, ymm0
    not eax
    mov ecx, 60h
18:
    add rdi, rcx
    add rsi, rcx
    mov eax, eax
    mov ecx, 40h
    tzcnt rcx, rax
    movzx eax, byte ptr [rcx+rdi]
    movzx ecx, byte ptr [rcx+rsi]
    sub eax, ecx
    vzeroupper
    ret
    cmp rdx, 81h
    jae 19
    cmp rdx, 21h
    jae 21
    cmp rdx, 0Fh
    jbe 23
    movdqu xmm0, [rdi]
    movdqu xmm1, [rsi]
    pcmpeqb xmm1, xmm0
    movdqu xmm2, [rdi+rdx-10h]
    movdqu xmm0, [rsi+rdx-10h]
    pcmpeqb xmm0, xmm2
    movdqa xmm2, xmm1
    pand xmm2, xmm0
    pmovmskb eax, xmm2
    cmp eax, 0FFFFh
    je 32
    pmovmskb eax, xmm1
    cmp eax, 0FFFFh
    je 29
    not eax
    jmp 22
19:
    mov rax, [rip+data]
    mov rax, [rax+60h]
    cmp rdx, rax
    jbe 1
    cmp rdx, 1000h
    jae 35
    mov rax, rdx
    shr rax, 5h
20:
    mov rcx, [rip+data]
    movzx eax, byte ptr [rcx+rax+1980h]
    movzx eax, al
    mov rcx, [rip+data]
    jmp qword ptr [rcx+rax*8]
21:
    cmp rdx, 41h
    jae 25
    movdqu xmm0, [rdi]
    movdqu xmm1, [rdi+10h]
    movdqu xmm2, [rsi]
    pcmpeqb xmm2, xmm0
    movdqu xmm3, [rsi+10h]
    pcmpeqb xmm3, xmm1
    movdqu xmm1, [rdi+rdx-20h]
    movdqu xmm4, [rdi+rdx-10h]
    movdqu xmm0, [rsi+rdx-20h]
    pcmpeqb xmm0, xmm1
    movdqu xmm1, [rsi+rdx-10h]
    pcmpeqb xmm1, xmm4
    movdqa xmm4, xmm2
    pand xmm4, xmm1
    movdqa xmm5, xmm0
    pand xmm5, xmm3
    pand xmm5, xmm4
    pmovmskb eax, xmm5
    cmp eax, 0FFFFh
    je 32
    pmovmskb ecx, xmm2
    xor ecx, 0FFFFh
    pmovmskb eax, xmm3
    not eax
    shl eax, 10h
    or eax, ecx
    je 33
22:
    tzcnt ecx, eax
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
23:
    cmp rdx, 7h
    jbe 27
    mov rax, [rdi]
    mov rcx, [rsi]
    cmp rax, rcx
    jne 24
    mov rax, [rdi+rdx-8h]
    mov rcx, [rsi+rdx-8h]
24:
    bswap rax
    bswap rcx
    cmp rax, rcx
    seta al
    sbb al, 0h
    movsx eax, al
    ret
25:
    movdqu xmm0, [rdi]
    movdqu xmm1, [rdi+10h]
    movdqu xmm4, [rdi+20h]
    movdqu xmm5, [rdi+30h]
    movdqu xmm2, [rsi]
    pcmpeqb xmm2, xmm0
    movdqu xmm3, [rsi+10h]
    pcmpeqb xmm3, xmm1
    movdqu xmm0, [rsi+20h]
    pcmpeqb xmm0, xmm4
    movdqu xmm1, [rsi+30h]
    pcmpeqb xmm1, xmm5
    movdqa xmm4, xmm2
    pand xmm4, xmm3
    movdqa xmm5, xmm0
    pand xmm5, xmm1
    pand xmm5, xmm4
    pmovmskb eax, xmm5
    cmp eax, 0FFFFh
    je 31
    pmovmskb ecx, xmm2
    xor ecx, 0FFFFh
    pmovmskb eax, xmm3
    not eax
    shl eax, 10h
    or eax, ecx
    je 30
    tzcnt ecx, eax
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    je 31
26:
    ret
27:
    cmp rdx, 3h
    jbe 28
    mov eax, [rdi]
    mov ecx, [rsi]
    mov esi, [rsi+rdx-4h]
    shl rsi, 20h
    or rsi, rcx
    mov ecx, [rdi+rdx-4h]
    shl rcx, 20h
    or rcx, rax
    bswap rcx
    bswap rsi
    cmp rcx, rsi
    seta al
    sbb al, 0h
    movsx eax, al
    ret
28:
    test rdx, rdx
    je 32
    movzx ecx, byte ptr [rdi]
    movzx r8d, byte ptr [rsi]
    mov r9, rdx
    shr r9, 1h
    movzx eax, byte ptr [rdi+r9]
    movzx r9d, byte ptr [rsi+r9]
    shl r9d, 8h
    movzx edi, byte ptr [rdi+rdx-1h]
    movzx edx, byte ptr [rsi+rdx-1h]
    shl ecx, 10h
    shl eax, 8h
    or eax, ecx
    or eax, edi
    shl r8d, 10h
    or r8d, r9d
    or r8d, edx
    sub eax, r8d
    ret
29:
    add rdx, 0FFFFFFFFFFFFFFF0h
    pmovmskb eax, xmm0
    xor eax, 0FFFFh
    mov ecx, 40h
    tzcnt rcx, rax
    jmp 34
30:
    pmovmskb eax, xmm0
    xor eax, 0FFFFh
    pmovmskb r8d, xmm1
    not r8d
    shl r8d, 10h
    or r8d, eax
    mov ecx, 40h
    tzcnt rcx, r8
    add rcx, 20h
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    jne 26
31:
    movdqu xmm0, [rdi+rdx-40h]
    movdqu xmm1, [rdi+rdx-30h]
    movdqu xmm4, [rdi+rdx-20h]
    movdqu xmm5, [rdi+rdx-10h]
    movdqu xmm2, [rsi+rdx-40h]
    pcmpeqb xmm2, xmm0
    movdqu xmm3, [rsi+rdx-30h]
    pcmpeqb xmm3, xmm1
    movdqu xmm0, [rsi+rdx-20h]
    pcmpeqb xmm0, xmm4
    movdqu xmm1, [rsi+rdx-10h]
    pcmpeqb xmm1, xmm5
    movdqa xmm4, xmm3
    pand xmm4, xmm1
    movdqa xmm5, xmm0
    pand xmm5, xmm2
    pand xmm5, xmm4
    pmovmskb eax, xmm5
    cmp eax, 0FFFFh
    je 32
    pmovmskb ecx, xmm2
    xor ecx, 0FFFFh
    pmovmskb eax, xmm3
    not eax
    shl eax, 10h
    or eax, ecx
    je 33
    add rdx, 0FFFFFFFFFFFFFFC0h
    tzcnt ecx, eax
    jmp 34
32:
    xor eax, eax
    ret
33:
    add rdx, 0FFFFFFFFFFFFFFE0h
    pmovmskb eax, xmm0
    xor eax, 0FFFFh
    pmovmskb r8d, xmm1
    not r8d
    shl r8d, 10h
    or r8d, eax
    mov ecx, 40h
    tzcnt rcx, r8
34:
    add rcx, rdx
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
35:
    bsr r8, rdx
    xor r8, 3Fh
    mov cl, 3Ch
    sub cl, r8b
    mov rax, rdx
    shr rax, cl
    shl r8d, 3h
    sub rax, r8
    add rax, 210h
    jmp 20
