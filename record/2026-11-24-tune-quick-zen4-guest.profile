cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record AuthenticAMD-25-17-1.record.jsonl fnv1a64:6d610b27803e4f41
written 2026-11-24T21:32:45Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 33554431 libc copy.avx512
decide copy unknown 33554432 max copy.rep.movsb
decide copy soon 256 33554431 libc copy.avx512
decide copy soon 33554432 max copy.rep.movsb
decide copy never 256 8388607 libc copy.avx512
decide copy never 8388608 max copy.avx512.nt.backward
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 8388607 libc
decide move never 8388608 max move.avx512.nt.backward
decide fill unknown 256 max libc
decide fill soon 256 max libc
decide fill never 256 67108863 libc
decide fill never 67108864 max fill.avx512.nt
decide zero unknown 256 6291455 libc
decide zero unknown 6291456 18874367 zero.avx
decide zero unknown 18874368 max libc zero.avx
decide zero soon 256 6291455 libc
decide zero soon 6291456 18874367 zero.avx
decide zero soon 18874368 max libc zero.avx
decide zero never 256 6291455 libc
decide zero never 6291456 16777215 zero.avx
decide zero never 16777216 max zero.avx512.nt
decide compare unknown 256 max libc
decide equal unknown 256 max libc
entry copy avx2
entry move avx512vl.masked
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 67108864
parallel copy pooled 2 67108864
parallel zero spawned 2 never
parallel zero pooled 2 never
end 41 fnv1a64:bc212ee1a772219f
