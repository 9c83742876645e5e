cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record tune-quick.jsonl fnv1a64:422b34628f4f06d1
written 2026-11-23T02:05:59Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 1572863 libc
decide copy unknown 1572864 max copy.rep.movsb
decide copy soon 256 1572863 libc
decide copy soon 1572864 max copy.rep.movsb
decide copy never 256 1572863 libc
decide copy never 1572864 8388607 copy.rep.movsb
decide copy never 8388608 max copy.avx512.nt.backward
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 8388607 libc
decide move never 8388608 max move.avx512.nt.backward
decide fill unknown 256 1023 libc fill.avx512
decide fill unknown 1024 3103 fill.avx
decide fill unknown 3104 max libc fill.rep.stosb
decide fill soon 256 1023 libc fill.avx512
decide fill soon 1024 3103 fill.avx
decide fill soon 3104 max libc fill.rep.stosb
decide fill never 256 1023 libc fill.avx512
decide fill never 1024 3103 fill.avx
decide fill never 3104 max libc fill.rep.stosb
decide zero unknown 256 1535 libc zero.avx512
decide zero unknown 1536 3103 zero.avx
decide zero unknown 3104 max libc zero.rep.stosb
decide zero soon 256 1535 libc zero.avx512
decide zero soon 1536 3103 zero.avx
decide zero soon 3104 max libc zero.rep.stosb
decide zero never 256 1535 libc zero.avx512
decide zero never 1536 3103 zero.avx
decide zero never 3104 max libc zero.rep.stosb
decide compare unknown 256 2079 compare.avx512
decide compare unknown 2080 6143 libc compare.avx512
decide compare unknown 6144 36863 compare.avx512
decide compare unknown 36864 max libc
decide equal unknown 256 106495 equal.avx512
decide equal unknown 106496 max libc equal.avx512
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
end 51 fnv1a64:d53b47558384a7be
