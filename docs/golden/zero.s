    mov rax, rdi
    cmp rsi, 40h
    ja 6
    cmp esi, 10h
    jb 3
    cmp esi, 20h
    jb 1
    cmp rsi, [rip+data]
    ja 2
    vpxor xmm0, xmm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rsi-20h], ymm0
    vzeroupper
    ret
1:
    xorps xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rsi-10h], xmm0
    ret
2:
    xorps xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+10h], xmm0
    movups [rdi+rsi-20h], xmm0
    movups [rdi+rsi-10h], xmm0
    ret
3:
    xor ecx, ecx
    cmp esi, 4h
    jb 4
    mov r8d, esi
    mov r10, rsi
    shr r8d, 1h
    and r8d, 4h
    mov [rdi], ecx
    sub r10, r8
    mov [rdi+r8], ecx
    mov [rdi+rsi-4h], ecx
    mov [rdi+r10-4h], ecx
    ret
4:
    test esi, esi
    je 5
    mov r8d, esi
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rsi-1h], cl
5:
    ret
6:
    cmp rsi, [rip+data]
    ja 10
    vpxor xmm0, xmm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+20h], ymm0
    cmp rsi, 80h
    jbe 7
    vmovdqu [rdi+40h], ymm0
    vmovdqu [rdi+60h], ymm0
    cmp rsi, 100h
    ja 8
    vmovdqu [rdi+rsi-80h], ymm0
    vmovdqu [rdi+rsi-60h], ymm0
7:
    vmovdqu [rdi+rsi-40h], ymm0
    vmovdqu [rdi+rsi-20h], ymm0
    vzeroupper
    ret
8:
    lea rcx, [rdi+rsi-80h]
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
    cmp rsi, 80h
    ja 11
    xorps xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+10h], xmm0
    movups [rdi+20h], xmm0
    movups [rdi+30h], xmm0
    movups [rdi+rsi-40h], xmm0
    movups [rdi+rsi-30h], xmm0
    movups [rdi+rsi-20h], xmm0
    movups [rdi+rsi-10h], xmm0
    ret
11:
    cmp rsi, 1000h
    jae 13
    mov rcx, rsi
    shr rcx, 5h
12:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
13:
    bsr r9, rsi
    lea ecx, [r9-3h]
    mov r8, rsi
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 12
