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
avx512vl:
    mov ecx, 0FFFFFFFFh
    cmp rdx, 21h
    jae 4
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    vmovdqu8 ymm20{k1}{z}, [rdi]
    vpcmpneqb k2{k1}, ymm20, [rsi]
    kmovd eax, k2
    test eax, eax
    jne 3
    ret
3:
    tzcnt ecx, eax
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
4:
    test rdx, rdx
    js elsewhere
    vmovdqu64 ymm20, [rdi]
    vpcmpneqb k1, ymm20, [rsi]
    kmovd eax, k1
    test eax, eax
    jne 3
    cmp rdx, 40h
    jbe 5
    cmp rdx, 100h
    ja 7
    cmp rdx, 80h
    jbe 6
    vmovdqu64 ymm20, [rdi+20h]
    vpxorq ymm20, ymm20, [rsi+20h]
    vmovdqu64 zmm21, [rdi+40h]
    vpxorq zmm21, zmm21, [rsi+40h]
    vmovdqu64 zmm22, [rdi+rdx-80h]
    vpternlogq zmm22, zmm20, [rsi+rdx-80h], 0DEh
    vmovdqu64 zmm23, [rdi+rdx-40h]
    vpternlogq zmm23, zmm21, [rsi+rdx-40h], 0DEh
    vporq zmm24, zmm22, zmm23
    vptestmb k1, zmm24, zmm24
    kortestq k1, k1
    lea r9, [rdx-80h]
    jne 18
    xor eax, eax
    ret
5:
    vmovdqu64 ymm21, [rdi+rdx-20h]
    vpcmpneqb k1, ymm21, [rsi+rdx-20h]
    kmovd eax, k1
    test eax, eax
    jne 16
    ret
6:
    vmovdqu64 ymm20, [rdi+20h]
    vpxorq ymm20, ymm20, [rsi+20h]
    vmovdqu64 zmm21, [rdi+rdx-40h]
    vpxorq zmm21, zmm21, [rsi+rdx-40h]
    vporq zmm22, zmm20, zmm21
    vptestmb k1, zmm22, zmm22
    kortestq k1, k1
    jne 17
    xor eax, eax
    ret
7:
    cmp rdx, [rip+data]
    ja 27
    cmp rdx, 200h
    jbe 11
    cmp byte ptr [rip+data], 0h
    je 11
    vmovdqu64 ymm20, [rdi+20h]
    vpxorq ymm20, ymm20, [rsi+20h]
    vmovdqu64 zmm21, [rdi+40h]
    vpxorq zmm21, zmm21, [rsi+40h]
    vporq zmm22, zmm20, zmm21
    vptestmb k1, zmm22, zmm22
    kortestq k1, k1
    jne 18
    lea rcx, [rdi+rdx-80h]
    sub rsi, rdi
    and rdi, 0FFFFFFFFFFFFFFE0h
    sub rdi, 0FFFFFFFFFFFFFF80h
    nop word ptr cs:[rax+rax]
    nop word ptr cs:[rax+rax]
    nop
8:
    vmovdqu64 ymm20, [rdi+rsi]
    vpxorq ymm20, ymm20, [rdi]
    vmovdqu64 ymm21, [rdi+rsi+20h]
    vpxorq ymm21, ymm21, [rdi+20h]
    vmovdqu64 ymm22, [rdi+rsi+40h]
    vpternlogq ymm22, ymm20, [rdi+40h], 0DEh
    vmovdqu64 ymm23, [rdi+rsi+60h]
    vpternlogq ymm23, ymm21, [rdi+60h], 0DEh
    vporq ymm24, ymm22, ymm23
    vptestmb k1, ymm24, ymm24
    kortestd k1, k1
    jne 26
    sub rdi, 0FFFFFFFFFFFFFF80h
    cmp rdi, rcx
    jb 8
    sub rdi, rcx
    cmp edi, 60h
    jae 10
    cmp edi, 40h
    mov rdi, rcx
    jae 9
    vmovdqu64 ymm20, [rdi+rsi]
    vpxorq ymm20, ymm20, [rdi]
    vmovdqu64 ymm21, [rdi+rsi+20h]
    vpxorq ymm21, ymm21, [rdi+20h]
    vmovdqu64 ymm22, [rdi+rsi+40h]
    vpternlogq ymm22, ymm20, [rdi+40h], 0DEh
    vmovdqu64 ymm23, [rdi+rsi+60h]
    vpternlogq ymm23, ymm21, [rdi+60h], 0DEh
    vporq ymm24, ymm22, ymm23
    vptestmb k1, ymm24, ymm24
    kortestd k1, k1
    jne 26
    xor eax, eax
    ret
9:
    add rdi, 40h
    vmovdqu64 ymm20, [rdi+rsi]
    vpxorq ymm20, ymm20, [rdi]
    vmovdqu64 ymm21, [rdi+rsi+20h]
    vpxorq ymm21, ymm21, [rdi+20h]
    vporq ymm24, ymm20, ymm21
    vptestmb k1, ymm24, ymm24
    kortestd k1, k1
    jne 26
    xor eax, eax
    ret
10:
    lea rdi, [rcx+60h]
    vmovdqu64 ymm20, [rdi+rsi]
    vpcmpneqb k1, ymm20, [rdi]
    kmovd eax, k1
    test eax, eax
    jne 25
    ret
11:
    vmovdqu64 ymm20, [rdi+20h]
    vpxorq ymm20, ymm20, [rsi+20h]
    vmovdqu64 zmm21, [rdi+40h]
    vpxorq zmm21, zmm21, [rsi+40h]
    vmovdqu64 zmm22, [rdi+80h]
    vpternlogq zmm22, zmm20, [rsi+80h], 0DEh
    vmovdqu64 zmm23, [rdi+0C0h]
    vpternlogq zmm23, zmm21, [rsi+0C0h], 0DEh
    vporq zmm24, zmm22, zmm23
    vptestmb k1, zmm24, zmm24
    kortestq k1, k1
    mov r9d, 80h
    jne 18
    lea rcx, [rdi+rdx-100h]
    sub rsi, rdi
    add rdi, 100h
    cmp rdx, 200h
    jbe 13
    and rdi, 0FFFFFFFFFFFFFFC0h
    nop word ptr cs:[rax+rax]
12:
    vmovdqu64 zmm20, [rdi+rsi]
    vpxorq zmm20, zmm20, [rdi]
    vmovdqu64 zmm21, [rdi+rsi+40h]
    vpxorq zmm21, zmm21, [rdi+40h]
    vmovdqu64 zmm22, [rdi+rsi+80h]
    vpternlogq zmm22, zmm20, [rdi+80h], 0DEh
    vmovdqu64 zmm23, [rdi+rsi+0C0h]
    vpternlogq zmm23, zmm21, [rdi+0C0h], 0DEh
    vporq zmm24, zmm22, zmm23
    vptestmb k1, zmm24, zmm24
    kortestq k1, k1
    jne 21
    add rdi, 100h
    cmp rdi, rcx
    jb 12
13:
    sub rdi, rcx
    cmp edi, 80h
    jae 14
    mov r9d, 80h
    sub r9, rdi
    add rdi, rcx
    vmovdqu64 zmm20, [rdi+rsi]
    vpxorq zmm20, zmm20, [rdi]
    vmovdqu64 zmm21, [rdi+rsi+40h]
    vpxorq zmm21, zmm21, [rdi+40h]
    vmovdqu64 zmm22, [rcx+rsi+80h]
    vpternlogq zmm22, zmm20, [rcx+80h], 0DEh
    vmovdqu64 zmm23, [rcx+rsi+0C0h]
    vpternlogq zmm23, zmm21, [rcx+0C0h], 0DEh
    vporq zmm24, zmm22, zmm23
    vptestmb k1, zmm24, zmm24
    kortestq k1, k1
    jne 22
    xor eax, eax
    ret
14:
    cmp edi, 0C0h
    jae 15
    vmovdqu64 zmm20, [rcx+rsi+80h]
    vpxorq zmm20, zmm20, [rcx+80h]
    vmovdqu64 zmm21, [rcx+rsi+0C0h]
    vpxorq zmm21, zmm21, [rcx+0C0h]
    vporq zmm24, zmm20, zmm21
    vptestmb k1, zmm24, zmm24
    kortestq k1, k1
    jne 20
    xor eax, eax
    ret
15:
    vmovdqu64 zmm20, [rcx+0C0h]
    vpcmpneqb k1, zmm20, [rcx+rsi+0C0h]
    kmovq rax, k1
    test rax, rax
    jne 19
    ret
16:
    lea r8, [rdx-20h]
    jmp 24
17:
    vptestmb k1, zmm20, zmm20
    vptestmb k2, zmm21, zmm21
    mov r8d, 20h
    lea r9, [rdx-40h]
    kmovq rax, k1
    kmovq rcx, k2
    test rax, rax
    cmove rax, rcx
    cmove r8, r9
    jmp 24
18:
    vpxord xmm24, xmm24, xmm24
    valignq zmm20, zmm20, zmm24, 4h
    jmp 23
19:
    lea rdi, [rcx+0C0h]
    add rsi, rdi
    xor r8d, r8d
    jmp 24
20:
    lea rdi, [rcx+80h]
21:
    mov r9d, 80h
22:
    add rsi, rdi
23:
    vptestmb k1, zmm20, zmm20
    vptestmb k2, zmm21, zmm21
    vptestmb k3, zmm22, zmm22
    vptestmb k4, zmm23, zmm23
    lea r8, [r9+40h]
    kmovq rax, k4
    kmovq rcx, k3
    test rcx, rcx
    cmovne rax, rcx
    cmovne r8, r9
    kmovq rcx, k2
    mov r9d, 40h
    test rcx, rcx
    cmovne rax, rcx
    cmovne r8, r9
    xor r9d, r9d
    kmovq rcx, k1
    test rcx, rcx
    cmovne rax, rcx
    cmovne r8, r9
24:
    tzcnt rcx, rax
    add r8, rcx
    movzx eax, byte ptr [rdi+r8]
    movzx ecx, byte ptr [rsi+r8]
    sub eax, ecx
    ret
25:
    add rsi, rdi
    xor r8d, r8d
    jmp 24
26:
    add rsi, rdi
    vptestmb k1, ymm20, ymm20
    vptestmb k2, ymm21, ymm21
    vptestmb k3, ymm22, ymm22
    vptestmb k4, ymm23, ymm23
    kunpckdq k1, k2, k1
    kunpckdq k3, k4, k3
    mov r8d, 40h
    xor r9d, r9d
    kmovq rax, k3
    kmovq rcx, k1
    test rcx, rcx
    cmovne rax, rcx
    cmovne r8, r9
    jmp 24
27:
    cmp rdx, [rip+data]
    ja 28
    jmp qword ptr [rip+data]
28:
    cmp rdx, [rip+data]
    ja 29
    jmp qword ptr [rip+data]
29:
    cmp rdx, 1000h
    jae 31
    mov rcx, rdx
    shr rcx, 5h
30:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    test ecx, ecx
    je elsewhere
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
31:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 30
avx2:
    cmp rdx, 20h
    ja elsewhere
    test edx, edx
    je 2
    lea eax, [rdi+1Fh]
    lea ecx, [rsi+1Fh]
    xor eax, edi
    xor ecx, esi
    or eax, ecx
    test [rip+data], eax
    jne 4
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    vpmovmskb eax, ymm0
    inc eax
    bzhi eax, eax, edx
    jne 3
    vzeroupper
    ret
2:
    xor eax, eax
    ret
3:
    tzcnt ecx, eax
    vzeroupper
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
4:
    cmp edx, 10h
    jae 7
    cmp edx, 4h
    jae 6
    cmp edx, 1h
    je 5
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
5:
    xor ecx, ecx
    movzx eax, byte ptr [rdi+rcx]
    movzx ecx, byte ptr [rsi+rcx]
    sub eax, ecx
    ret
6:
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
    jne 8
    xor eax, eax
    ret
7:
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
    jne 11
    ret
8:
    xor r10d, r10d
    test eax, eax
    jne 9
    mov r10, rcx
    mov eax, [rdi+rcx]
    xor eax, [rsi+rcx]
    jne 9
    lea r10, [r8-4h]
    mov eax, [rdi+r10]
    xor eax, [rsi+r10]
    jne 9
    lea r10, [rdx-4h]
    mov eax, [rdi+r10]
    xor eax, [rsi+r10]
    je 10
9:
    tzcnt eax, eax
    shr eax, 3h
    add r10, rax
    movzx eax, byte ptr [rdi+r10]
    movzx ecx, byte ptr [rsi+r10]
    sub eax, ecx
10:
    ret
11:
    xor r8d, r8d
    lea r9, [rdx-10h]
    pmovmskb ecx, xmm1
    sub ecx, 0FFFFh
    pmovmskb eax, xmm0
    sub eax, 0FFFFh
    cmove eax, ecx
    cmove r8, r9
    jmp 12
12:
    tzcnt ecx, eax
    add r8, rcx
    movzx eax, byte ptr [rdi+r8]
    movzx ecx, byte ptr [rsi+r8]
    sub eax, ecx
    ret
