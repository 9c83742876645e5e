cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record tune1.jsonl fnv1a64:2f62ef429e4c11eb
written 2026-11-25T23:07:28Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 2047 libc copy.avx
decide copy unknown 2048 6655 copy.avx
decide copy unknown 6656 1048575 libc copy.avx512
decide copy unknown 1048576 9437183 copy.avx
decide copy unknown 9437184 33554431 libc copy.avx512
decide copy unknown 33554432 max copy.avx512.nt.pf512
decide copy soon 256 2047 libc copy.avx
decide copy soon 2048 6655 copy.avx
decide copy soon 6656 1048575 libc copy.avx512
decide copy soon 1048576 9437183 copy.avx
decide copy soon 9437184 33554431 libc copy.avx512
decide copy soon 33554432 max copy.avx512.nt.pf512
decide copy never 256 2047 libc copy.avx
decide copy never 2048 6655 copy.avx
decide copy never 6656 1048575 libc copy.avx512
decide copy never 1048576 8388607 copy.avx
decide copy never 8388608 max copy.avx512.nt.backward
decide move unknown 256 2047 libc move.avx
decide move unknown 2048 6655 move.avx
decide move unknown 6656 1572863 libc move.avx
decide move unknown 1572864 23068671 move.avx
decide move unknown 23068672 max move.avx512.nt.pf512
decide move soon 256 2047 libc move.avx
decide move soon 2048 6655 move.avx
decide move soon 6656 1572863 libc move.avx
decide move soon 1572864 23068671 move.avx
decide move soon 23068672 max move.avx512.nt.pf512
decide move never 256 2047 libc move.avx
decide move never 2048 6655 move.avx
decide move never 6656 1572863 libc move.avx
decide move never 1572864 8388607 move.avx
decide move never 8388608 max move.avx512.nt.backward
decide fill unknown 256 3103 fill.avx512
decide fill unknown 3104 1048575 libc fill.avx
decide fill unknown 1048576 37748735 fill.avx512
decide fill unknown 37748736 max libc fill.sse2
decide fill soon 256 3103 fill.avx512
decide fill soon 3104 1048575 libc fill.avx
decide fill soon 1048576 37748735 fill.avx512
decide fill soon 37748736 max libc fill.sse2
decide fill never 256 3103 fill.avx512
decide fill never 3104 1048575 libc fill.avx
decide fill never 1048576 37748735 fill.avx512
decide fill never 37748736 max libc fill.sse2
decide zero unknown 256 3103 zero.avx512
decide zero unknown 3104 2097151 libc zero.rep.stosb
decide zero unknown 2097152 18874367 zero.avx
decide zero unknown 18874368 max libc zero.sse2
decide zero soon 256 3103 zero.avx512
decide zero soon 3104 2097151 libc zero.rep.stosb
decide zero soon 2097152 18874367 zero.avx
decide zero soon 18874368 max libc zero.sse2
decide zero never 256 3103 zero.avx512
decide zero never 3104 2097151 libc zero.rep.stosb
decide zero never 2097152 18874367 zero.avx
decide zero never 18874368 max libc zero.sse2
decide compare unknown 256 max libc
decide equal unknown 256 6655 equal.avx512
decide equal unknown 6656 max libc
entry copy avx512vl
entry move avx512vl
entry fill avx512vl
entry zero avx512vl
entry compare avx512vl
entry equal avx512vl
parallel copy spawned 2 67108864
parallel copy pooled 2 67108864
parallel zero spawned 2 never
parallel zero pooled 2 never
end 75 fnv1a64:74ca68dc9a6c9650
