cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record 2026-11-24-tune-quick-zen5-guest.jsonl.gz fnv1a64:52addcf22b03ba6f
written 2026-11-24T12:24:22Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 1048575 libc
decide copy unknown 1048576 max copy.rep.movsb.aligned
decide copy soon 256 1048575 libc
decide copy soon 1048576 max copy.rep.movsb.aligned
decide copy never 256 1048575 libc
decide copy never 1048576 16777215 copy.rep.movsb.aligned
decide copy never 16777216 max copy.avx512.nt.ends
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 16777215 libc
decide move never 16777216 max move.avx512.nt.ends
decide fill unknown 256 max libc
decide fill soon 256 max libc
decide fill never 256 max libc
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 max libc
decide compare unknown 256 767 libc compare.avx512
decide compare unknown 768 6655 compare.avx512
decide compare unknown 6656 max libc
decide equal unknown 256 767 libc equal.avx512
decide equal unknown 768 26623 equal.avx512
decide equal unknown 26624 max libc
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
end 39 fnv1a64:07fac53b92d812a3
