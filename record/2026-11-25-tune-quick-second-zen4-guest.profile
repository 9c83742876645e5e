cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record AuthenticAMD-25-17-1.record.jsonl fnv1a64:ce4b7581684a904b
written 2026-11-25T03:53:24Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 33554431 libc copy.avx512
decide copy unknown 33554432 max copy.avx512.nt.pf512
decide copy soon 256 33554431 libc copy.avx512
decide copy soon 33554432 max copy.avx512.nt.pf512
decide copy never 256 10485759 libc copy.avx512
decide copy never 10485760 max copy.avx512.nt
decide move unknown 256 4607 move.avx
decide move unknown 4608 max libc move.avx
decide move soon 256 4607 move.avx
decide move soon 4608 max libc move.avx
decide move never 256 4607 move.avx
decide move never 4608 10485759 libc move.avx
decide move never 10485760 max move.avx512.nt
decide fill unknown 256 16777215 libc
decide fill unknown 16777216 37748735 fill.avx512
decide fill unknown 37748736 max libc fill.rep.stosb
decide fill soon 256 16777215 libc
decide fill soon 16777216 37748735 fill.avx512
decide fill soon 37748736 max libc fill.rep.stosb
decide fill never 256 16777215 libc
decide fill never 16777216 37748735 fill.avx512
decide fill never 37748736 67108863 libc
decide fill never 67108864 max fill.avx512.nt
decide zero unknown 256 8388607 libc
decide zero unknown 8388608 18874367 zero.avx512
decide zero unknown 18874368 max libc
decide zero soon 256 8388607 libc
decide zero soon 8388608 18874367 zero.avx512
decide zero soon 18874368 max libc
decide zero never 256 8388607 libc
decide zero never 8388608 18874367 zero.avx512
decide zero never 18874368 max libc
decide compare unknown 256 9215 compare.avx512
decide compare unknown 9216 max libc
decide equal unknown 256 26623 equal.avx512
decide equal unknown 26624 max libc equal.avx2
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
end 52 fnv1a64:8545146d9c70e031
