    mov rax, rdi
    cmp rdx, 40h
    ja 6
    cmp edx, 10h
    jb 3
    cmp edx, 20h
    jb 1
    cmp rdx, [rip+data]
    ja 2
    vmovdqu ymm0, [rsi]
    vmovdqu ymm1, [rsi+rdx-20h]
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rdx-20h], ymm1
    vzeroupper
    ret
1:
    movups xmm0, [rsi]
    movups xmm3, [rsi+rdx-10h]
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm3
    ret
2:
    movups xmm0, [rsi]
    movups xmm3, [rsi+rdx-10h]
    movups xmm1, [rsi+10h]
    movups xmm2, [rsi+rdx-20h]
    movups [rdi], xmm0
    movups [rdi+10h], xmm1
    movups [rdi+rdx-20h], xmm2
    movups [rdi+rdx-10h], xmm3
    ret
3:
    cmp edx, 4h
    jb 4
    mov ecx, edx
    mov r8d, [rsi]
    shr ecx, 1h
    mov r9d, [rsi+rdx-4h]
    and ecx, 4h
    mov r10, rdx
    sub r10, rcx
    mov r11d, [rsi+rcx]
    mov esi, [rsi+r10-4h]
    mov [rdi], r8d
    mov [rdi+rcx], r11d
    mov [rdi+r10-4h], esi
    mov [rdi+rdx-4h], r9d
    ret
4:
    test edx, edx
    je 5
    mov r9d, edx
    shr r9d, 1h
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi+r9]
    movzx esi, byte ptr [rsi+rdx-1h]
    mov [rdi], cl
    mov [rdi+r9], r8b
    mov [rdi+rdx-1h], sil
5:
    ret
6:
    cmp rdx, [rip+data]
    ja 11
    vmovdqu ymm0, [rsi]
    vmovdqu ymm1, [rsi+20h]
    vmovdqu ymm6, [rsi+rdx-40h]
    vmovdqu ymm7, [rsi+rdx-20h]
    cmp rdx, 80h
    jbe 7
    vmovdqu ymm2, [rsi+40h]
    vmovdqu ymm3, [rsi+60h]
    vmovdqu ymm4, [rsi+rdx-80h]
    vmovdqu ymm5, [rsi+rdx-60h]
    cmp rdx, 100h
    ja 8
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+20h], ymm1
    vmovdqu [rdi+40h], ymm2
    vmovdqu [rdi+60h], ymm3
    vmovdqu [rdi+rdx-80h], ymm4
    vmovdqu [rdi+rdx-60h], ymm5
    vmovdqu [rdi+rdx-40h], ymm6
    vmovdqu [rdi+rdx-20h], ymm7
    vzeroupper
    ret
7:
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+20h], ymm1
    vmovdqu [rdi+rdx-40h], ymm6
    vmovdqu [rdi+rdx-20h], ymm7
    vzeroupper
    ret
8:
    cmp rdx, 180h
    ja 9
    vmovdqu ymm8, [rsi+80h]
    vmovdqu ymm9, [rsi+0A0h]
    vmovdqu ymm10, [rsi+rdx-0C0h]
    vmovdqu ymm11, [rsi+rdx-0A0h]
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+20h], ymm1
    vmovdqu [rdi+40h], ymm2
    vmovdqu [rdi+60h], ymm3
    vmovdqu [rdi+80h], ymm8
    vmovdqu [rdi+0A0h], ymm9
    vmovdqu [rdi+rdx-0C0h], ymm10
    vmovdqu [rdi+rdx-0A0h], ymm11
    vmovdqu [rdi+rdx-80h], ymm4
    vmovdqu [rdi+rdx-60h], ymm5
    vmovdqu [rdi+rdx-40h], ymm6
    vmovdqu [rdi+rdx-20h], ymm7
    vzeroupper
    ret
9:
    lea rcx, [rdi+rdx-80h]
    mov r10, rdi
    sub rsi, rdi
    or rdi, 1Fh
    inc rdi
    nop word ptr cs:[rax+rax]
    nop dword ptr [rax]
10:
    vmovdqu ymm1, [rdi+rsi]
    vmovdqu ymm2, [rdi+rsi+20h]
    vmovdqu ymm3, [rdi+rsi+40h]
    vmovdqu ymm8, [rdi+rsi+60h]
    vmovdqa [rdi], ymm1
    vmovdqa [rdi+20h], ymm2
    vmovdqa [rdi+40h], ymm3
    vmovdqa [rdi+60h], ymm8
    sub rdi, 0FFFFFFFFFFFFFF80h
    cmp rdi, rcx
    jb 10
    vmovdqu [rcx], ymm4
    vmovdqu [rcx+20h], ymm5
    vmovdqu [rcx+40h], ymm6
    vmovdqu [rcx+60h], ymm7
    vmovdqu [r10], ymm0
    vzeroupper
    ret
11:
    cmp rdx, 80h
    ja 12
    movups xmm0, [rsi]
    movups xmm1, [rsi+10h]
    movups xmm2, [rsi+20h]
    movups xmm3, [rsi+30h]
    movups xmm4, [rsi+rdx-40h]
    movups xmm5, [rsi+rdx-30h]
    movups xmm6, [rsi+rdx-20h]
    movups xmm7, [rsi+rdx-10h]
    movups [rdi], xmm0
    movups [rdi+10h], xmm1
    movups [rdi+20h], xmm2
    movups [rdi+30h], xmm3
    movups [rdi+rdx-40h], xmm4
    movups [rdi+rdx-30h], xmm5
    movups [rdi+rdx-20h], xmm6
    movups [rdi+rdx-10h], xmm7
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
