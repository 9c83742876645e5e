    mov rax, rdi
    cmp rdx, 40h
    ja 4
    cmp edx, 10h
    jb 1
    movd xmm0, esi
    punpcklbw xmm0, xmm0
    pshuflw xmm0, xmm0, 0h
    punpcklqdq xmm0, xmm0
    lea ecx, [rdx-1h]
    movups [rdi], xmm0
    shr ecx, 1h
    movups [rdi+rdx-10h], xmm0
    and ecx, 10h
    mov r8, rdx
    sub r8, rcx
    movups [rdi+rcx], xmm0
    movups [rdi+r8-10h], xmm0
    ret
1:
    movzx ecx, sil
    imul ecx, ecx, 1010101h
    cmp edx, 4h
    jae 3
    test edx, edx
    je 2
    mov r8d, edx
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rdx-1h], cl
2:
    ret
3:
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
    cmp rdx, [rip+data]
    ja 11
    vmovd xmm0, esi
    vpbroadcastb ymm0, xmm0
    cmp rdx, 200h
    ja 9
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+20h], ymm0
    cmp rdx, 80h
    jbe 5
    vmovdqu [rdi+40h], ymm0
    vmovdqu [rdi+60h], ymm0
    cmp rdx, 100h
    ja 6
    vmovdqu [rdi+rdx-80h], ymm0
    vmovdqu [rdi+rdx-60h], ymm0
5:
    vmovdqu [rdi+rdx-40h], ymm0
    vmovdqu [rdi+rdx-20h], ymm0
    vzeroupper
    ret
6:
    cmp rdx, 160h
    ja 7
    lea rcx, [rdi+80h]
    and rcx, 0FFFFFFFFFFFFFFE0h
    vmovdqa [rcx], ymm0
    vmovdqa [rcx+20h], ymm0
    vmovdqa [rcx+40h], ymm0
    vmovdqa [rcx+60h], ymm0
    vmovdqu [rdi+rdx-80h], ymm0
    vmovdqu [rdi+rdx-60h], ymm0
    vmovdqu [rdi+rdx-40h], ymm0
    vmovdqu [rdi+rdx-20h], ymm0
    vzeroupper
    ret
7:
    vmovdqu [rdi+80h], ymm0
    vmovdqu [rdi+0A0h], ymm0
    cmp rdx, 180h
    jbe 8
    vmovdqu [rdi+0C0h], ymm0
    vmovdqu [rdi+0E0h], ymm0
    vmovdqu [rdi+rdx-100h], ymm0
    vmovdqu [rdi+rdx-0E0h], ymm0
8:
    vmovdqu [rdi+rdx-0C0h], ymm0
    vmovdqu [rdi+rdx-0A0h], ymm0
    vmovdqu [rdi+rdx-80h], ymm0
    vmovdqu [rdi+rdx-60h], ymm0
    vmovdqu [rdi+rdx-40h], ymm0
    vmovdqu [rdi+rdx-20h], ymm0
    vzeroupper
    ret
9:
    vmovdqu [rdi], ymm0
    lea rcx, [rdi+rdx-80h]
    or rdi, 1Fh
    inc rdi
    nop word ptr cs:[rax+rax]
    nop word ptr [rax+rax]
10:
    vmovdqa [rdi], ymm0
    vmovdqa [rdi+20h], ymm0
    vmovdqa [rdi+40h], ymm0
    vmovdqa [rdi+60h], ymm0
    sub rdi, 0FFFFFFFFFFFFFF80h
    cmp rdi, rcx
    jb 10
    vmovdqu [rcx], ymm0
    vmovdqu [rcx+20h], ymm0
    vmovdqu [rcx+40h], ymm0
    vmovdqu [rcx+60h], ymm0
    vzeroupper
    ret
11:
    cmp rdx, 80h
    ja 12
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
12:
    cmp rdx, 1000h
    jae 14
    mov rcx, rdx
    shr rcx, 5h
13:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
14:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 13
