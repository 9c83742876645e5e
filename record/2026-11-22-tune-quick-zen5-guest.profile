cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record tune-quick.jsonl fnv1a64:61ce18b488349bd7
written 2026-11-22T19:03:09Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 262143 libc
decide copy unknown 262144 max copy.rep.movsb
decide copy soon 256 262143 libc
decide copy soon 262144 max copy.rep.movsb
decide copy never 256 262143 libc
decide copy never 262144 8388607 copy.rep.movsb
decide copy never 8388608 max copy.avx512.nt.ends
decide move unknown 256 8388607 libc
decide move unknown 8388608 23068671 move.avx512
decide move unknown 23068672 max move.avx512.nt.ends
decide move soon 256 8388607 libc
decide move soon 8388608 23068671 move.avx512
decide move soon 23068672 max move.avx512.nt.ends
decide move never 256 8388607 libc
decide move never 8388608 max move.avx512.nt.ends
decide fill unknown 256 max libc
decide fill soon 256 max libc
decide fill never 256 max libc
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 max libc
decide compare unknown 256 max libc
decide equal unknown 256 799 equal.avx512
decide equal unknown 800 6143 libc equal.avx512
decide equal unknown 6144 73727 equal.avx512
decide equal unknown 73728 max libc
entry copy avx512vl.masked
entry move avx512vl.masked
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 never
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 42 fnv1a64:fa6a935321b78538
