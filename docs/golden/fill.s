sse2:
    mov rax, rdi
    cmp rdx, 20h
    ja elsewhere
    cmp edx, 10h
    jb 1
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm0
    ret
1:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jb 2
    mov r8d, edx
    mov r10, rdx
    shr r8d, 1h
    and r8d, 4h
    mov [rdi], ecx
    sub r10, r8
    mov [rdi+r8], ecx
    mov [rdi+rdx-4h], ecx
    mov [rdi+r10-4h], ecx
    ret
2:
    test edx, edx
    je 3
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
3:
    ret
avx512vl:
    mov rax, rdi
    cmp rdx, 41h
    jae 5
    vpbroadcastb zmm20, esi
    lea ecx, [rdi+3Fh]
    xor ecx, edi
    test ch, 10h
    jne 6
    or rcx, 0FFFFFFFFFFFFFFFFh
    bzhi rcx, rcx, rdx
    je 4
    kmovq k1, rcx
    vmovdqu8 [rdi]{k1}, zmm20
4:
    ret
5:
    test rdx, rdx
    js elsewhere
    vpbroadcastb zmm20, esi
    cmp rdx, 80h
    ja 11
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+rdx-40h], zmm20
    ret
6:
    cmp edx, 10h
    jb 8
    cmp edx, 20h
    jbe 7
    vmovdqu64 [rdi], ymm20
    vmovdqu64 [rdi+rdx-20h], ymm20
    ret
7:
    vmovdqu64 [rdi], xmm20
    vmovdqu64 [rdi+rdx-10h], xmm20
    ret
8:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jb 9
    mov r8d, edx
    mov r10, rdx
    shr r8d, 1h
    and r8d, 4h
    mov [rdi], ecx
    sub r10, r8
    mov [rdi+r8], ecx
    mov [rdi+rdx-4h], ecx
    mov [rdi+r10-4h], ecx
    ret
9:
    test edx, edx
    je 10
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
10:
    ret
11:
    cmp rdx, 100h
    jbe 13
    cmp rdx, [rip+data]
    ja 20
    cmp rdx, [rip+data]
    ja 16
12:
    cmp rdx, 200h
    ja 14
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm20
    vmovdqu64 [rdi+80h], zmm20
    vmovdqu64 [rdi+0C0h], zmm20
    vmovdqu64 [rdi+rdx-100h], zmm20
    vmovdqu64 [rdi+rdx-0C0h], zmm20
    vmovdqu64 [rdi+rdx-80h], zmm20
    vmovdqu64 [rdi+rdx-40h], zmm20
    ret
13:
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm20
    vmovdqu64 [rdi+rdx-80h], zmm20
    vmovdqu64 [rdi+rdx-40h], zmm20
    ret
14:
    lea rcx, [rdi+rdx-1h]
    or r8, 0FFFFFFFFFFFFFFFFh
    shlx r9, r8, rdi
    and rdi, 0FFFFFFFFFFFFFFC0h
    kmovq k1, r9
    mov r9, rcx
    not r9
    and rcx, 0FFFFFFFFFFFFFFC0h
    shrx r9, r8, r9
    kmovq k2, r9
    vmovdqu8 [rdi]{k1}, zmm20
    vmovdqa64 [rdi+40h], zmm20
    vmovdqa64 [rdi+80h], zmm20
    vmovdqa64 [rdi+0C0h], zmm20
    sub rdi, 0FFFFFFFFFFFFFF00h
    sub rcx, 0C0h
    nop word ptr cs:[rax+rax]
    nop
15:
    vmovdqa64 [rdi], zmm20
    vmovdqa64 [rdi+40h], zmm20
    vmovdqa64 [rdi+80h], zmm20
    vmovdqa64 [rdi+0C0h], zmm20
    sub rdi, 0FFFFFFFFFFFFFF00h
    cmp rdi, rcx
    jb 15
    vmovdqa64 [rcx], zmm20
    vmovdqa64 [rcx+40h], zmm20
    vmovdqa64 [rcx+80h], zmm20
    vmovdqu8 [rcx+0C0h]{k2}, zmm20
    ret
16:
    test sil, sil
    jne 12
17:
    cmp rdx, [rip+data]
    ja 18
    jmp qword ptr [rip+data]
18:
    cmp rdx, [rip+data]
    ja 19
    jmp qword ptr [rip+data]
19:
    mov rsi, rdx
    jmp elsewhere
20:
    test sil, sil
    je 17
    cmp rdx, [rip+data]
    ja 21
    jmp qword ptr [rip+data]
21:
    cmp rdx, [rip+data]
    ja 22
    jmp qword ptr [rip+data]
22:
    cmp rdx, 1000h
    jae 24
    mov rcx, rdx
    shr rcx, 5h
23:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    test ecx, ecx
    je elsewhere
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
24:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 23
avx2:
    mov rax, rdi
    cmp rdx, 40h
    ja elsewhere
    cmp edx, 10h
    jb 3
    cmp edx, 20h
    jb 2
    vmovd xmm0, esi
    vpbroadcastb ymm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rdx-20h], ymm0
    vzeroupper
    ret
2:
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm0
    ret
3:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jb 4
    mov r8d, edx
    mov r10, rdx
    shr r8d, 1h
    and r8d, 4h
    mov [rdi], ecx
    sub r10, r8
    mov [rdi+r8], ecx
    mov [rdi+rdx-4h], ecx
    mov [rdi+r10-4h], ecx
    ret
4:
    test edx, edx
    je 5
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
5:
    ret
