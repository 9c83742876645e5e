cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record AuthenticAMD-26-2-1.record.jsonl fnv1a64:8c6b4312d9b615ed
written 2026-11-22T16:09:50Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 262143 libc
decide copy unknown 262144 max copy.rep.movsb.aligned
decide copy soon 256 262143 libc
decide copy soon 262144 max copy.rep.movsb.aligned
decide copy never 256 262143 libc
decide copy never 262144 16777215 copy.rep.movsb.aligned
decide copy never 16777216 max copy.avx512.nt.pf512
decide move unknown 256 8388607 libc
decide move unknown 8388608 max move.avx
decide move soon 256 8388607 libc
decide move soon 8388608 max move.avx
decide move never 256 8388607 libc
decide move never 8388608 16777215 move.avx
decide move never 16777216 max move.avx512.nt.pf512
decide fill unknown 256 2097151 libc
decide fill unknown 2097152 18874367 fill.rep.stosb
decide fill unknown 18874368 max libc fill.avx
decide fill soon 256 2097151 libc
decide fill soon 2097152 18874367 fill.rep.stosb
decide fill soon 18874368 max libc fill.avx
decide fill never 256 2097151 libc
decide fill never 2097152 18874367 fill.rep.stosb
decide fill never 18874368 max libc fill.avx
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 max libc
decide compare unknown 256 287 compare.avx512
decide compare unknown 288 max libc
decide equal unknown 256 799 equal.avx512
decide equal unknown 800 12287 libc equal.avx512
decide equal unknown 12288 36863 equal.avx512
decide equal unknown 36864 max libc equal.avx512
entry copy avx512vl.masked
entry move avx512vl.masked
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 16777216
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 48 fnv1a64:5f2c74c51e83bc2b
