cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record AuthenticAMD-25-17-1.record.jsonl fnv1a64:25305bf0b0a3936c
written 2026-11-25T03:37:57Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 4607 copy.avx
decide copy unknown 4608 33554431 libc copy.avx512
decide copy unknown 33554432 max copy.avx512.nt.pf512
decide copy soon 256 4607 copy.avx
decide copy soon 4608 33554431 libc copy.avx512
decide copy soon 33554432 max copy.avx512.nt.pf512
decide copy never 256 4607 copy.avx
decide copy never 4608 16777215 libc copy.avx512
decide copy never 16777216 max copy.avx512.nt.ends
decide move unknown 256 max libc move.avx512
decide move soon 256 max libc move.avx512
decide move never 256 16777215 libc move.avx512
decide move never 16777216 max move.avx512.nt.ends
decide fill unknown 256 4607 fill.avx512
decide fill unknown 4608 1572863 libc fill.avx
decide fill unknown 1572864 11534335 fill.avx
decide fill unknown 11534336 37748735 fill.avx512
decide fill unknown 37748736 max libc fill.avx512
decide fill soon 256 4607 fill.avx512
decide fill soon 4608 1572863 libc fill.avx
decide fill soon 1572864 11534335 fill.avx
decide fill soon 11534336 37748735 fill.avx512
decide fill soon 37748736 max libc fill.avx512
decide fill never 256 4607 fill.avx512
decide fill never 4608 1572863 libc fill.avx
decide fill never 1572864 11534335 fill.avx
decide fill never 11534336 37748735 fill.avx512
decide fill never 37748736 max libc fill.avx512
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 5242879 libc zero.avx512
decide zero never 5242880 max zero.avx512.nt
decide compare unknown 256 26623 compare.avx512
decide compare unknown 26624 max libc compare.avx512
decide equal unknown 256 26623 equal.avx512
decide equal unknown 26624 max libc equal.avx512
entry copy avx2
entry move avx2
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 67108864
parallel copy pooled 2 67108864
parallel zero spawned 2 never
parallel zero pooled 2 never
end 52 fnv1a64:40a7df5ea9a78950
