sse2:
    mov rax, rdi
    cmp rsi, 20h
    ja elsewhere
    cmp esi, 10h
    jb 1
    xorps xmm0, xmm0
    movups [rdi], xmm0
    movups [rdi+rsi-10h], xmm0
    ret
1:
    xor ecx, ecx
    cmp esi, 4h
    jb 2
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
2:
    test esi, esi
    je 3
    mov r8d, esi
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rsi-1h], cl
3:
    ret
avx512vl:
    mov rax, rdi
    cmp rsi, 41h
    jae 4
    vpxord xmm20, xmm20, xmm20
    lea ecx, [rdi+3Fh]
    xor ecx, edi
    test ch, 10h
    jne 5
    or rcx, 0FFFFFFFFFFFFFFFFh
    bzhi rcx, rcx, rsi
    je 3
    kmovq k1, rcx
    vmovdqu8 [rdi]{k1}, zmm20
3:
    ret
4:
    test rsi, rsi
    js elsewhere
    vpxord xmm20, xmm20, xmm20
    cmp rsi, 80h
    ja 10
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+rsi-40h], zmm20
    ret
5:
    cmp esi, 10h
    jb 7
    cmp esi, 20h
    jbe 6
    vmovdqu64 [rdi], ymm20
    vmovdqu64 [rdi+rsi-20h], ymm20
    ret
6:
    vmovdqu64 [rdi], xmm20
    vmovdqu64 [rdi+rsi-10h], xmm20
    ret
7:
    xor ecx, ecx
    cmp esi, 4h
    jb 8
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
8:
    test esi, esi
    je 9
    mov r8d, esi
    shr r8d, 1h
    mov [rdi], cl
    mov [rdi+r8], cl
    mov [rdi+rsi-1h], cl
9:
    ret
10:
    cmp rsi, 100h
    jbe 11
    cmp rsi, [rip+data]
    ja 14
    cmp rsi, 200h
    ja 12
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm20
    vmovdqu64 [rdi+80h], zmm20
    vmovdqu64 [rdi+0C0h], zmm20
    vmovdqu64 [rdi+rsi-100h], zmm20
    vmovdqu64 [rdi+rsi-0C0h], zmm20
    vmovdqu64 [rdi+rsi-80h], zmm20
    vmovdqu64 [rdi+rsi-40h], zmm20
    ret
11:
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm20
    vmovdqu64 [rdi+rsi-80h], zmm20
    vmovdqu64 [rdi+rsi-40h], zmm20
    ret
12:
    lea rcx, [rdi+rsi-1h]
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
    nop word ptr cs:[rax+rax]
    nop word ptr cs:[rax+rax]
    nop word ptr cs:[rax+rax]
    nop dword ptr [rax]
13:
    vmovdqa64 [rdi], zmm20
    vmovdqa64 [rdi+40h], zmm20
    vmovdqa64 [rdi+80h], zmm20
    vmovdqa64 [rdi+0C0h], zmm20
    sub rdi, 0FFFFFFFFFFFFFF00h
    cmp rdi, rcx
    jb 13
    vmovdqa64 [rcx], zmm20
    vmovdqa64 [rcx+40h], zmm20
    vmovdqa64 [rcx+80h], zmm20
    vmovdqu8 [rcx+0C0h]{k2}, zmm20
    ret
14:
    cmp rsi, [rip+data]
    ja 15
    mov rdx, rsi
    xor esi, esi
    jmp qword ptr [rip+data]
15:
    cmp rsi, [rip+data]
    ja 16
    mov rdx, rsi
    xor esi, esi
    jmp qword ptr [rip+data]
16:
    cmp rsi, 1000h
    jae 18
    mov rcx, rsi
    shr rcx, 5h
17:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    test ecx, ecx
    je elsewhere
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
18:
    bsr r9, rsi
    lea ecx, [r9-3h]
    mov r8, rsi
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 17
avx2:
    mov rax, rdi
    cmp rsi, 40h
    ja elsewhere
    cmp esi, 10h
    jb 3
    cmp esi, 20h
    jb 2
    vpxor xmm0, xmm0, xmm0
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rsi-20h], ymm0
    vzeroupper
    ret
2:
    xorps xmm0, xmm0
    movups [rdi], xmm0
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
