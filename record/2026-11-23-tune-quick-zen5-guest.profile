cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record tune-quick.jsonl fnv1a64:572e91ca35c2122e
written 2026-11-23T06:16:18Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 1048575 libc
decide copy unknown 1048576 max copy.rep.movsb.aligned
decide copy soon 256 1048575 libc
decide copy soon 1048576 max copy.rep.movsb.aligned
decide copy never 256 1048575 libc
decide copy never 1048576 8388607 copy.rep.movsb.aligned
decide copy never 8388608 max copy.avx512.nt.backward
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 8388607 libc
decide move never 8388608 max move.avx512.nt.backward
decide fill unknown 256 1023 libc fill.avx512
decide fill unknown 1024 3103 fill.avx
decide fill unknown 3104 1048575 libc
decide fill unknown 1048576 18874367 fill.rep.stosb
decide fill unknown 18874368 max libc fill.rep.stosb
decide fill soon 256 1023 libc fill.avx512
decide fill soon 1024 3103 fill.avx
decide fill soon 3104 1048575 libc
decide fill soon 1048576 18874367 fill.rep.stosb
decide fill soon 18874368 max libc fill.rep.stosb
decide fill never 256 1023 libc fill.avx512
decide fill never 1024 3103 fill.avx
decide fill never 3104 1048575 libc
decide fill never 1048576 18874367 fill.rep.stosb
decide fill never 18874368 max libc fill.rep.stosb
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 max libc
decide compare unknown 256 2079 compare.avx512
decide compare unknown 2080 6143 libc compare.avx512
decide compare unknown 6144 9215 compare.avx512
decide compare unknown 9216 max libc
decide equal unknown 256 53247 equal.avx512
decide equal unknown 53248 max libc
entry copy avx512vl.masked
entry move avx512vl.masked
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 67108864
parallel copy pooled 2 67108864
parallel zero spawned 2 never
parallel zero pooled 2 never
end 51 fnv1a64:2c5367b664ae6362
