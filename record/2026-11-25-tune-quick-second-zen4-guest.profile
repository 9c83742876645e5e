cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record tune2.jsonl fnv1a64:9d58c293570147f7
written 2026-11-25T23:58:30Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 2047 libc copy.avx
decide copy unknown 2048 6655 copy.avx
decide copy unknown 6656 1048575 libc copy.avx512
decide copy unknown 1048576 9437183 copy.avx
decide copy unknown 9437184 33554431 libc copy.avx512
decide copy unknown 33554432 max copy.avx512.nt.ends
decide copy soon 256 2047 libc copy.avx
decide copy soon 2048 6655 copy.avx
decide copy soon 6656 1048575 libc copy.avx512
decide copy soon 1048576 9437183 copy.avx
decide copy soon 9437184 33554431 libc copy.avx512
decide copy soon 33554432 max copy.avx512.nt.ends
decide copy never 256 2047 libc copy.avx
decide copy never 2048 6655 copy.avx
decide copy never 6656 1048575 libc copy.avx512
decide copy never 1048576 9437183 copy.avx
decide copy never 9437184 16777215 libc
decide copy never 16777216 max copy.avx512.nt.pf512
decide move unknown 256 2047 libc move.avx
decide move unknown 2048 4607 move.avx
decide move unknown 4608 1572863 libc move.avx
decide move unknown 1572864 46137343 move.avx
decide move unknown 46137344 max move.avx512.nt.pf512
decide move soon 256 2047 libc move.avx
decide move soon 2048 4607 move.avx
decide move soon 4608 1572863 libc move.avx
decide move soon 1572864 46137343 move.avx
decide move soon 46137344 max move.avx512.nt.pf512
decide move never 256 2047 libc move.avx
decide move never 2048 4607 move.avx
decide move never 4608 1572863 libc move.avx
decide move never 1572864 16777215 move.avx
decide move never 16777216 max move.avx512.nt.pf512
decide fill unknown 256 3103 fill.avx512
decide fill unknown 3104 1048575 libc fill.avx
decide fill unknown 1048576 37748735 fill.avx512
decide fill unknown 37748736 max libc fill.rep.stosb
decide fill soon 256 3103 fill.avx512
decide fill soon 3104 1048575 libc fill.avx
decide fill soon 1048576 37748735 fill.avx512
decide fill soon 37748736 max libc fill.rep.stosb
decide fill never 256 3103 fill.avx512
decide fill never 3104 1048575 libc fill.avx
decide fill never 1048576 37748735 fill.avx512
decide fill never 37748736 max libc fill.rep.stosb
decide zero unknown 256 3103 zero.avx512
decide zero unknown 3104 65535 libc zero.avx
decide zero unknown 65536 11534335 zero.avx
decide zero unknown 11534336 18874367 zero.avx512
decide zero unknown 18874368 max libc zero.rep.stosb
decide zero soon 256 3103 zero.avx512
decide zero soon 3104 65535 libc zero.avx
decide zero soon 65536 11534335 zero.avx
decide zero soon 11534336 18874367 zero.avx512
decide zero soon 18874368 max libc zero.rep.stosb
decide zero never 256 3103 zero.avx512
decide zero never 3104 65535 libc zero.avx
decide zero never 65536 11534335 zero.avx
decide zero never 11534336 18874367 zero.avx512
decide zero never 18874368 max libc zero.rep.stosb
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
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 79 fnv1a64:ebf34a8fc59a4380
