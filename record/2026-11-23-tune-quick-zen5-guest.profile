cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record tune-quick.jsonl fnv1a64:24734b3e836e31ef
written 2026-11-23T03:11:55Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 393215 libc
decide copy unknown 393216 max copy.rep.movsb
decide copy soon 256 393215 libc
decide copy soon 393216 max copy.rep.movsb
decide copy never 256 393215 libc
decide copy never 393216 8388607 copy.rep.movsb
decide copy never 8388608 max copy.avx512.nt.ends
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 8388607 libc
decide move never 8388608 max move.avx512.nt.ends
decide fill unknown 256 max libc
decide fill soon 256 max libc
decide fill never 256 max libc
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 16777215 libc
decide zero never 16777216 max zero.avx512.nt
decide compare unknown 256 1567 compare.avx512
decide compare unknown 1568 6143 libc compare.avx512
decide compare unknown 6144 36863 compare.avx512
decide compare unknown 36864 max libc
decide equal unknown 256 53247 equal.avx512
decide equal unknown 53248 max libc equal.avx512
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
end 40 fnv1a64:3777a76cfbf21b59
