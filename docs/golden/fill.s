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
    jae 4
    vpbroadcastb zmm20, esi
    lea ecx, [rdi+3Fh]
    xor ecx, edi
    test ch, 10h
    jne 5
    or rcx, 0FFFFFFFFFFFFFFFFh
    bzhi rcx, rcx, rdx
    je 3
    kmovq k1, rcx
    vmovdqu8 [rdi]{k1}, zmm20
3:
    ret
4:
    test rdx, rdx
    js elsewhere
    vpbroadcastb zmm20, esi
    cmp rdx, 80h
    ja 10
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+rdx-40h], zmm20
    ret
5:
    cmp edx, 10h
    jb 7
    cmp edx, 20h
    jbe 6
    vmovdqu64 [rdi], ymm20
    vmovdqu64 [rdi+rdx-20h], ymm20
    ret
6:
    vmovdqu64 [rdi], xmm20
    vmovdqu64 [rdi+rdx-10h], xmm20
    ret
7:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jb 8
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
8:
    test edx, edx
    je 9
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
9:
    ret
10:
    cmp rdx, 100h
    jbe 12
    cmp rdx, [rip+data]
    ja 18
    cmp rdx, [rip+data]
    ja 15
11:
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm20
    vmovdqu64 [rdi+80h], zmm20
    vmovdqu64 [rdi+0C0h], zmm20
    cmp rdx, 200h
    ja 13
    vmovdqu64 [rdi+rdx-100h], zmm20
    vmovdqu64 [rdi+rdx-0C0h], zmm20
    vmovdqu64 [rdi+rdx-80h], zmm20
    vmovdqu64 [rdi+rdx-40h], zmm20
    ret
12:
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm20
    vmovdqu64 [rdi+rdx-80h], zmm20
    vmovdqu64 [rdi+rdx-40h], zmm20
    ret
13:
    lea rcx, [rdi+rdx-100h]
    sub rdi, 0FFFFFFFFFFFFFF00h
    and rdi, 0FFFFFFFFFFFFFFC0h
    nop word ptr cs:[rax+rax]
    nop dword ptr [rax]
14:
    vmovdqa64 [rdi], zmm20
    vmovdqa64 [rdi+40h], zmm20
    vmovdqa64 [rdi+80h], zmm20
    vmovdqa64 [rdi+0C0h], zmm20
    sub rdi, 0FFFFFFFFFFFFFF00h
    cmp rdi, rcx
    jb 14
    vmovdqu64 [rcx], zmm20
    vmovdqu64 [rcx+40h], zmm20
    vmovdqu64 [rcx+80h], zmm20
    vmovdqu64 [rcx+0C0h], zmm20
    ret
15:
    test sil, sil
    jne 11
16:
    mov rcx, rdx
    sub rcx, [rip+data]
    cmp rcx, [rip+data]
    jae 17
    jmp qword ptr [rip+data]
17:
    mov rsi, rdx
    jmp elsewhere
18:
    test sil, sil
    je 16
    mov rcx, rdx
    sub rcx, [rip+data]
    cmp rcx, [rip+data]
    jae 19
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
