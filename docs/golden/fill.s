    mov rax, rdi
    cmp rdx, 40h
    ja 6
    cmp edx, 10h
    jb 3
    cmp edx, 20h
    jb 1
    cmp rdx, [rip+data]
    ja 2
    vmovd xmm0, esi
    vpbroadcastb ymm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rdx-20h], ymm0
    vzeroupper
    ret
1:
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm0
    ret
2:
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+10h], xmm0
    movups [rdi+rdx-20h], xmm0
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
6:
    cmp rdx, [rip+data]
    ja 10
    vmovd xmm0, esi
    vpbroadcastb ymm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+20h], ymm0
    cmp rdx, 80h
    jbe 7
    vmovdqu [rdi+40h], ymm0
    vmovdqu [rdi+60h], ymm0
    cmp rdx, 100h
    ja 8
    vmovdqu [rdi+rdx-80h], ymm0
    vmovdqu [rdi+rdx-60h], ymm0
7:
    vmovdqu [rdi+rdx-40h], ymm0
    vmovdqu [rdi+rdx-20h], ymm0
    vzeroupper
    ret
8:
    lea rcx, [rdi+rdx-80h]
    sub rdi, 0FFFFFFFFFFFFFF80h
    and rdi, 0FFFFFFFFFFFFFFE0h
    nop word ptr cs:[rax+rax]
    nop word ptr [rax+rax]
9:
    vmovdqa [rdi], ymm0
    vmovdqa [rdi+20h], ymm0
    vmovdqa [rdi+40h], ymm0
    vmovdqa [rdi+60h], ymm0
    sub rdi, 0FFFFFFFFFFFFFF80h
    cmp rdi, rcx
    jb 9
    vmovdqu [rcx], ymm0
    vmovdqu [rcx+20h], ymm0
    vmovdqu [rcx+40h], ymm0
    vmovdqu [rcx+60h], ymm0
    vzeroupper
    ret
10:
    cmp rdx, 80h
    ja 11
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+10h], xmm0
    movups [rdi+20h], xmm0
    movups [rdi+30h], xmm0
    movups [rdi+rdx-40h], xmm0
    movups [rdi+rdx-30h], xmm0
    movups [rdi+rdx-20h], xmm0
    movups [rdi+rdx-10h], xmm0
    ret
11:
    cmp rdx, 1000h
    jae 13
    mov rcx, rdx
    shr rcx, 5h
12:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
13:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 12
