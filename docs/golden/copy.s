sse2:
    mov rax, rdi
    cmp rdx, 20h
    ja elsewhere
    cmp edx, 10h
    jb 1
    movups xmm0, [rsi]
    movups xmm1, [rsi+rdx-10h]
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm1
    ret
1:
    cmp edx, 4h
    jb 2
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
2:
    test edx, edx
    je 3
    mov r9d, edx
    shr r9d, 1h
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi+r9]
    movzx esi, byte ptr [rsi+rdx-1h]
    mov [rdi], cl
    mov [rdi+r9], r8b
    mov [rdi+rdx-1h], sil
3:
    ret
avx512vl:
    mov rax, rdi
    cmp rdx, 21h
    jae 5
    cmp edx, 10h
    jb 3
    vmovdqu64 xmm20, [rsi]
    vmovdqu64 xmm21, [rsi+rdx-10h]
    vmovdqu64 [rdi], xmm20
    vmovdqu64 [rdi+rdx-10h], xmm21
    ret
3:
    lea ecx, [rdi+0Fh]
    lea r9d, [rsi+0Fh]
    xor ecx, edi
    xor r9d, esi
    or ecx, r9d
    test ch, 10h
    jne 7
    or ecx, 0FFFFFFFFh
    bzhi ecx, ecx, edx
    kmovd k1, ecx
    je 4
    vmovdqu8 xmm20{k1}{z}, [rsi]
    vmovdqu8 [rdi]{k1}, xmm20
4:
    ret
5:
    test rdx, rdx
    js elsewhere
    cmp rdx, 40h
    jbe 6
    cmp rdx, 80h
    ja 10
    vmovdqu64 zmm20, [rsi]
    vmovdqu64 zmm21, [rsi+rdx-40h]
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+rdx-40h], zmm21
    ret
6:
    vmovdqu64 ymm20, [rsi]
    vmovdqu64 ymm21, [rsi+rdx-20h]
    vmovdqu64 [rdi], ymm20
    vmovdqu64 [rdi+rdx-20h], ymm21
    ret
7:
    cmp edx, 4h
    jb 8
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
8:
    test edx, edx
    je 9
    mov r9d, edx
    shr r9d, 1h
    movzx ecx, byte ptr [rsi]
    movzx r8d, byte ptr [rsi+r9]
    movzx esi, byte ptr [rsi+rdx-1h]
    mov [rdi], cl
    mov [rdi+r9], r8b
    mov [rdi+rdx-1h], sil
9:
    ret
10:
    cmp rdx, [rip+data]
    ja 16
    vmovdqu64 zmm20, [rsi]
    vmovdqu64 zmm21, [rsi+40h]
    vmovdqu64 zmm26, [rsi+rdx-80h]
    vmovdqu64 zmm27, [rsi+rdx-40h]
    cmp rdx, 100h
    jbe 11
    cmp rdx, 200h
    ja 12
    vmovdqu64 zmm22, [rsi+80h]
    vmovdqu64 zmm23, [rsi+0C0h]
    vmovdqu64 zmm24, [rsi+rdx-100h]
    vmovdqu64 zmm25, [rsi+rdx-0C0h]
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm21
    vmovdqu64 [rdi+80h], zmm22
    vmovdqu64 [rdi+0C0h], zmm23
    vmovdqu64 [rdi+rdx-100h], zmm24
    vmovdqu64 [rdi+rdx-0C0h], zmm25
    vmovdqu64 [rdi+rdx-80h], zmm26
    vmovdqu64 [rdi+rdx-40h], zmm27
    ret
11:
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm21
    vmovdqu64 [rdi+rdx-80h], zmm26
    vmovdqu64 [rdi+rdx-40h], zmm27
    ret
12:
    mov rcx, rdi
    sub rcx, rsi
    cmp rcx, rdx
    jb 14
    lea r8, [rcx+rdx]
    xor r8, rcx
    shr r8, 3Fh
    and ecx, 0F00h
    add ecx, r8d
    je 14
    vmovdqu64 zmm24, [rsi+rdx-100h]
    vmovdqu64 zmm25, [rsi+rdx-0C0h]
    lea rcx, [rdi+rdx-100h]
    mov r10, rdi
    sub rsi, rdi
    or rdi, 3Fh
    inc rdi
    nop word ptr cs:[rax+rax]
    nop word ptr cs:[rax+rax]
    nop word ptr cs:[rax+rax]
    nop word ptr cs:[rax+rax]
    nop word ptr cs:[rax+rax]
13:
    vmovdqu64 zmm21, [rdi+rsi]
    vmovdqu64 zmm22, [rdi+rsi+40h]
    vmovdqu64 zmm23, [rdi+rsi+80h]
    vmovdqu64 zmm28, [rdi+rsi+0C0h]
    vmovdqa64 [rdi], zmm21
    vmovdqa64 [rdi+40h], zmm22
    vmovdqa64 [rdi+80h], zmm23
    vmovdqa64 [rdi+0C0h], zmm28
    sub rdi, 0FFFFFFFFFFFFFF00h
    cmp rdi, rcx
    jb 13
    vmovdqu64 [rcx], zmm24
    vmovdqu64 [rcx+40h], zmm25
    vmovdqu64 [rcx+80h], zmm26
    vmovdqu64 [rcx+0C0h], zmm27
    vmovdqu64 [r10], zmm20
    ret
14:
    vmovdqu64 zmm22, [rsi+80h]
    vmovdqu64 zmm23, [rsi+0C0h]
    lea rcx, [rdi+100h]
    lea r8, [rdi+rdx]
    sub rsi, rdi
    lea r9, [r8-40h]
    and r8, 0FFFFFFFFFFFFFFC0h
    nop word ptr cs:[rax+rax]
    nop word ptr cs:[rax+rax]
    nop dword ptr [rax+rax]
15:
    vmovdqu64 zmm24, [r8+rsi-40h]
    vmovdqu64 zmm25, [r8+rsi-80h]
    vmovdqu64 zmm26, [r8+rsi-0C0h]
    vmovdqu64 zmm28, [r8+rsi-100h]
    vmovdqa64 [r8-40h], zmm24
    vmovdqa64 [r8-80h], zmm25
    vmovdqa64 [r8-0C0h], zmm26
    vmovdqa64 [r8-100h], zmm28
    add r8, 0FFFFFFFFFFFFFF00h
    cmp r8, rcx
    ja 15
    vmovdqu64 [rdi], zmm20
    vmovdqu64 [rdi+40h], zmm21
    vmovdqu64 [rdi+80h], zmm22
    vmovdqu64 [rdi+0C0h], zmm23
    vmovdqu64 [r9], zmm27
    ret
16:
    cmp rdx, [rip+data]
    ja 17
    jmp qword ptr [rip+data]
17:
    cmp rdx, [rip+data]
    ja 18
    jmp qword ptr [rip+data]
18:
    mov rcx, rdi
    sub rcx, rsi
    cmp rcx, rdx
    jb 21
    neg rcx
    cmp rcx, rdx
    jb 21
    cmp rdx, 1000h
    jae 20
    mov rcx, rdx
    shr rcx, 5h
19:
    lea r8, [rip+data]
    movzx ecx, byte ptr [r8+rcx]
    test ecx, ecx
    je elsewhere
    lea r8, [rip+data]
    jmp qword ptr [r8+rcx*8]
20:
    bsr r9, rdx
    lea ecx, [r9-3h]
    mov r8, rdx
    shr r8, cl
    lea rcx, [r8+r9*8+18h]
    jmp 19
21:
    jmp elsewhere
avx2:
    mov rax, rdi
    cmp rdx, 40h
    ja elsewhere
    cmp edx, 10h
    jb 3
    cmp edx, 20h
    jb 2
    vmovdqu ymm0, [rsi]
    vmovdqu ymm1, [rsi+rdx-20h]
    vmovdqu [rdi], ymm0
    vmovdqu [rdi+rdx-20h], ymm1
    vzeroupper
    ret
2:
    movups xmm0, [rsi]
    movups xmm1, [rsi+rdx-10h]
    movups [rdi], xmm0
    movups [rdi+rdx-10h], xmm1
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
