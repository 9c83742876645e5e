1:
    cmp rdx, 200h
    jbe 3
    xor eax, eax
    mov r8, rdi
    and r8, 1Fh
    je 6
    vmovdqu ymm0, [rdi]
    vpxor ymm0, ymm0, [rsi]
    vptest ymm0, ymm0
    je 7
2:
    vzeroupper
    ret
3:
    mov eax, 80h
    nop dword ptr [rax]
4:
    vmovdqu ymm0, [rdi+rax-80h]
    vmovdqu ymm1, [rdi+rax-60h]
    vmovdqu ymm2, [rdi+rax-20h]
    vpcmpeqb ymm2, ymm2, [rsi+rax-20h]
    vmovdqu ymm3, [rdi+rax-40h]
    vpcmpeqb ymm3, ymm3, [rsi+rax-40h]
    vpand ymm2, ymm3, ymm2
    vpcmpeqb ymm1, ymm1, [rsi+rax-60h]
    vpcmpeqb ymm0, ymm0, [rsi+rax-80h]
    vpand ymm0, ymm0, ymm1
    vpand ymm0, ymm0, ymm2
    vpmovmskb ecx, ymm0
    cmp ecx, 0FFFFFFFFh
    jne 5
    sub rax, 0FFFFFFFFFFFFFF80h
    cmp rdx, rax
    ja 4
    add rdx, 0FFFFFFFFFFFFFF80h
    jmp 9
5:
    xor eax, eax
    vzeroupper
    ret
6:
    xor ecx, ecx
    add rdx, 0FFFFFFFFFFFFFF80h
    jmp 8
7:
    mov ecx, 20h
    sub rcx, r8
    add rdx, 0FFFFFFFFFFFFFF80h
    nop
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
    vpmovmskb r8d, ymm0
    cmp r8d, 0FFFFFFFFh
    jne 2
    sub rcx, 0FFFFFFFFFFFFFF80h
    cmp rcx, rdx
    jb 8
9:
    vmovdqu ymm0, [rdi+rdx]
    vmovdqu ymm1, [rdi+rdx+40h]
    vmovdqu ymm2, [rdi+rdx+60h]
    vpcmpeqb ymm2, ymm2, [rsi+rdx+60h]
    vpcmpeqb ymm1, ymm1, [rsi+rdx+40h]
    vmovdqu ymm3, [rdi+rdx+20h]
    vpand ymm1, ymm1, ymm2
    vpcmpeqb ymm2, ymm3, [rsi+rdx+20h]
    vpcmpeqb ymm0, ymm0, [rsi+rdx]
    vpand ymm0, ymm0, ymm2
    vpand ymm0, ymm0, ymm1
    vpmovmskb ecx, ymm0
    xor eax, eax
    cmp ecx, 0FFFFFFFFh
    sete al
    vzeroupper
    ret
    cmp rdx, 81h
    jae 10
    cmp rdx, 21h
    jae 12
    cmp rdx, 0Fh
    jbe 13
    movdqu xmm0, [rdi]
    movdqu xmm1, [rsi]
    pcmpeqb xmm1, xmm0
    movdqu xmm0, [rdi+rdx-10h]
    movdqu xmm2, [rsi+rdx-10h]
    pcmpeqb xmm2, xmm0
    pand xmm2, xmm1
    pmovmskb eax, xmm2
    cmp eax, 0FFFFh
    sete al
    movzx eax, al
    ret
10:
    mov rax, [rip+data]
    mov rax, [rax+68h]
    cmp rdx, rax
    jbe 1
    cmp rdx, 1000h
    jae 18
    mov rax, rdx
    shr rax, 5h
11:
    mov rcx, [rip+data]
    movzx eax, byte ptr [rcx+rax+1BA0h]
    movzx eax, al
    mov rcx, [rip+data]
    jmp qword ptr [rcx+rax*8]
12:
    cmp rdx, 41h
    jae 14
    movdqu xmm0, [rdi]
    movdqu xmm1, [rdi+10h]
    movdqu xmm2, [rsi]
    pcmpeqb xmm2, xmm0
    movdqu xmm0, [rsi+10h]
    pcmpeqb xmm0, xmm1
    pand xmm0, xmm2
    movdqu xmm1, [rdi+rdx-20h]
    movdqu xmm2, [rdi+rdx-10h]
    movdqu xmm3, [rsi+rdx-20h]
    pcmpeqb xmm3, xmm1
    movdqu xmm1, [rsi+rdx-10h]
    pcmpeqb xmm1, xmm2
    pand xmm1, xmm3
    pand xmm1, xmm0
    pmovmskb eax, xmm1
    cmp eax, 0FFFFh
    sete al
    movzx eax, al
    ret
13:
    cmp rdx, 7h
    jbe 15
    mov rax, [rdi]
    mov rcx, [rdi+rdx-8h]
    xor rax, [rsi]
    xor rcx, [rsi+rdx-8h]
    or rcx, rax
    sete al
    movzx eax, al
    ret
14:
    movdqu xmm0, [rdi]
    movdqu xmm1, [rdi+10h]
    movdqu xmm2, [rdi+20h]
    movdqu xmm3, [rdi+30h]
    movdqu xmm4, [rsi]
    pcmpeqb xmm4, xmm0
    movdqu xmm0, [rsi+10h]
    pcmpeqb xmm0, xmm1
    pand xmm0, xmm4
    movdqu xmm1, [rsi+20h]
    pcmpeqb xmm1, xmm2
    movdqu xmm2, [rsi+30h]
    pcmpeqb xmm2, xmm3
    pand xmm2, xmm1
    pand xmm2, xmm0
    movdqu xmm0, [rdi+rdx-40h]
    movdqu xmm1, [rdi+rdx-30h]
    movdqu xmm3, [rdi+rdx-20h]
    movdqu xmm4, [rdi+rdx-10h]
    movdqu xmm5, [rsi+rdx-40h]
    pcmpeqb xmm5, xmm0
    movdqu xmm0, [rsi+rdx-30h]
    pcmpeqb xmm0, xmm1
    pand xmm0, xmm5
    movdqu xmm1, [rsi+rdx-20h]
    pcmpeqb xmm1, xmm3
    movdqu xmm3, [rsi+rdx-10h]
    pcmpeqb xmm3, xmm4
    pand xmm3, xmm1
    pand xmm3, xmm0
    pand xmm3, xmm2
    pmovmskb eax, xmm3
    cmp eax, 0FFFFh
    sete al
    movzx eax, al
    ret
15:
    cmp rdx, 3h
    jbe 16
    mov eax, [rdi]
    mov ecx, [rdi+rdx-4h]
    xor eax, [rsi]
    xor ecx, [rsi+rdx-4h]
    or ecx, eax
    sete al
    movzx eax, al
    ret
16:
    test rdx, rdx
    je 17
    movzx eax, byte ptr [rdi]
    movzx ecx, byte ptr [rsi]
    mov r8, rdx
    shr r8, 1h
    movzx r9d, byte ptr [rdi+r8]
    movzx r8d, byte ptr [rsi+r8]
    shl r8d, 8h
    movzx edi, byte ptr [rdi+rdx-1h]
    movzx edx, byte ptr [rsi+rdx-1h]
    shl eax, 10h
    shl r9d, 8h
    or r9d, eax
    or r9d, edi
    shl ecx, 10h
    or ecx, r8d
    or ecx, edx
    cmp r9d, ecx
    sete al
    movzx eax, al
    ret
17:
    mov al, 1h
    movzx eax, al
    ret
18:
    bsr r8, rdx
    xor r8, 3Fh
    mov cl, 3Ch
    sub cl, r8b
    mov rax, rdx
    shr rax, cl
    shl r8d, 3h
    sub rax, r8
    add rax, 210h
    jmp 11
