cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record AuthenticAMD-25-17-1.record.jsonl fnv1a64:ebd6ef6fd305454a
written 2026-11-24T23:55:33Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 max libc copy.avx
decide copy soon 256 max libc copy.avx
decide copy never 256 8388607 libc copy.avx
decide copy never 8388608 max copy.avx512.nt.backward
decide move unknown 256 max libc move.avx512
decide move soon 256 max libc move.avx512
decide move never 256 8388607 libc move.avx512
decide move never 8388608 max move.avx512.nt.backward
decide fill unknown 256 1048575 libc fill.avx
decide fill unknown 1048576 37748735 fill.avx
decide fill unknown 37748736 max libc fill.sse2
decide fill soon 256 1048575 libc fill.avx
decide fill soon 1048576 37748735 fill.avx
decide fill soon 37748736 max libc fill.sse2
decide fill never 256 1048575 libc fill.avx
decide fill never 1048576 37748735 fill.avx
decide fill never 37748736 max libc fill.sse2
decide zero unknown 256 6291455 libc zero.avx
decide zero unknown 6291456 18874367 zero.avx512
decide zero unknown 18874368 max libc zero.rep.stosb
decide zero soon 256 6291455 libc zero.avx
decide zero soon 6291456 18874367 zero.avx512
decide zero soon 18874368 max libc zero.rep.stosb
decide zero never 256 6291455 libc zero.avx
decide zero never 6291456 16777215 zero.avx512
decide zero never 16777216 max zero.clzero
decide compare unknown 256 max libc
decide equal unknown 256 max libc
entry copy avx512vl
entry move avx512vl
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 67108864
parallel copy pooled 2 67108864
parallel zero spawned 2 never
parallel zero pooled 2 never
end 44 fnv1a64:48b83637f27a3d57
