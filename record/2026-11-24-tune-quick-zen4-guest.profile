cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record AuthenticAMD-25-17-1.record.jsonl fnv1a64:3e55885d34e58d57
written 2026-11-24T22:59:25Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 33554431 libc copy.avx512
decide copy unknown 33554432 max copy.avx512.nt.pf512
decide copy soon 256 33554431 libc copy.avx512
decide copy soon 33554432 max copy.avx512.nt.pf512
decide copy never 256 16777215 libc copy.avx512
decide copy never 16777216 max copy.avx512.nt.backward
decide move unknown 256 33554431 libc move.avx512
decide move unknown 33554432 max move.avx512.nt
decide move soon 256 33554431 libc move.avx512
decide move soon 33554432 max move.avx512.nt
decide move never 256 16777215 libc move.avx512
decide move never 16777216 max move.avx512.nt.backward
decide fill unknown 256 6291455 libc fill.avx512
decide fill unknown 6291456 max fill.avx
decide fill soon 256 6291455 libc fill.avx512
decide fill soon 6291456 max fill.avx
decide fill never 256 6291455 libc fill.avx512
decide fill never 6291456 max fill.avx
decide zero unknown 256 1048575 libc zero.avx
decide zero unknown 1048576 18874367 zero.avx
decide zero unknown 18874368 max libc zero.rep.stosb
decide zero soon 256 1048575 libc zero.avx
decide zero soon 1048576 18874367 zero.avx
decide zero soon 18874368 max libc zero.rep.stosb
decide zero never 256 1048575 libc zero.avx
decide zero never 1048576 18874367 zero.avx
decide zero never 18874368 max libc zero.rep.stosb
decide compare unknown 256 max libc
decide equal unknown 256 max libc
entry copy avx2
entry move avx2
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 67108864
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 45 fnv1a64:b982754e35b6840c
