cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record tune.jsonl fnv1a64:8eb69b7a8af4bda4
written 2026-11-23T17:47:00Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 1048575 libc
decide copy unknown 1048576 max copy.rep.movsb
decide copy soon 256 1048575 libc
decide copy soon 1048576 max copy.rep.movsb
decide copy never 256 1048575 libc
decide copy never 1048576 16777215 copy.rep.movsb
decide copy never 16777216 max copy.avx512.nt.backward
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 16777215 libc
decide move never 16777216 max move.avx512.nt.backward
decide fill unknown 256 max libc
decide fill soon 256 max libc
decide fill never 256 max libc
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 max libc
decide compare unknown 256 415 compare.avx512
decide compare unknown 416 767 libc compare.avx512
decide compare unknown 768 9215 compare.avx512
decide compare unknown 9216 max libc compare.avx512
decide equal unknown 256 511 libc equal.avx512
decide equal unknown 512 36863 equal.avx512
decide equal unknown 36864 max libc
entry copy avx512vl.masked
entry move avx512vl.masked
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 67108864
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 40 fnv1a64:0c2cab91a84319db
