cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record 2026-11-27-tune-quick-zen4-guest.jsonl.gz fnv1a64:9f8f331e45a10ee8
written 2026-11-27T17:38:49Z by cachewise 0.2.0
note budget 60 s, glibc 2.36
decide copy unknown 256 2047 libc copy.avx
decide copy unknown 2048 6655 copy.avx
decide copy unknown 6656 2097151 libc copy.avx
decide copy unknown 2097152 23068671 copy.avx
decide copy unknown 23068672 max copy.avx512.nt.ends
decide copy soon 256 2047 libc copy.avx
decide copy soon 2048 6655 copy.avx
decide copy soon 6656 2097151 libc copy.avx
decide copy soon 2097152 23068671 copy.avx
decide copy soon 23068672 max copy.avx512.nt.ends
decide copy never 256 2047 libc copy.avx
decide copy never 2048 6655 copy.avx
decide copy never 6656 2097151 libc copy.avx
decide copy never 2097152 16777215 copy.avx
decide copy never 16777216 max copy.avx512.nt.ends
decide move unknown 256 2047 libc move.avx512
decide move unknown 2048 6655 move.avx
decide move unknown 6656 524287 libc move.avx512
decide move unknown 524288 23068671 move.avx
decide move unknown 23068672 max move.avx512.nt.pf512
decide move soon 256 2047 libc move.avx512
decide move soon 2048 6655 move.avx
decide move soon 6656 524287 libc move.avx512
decide move soon 524288 23068671 move.avx
decide move soon 23068672 max move.avx512.nt.pf512
decide move never 256 2047 libc move.avx512
decide move never 2048 6655 move.avx
decide move never 6656 524287 libc move.avx512
decide move never 524288 16777215 move.avx
decide move never 16777216 max move.avx512.nt.ends
decide fill unknown 256 2079 fill.avx512
decide fill unknown 2080 1048575 libc fill.avx
decide fill unknown 1048576 37748735 fill.avx512
decide fill unknown 37748736 max libc fill.sse2
decide fill soon 256 2079 fill.avx512
decide fill soon 2080 1048575 libc fill.avx
decide fill soon 1048576 37748735 fill.avx512
decide fill soon 37748736 max libc fill.sse2
decide fill never 256 2079 fill.avx512
decide fill never 2080 1048575 libc fill.avx
decide fill never 1048576 37748735 fill.avx512
decide fill never 37748736 max libc fill.sse2
decide zero unknown 256 3103 zero.avx512
decide zero unknown 3104 524287 libc zero.avx512
decide zero unknown 524288 18874367 zero.avx
decide zero unknown 18874368 max libc zero.avx
decide zero soon 256 3103 zero.avx512
decide zero soon 3104 524287 libc zero.avx512
decide zero soon 524288 18874367 zero.avx
decide zero soon 18874368 max libc zero.avx
decide zero never 256 3103 zero.avx512
decide zero never 3104 524287 libc zero.avx512
decide zero never 524288 16777215 zero.avx
decide zero never 16777216 max zero.avx512.nt
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
end 73 fnv1a64:6da85736272d4b46
