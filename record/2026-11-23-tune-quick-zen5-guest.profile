cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record tune1.jsonl fnv1a64:0b4401b5a224f92f
written 2026-11-23T21:20:48Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 1572863 libc
decide copy unknown 1572864 max copy.rep.movsb.aligned
decide copy soon 256 1572863 libc
decide copy soon 1572864 max copy.rep.movsb.aligned
decide copy never 256 1572863 libc
decide copy never 1572864 max copy.rep.movsb.aligned
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 max libc
decide fill unknown 256 max libc
decide fill soon 256 max libc
decide fill never 256 max libc
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 67108863 libc
decide zero never 67108864 max zero.clzero
decide compare unknown 256 767 libc compare.avx512
decide compare unknown 768 26623 compare.avx512
decide compare unknown 26624 max libc
decide equal unknown 256 767 libc equal.avx512
decide equal unknown 768 26623 equal.avx512
decide equal unknown 26624 max libc
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
end 38 fnv1a64:39e6423011ba789a
