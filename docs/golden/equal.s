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
avx512vl:
    mov ecx, 0FFFFFFFFh
    cmp rdx, 21h
    jae 4
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    vmovdqu8 ymm20{k1}{z}, [rdi]
    vpcmpneqb k2{k1}, ymm20, [rsi]
    xor eax, eax
    kortestd k2, k2
    sete al
    ret
3:
    xor eax, eax
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
    jne 16
    xor eax, eax
    inc eax
    ret
5:
    vmovdqu64 ymm21, [rdi+rdx-20h]
    vpcmpneqb k1, ymm21, [rsi+rdx-20h]
    kmovd eax, k1
    test eax, eax
    jne 16
    inc eax
    ret
6:
    vmovdqu64 ymm20, [rdi+20h]
    vpxorq ymm20, ymm20, [rsi+20h]
    vmovdqu64 zmm21, [rdi+rdx-40h]
    vpxorq zmm21, zmm21, [rsi+rdx-40h]
    vporq zmm22, zmm20, zmm21
    vptestmb k1, zmm22, zmm22
    kortestq k1, k1
    jne 16
    xor eax, eax
    inc eax
    ret
7:
    cmp rdx, [rip+data]
    ja 17
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
    jne 16
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
    jne 16
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
    jne 16
    xor eax, eax
    inc eax
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
    jne 16
    xor eax, eax
    inc eax
    ret
10:
    lea rdi, [rcx+60h]
    vmovdqu64 ymm20, [rdi+rsi]
    vpcmpneqb k1, ymm20, [rdi]
    kmovd eax, k1
    test eax, eax
    jne 16
    inc eax
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
    jne 16
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
    jne 16
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
    jne 16
    xor eax, eax
    inc eax
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
    jne 16
    xor eax, eax
    inc eax
    ret
15:
    vmovdqu64 zmm20, [rcx+0C0h]
    vpcmpneqb k1, zmm20, [rcx+rsi+0C0h]
    kmovq rax, k1
    test rax, rax
    jne 16
    inc eax
    ret
16:
    xor eax, eax
    ret
17:
    cmp rdx, [rip+data]
    ja 18
    jmp qword ptr [rip+data]
18:
    cmp rdx, [rip+data]
    ja 19
    jmp qword ptr [rip+data]
19:
    cmp rdx, 1000h
    jae 21
    mov rcx, rdx
    shr rcx, 5h
20:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    test ecx, ecx
    je elsewhere
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
21:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 20
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
    jne 3
    vmovdqu ymm0, [rdi]
    vpcmpeqb ymm0, ymm0, [rsi]
    vpmovmskb eax, ymm0
    inc eax
    bzhi eax, eax, edx
    sete al
    movzx eax, al
    vzeroupper
    ret
2:
    mov eax, 1h
    ret
3:
    cmp edx, 10h
    jae 6
    cmp edx, 4h
    jae 5
    cmp edx, 1h
    je 4
    movzx ecx, word ptr [rdi]
    movzx r8d, byte ptr [rdi+rdx-1h]
    xor cx, [rsi]
    xor r8b, [rsi+rdx-1h]
    xor eax, eax
    or ecx, r8d
    sete al
    ret
4:
    movzx ecx, byte ptr [rdi]
    xor eax, eax
    cmp cl, [rsi]
    sete al
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
    jne 7
    xor eax, eax
    inc eax
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
    jne 7
    inc eax
    ret
7:
    xor eax, eax
    ret
