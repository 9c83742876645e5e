cachewise-profile 2
cpu GenuineIntel 6 207 2 Intel(R) Xeon(R) Processor
caches 49152 2097152 314572800
record 2026-11-27-tune-quick-emerald-rapids-guest.jsonl.gz fnv1a64:79eca7795af4957c
written 2026-11-27T04:24:24Z by cachewise 0.2.0
note budget 60 s, glibc 2.39
decide copy unknown 256 max libc
decide copy soon 256 max libc
decide copy never 256 2097151 libc
decide copy never 2097152 max copy.avx512.nt.backward
decide move unknown 256 1567 move.avx512
decide move unknown 1568 max libc
decide move soon 256 1567 move.avx512
decide move soon 1568 max libc
decide move never 256 1567 move.avx512
decide move never 1568 2097151 libc
decide move never 2097152 max move.avx512.nt.backward
decide fill unknown 256 max libc
decide fill soon 256 max libc
decide fill never 256 8388607 libc
decide fill never 8388608 max fill.avx512.nt
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 67108863 libc
decide zero never 67108864 max zero.avx512.nt
decide compare unknown 256 6143 libc
decide compare unknown 6144 36863 compare.avx512
decide compare unknown 36864 max libc
decide equal unknown 256 2079 equal.avx512
decide equal unknown 2080 4095 libc equal.avx512
decide equal unknown 4096 36863 equal.avx512
decide equal unknown 36864 max libc equal.avx512
entry copy avx512vl
entry move avx512vl
entry fill avx512vl
entry zero avx512vl
entry compare avx512vl
entry equal avx512vl
parallel copy spawned 2 67108864
parallel copy spawned 4 67108864
parallel copy spawned 8 67108864
parallel copy spawned 16 67108864
parallel copy pooled 2 never
parallel copy pooled 4 never
parallel copy pooled 8 never
parallel copy pooled 16 never
parallel zero spawned 2 4194304
parallel zero spawned 4 16777216
parallel zero spawned 8 16777216
parallel zero spawned 16 67108864
parallel zero pooled 2 4194304
parallel zero pooled 4 4194304
parallel zero pooled 8 16777216
parallel zero pooled 16 67108864
end 54 fnv1a64:ca52a676dc8b95bc
