cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record 2026-11-24-costs-zen4-guest.csv fnv1a64:f31af7e5afb812ec
written 2026-11-24T22:59:25Z by cachewise 0.1.0
note decided by the tuner on the simulated machine of that table
decide copy unknown 256 1048575 libc
decide copy unknown 1048576 11534335 copy.avx
decide copy unknown 11534336 46137343 copy.rep.movsb
decide copy unknown 46137344 max copy.avx512.nt.pf512
decide copy soon 256 1048575 libc
decide copy soon 1048576 11534335 copy.avx
decide copy soon 11534336 46137343 copy.rep.movsb
decide copy soon 46137344 max copy.avx512.nt.pf512
decide move unknown 256 786431 libc
decide move unknown 786432 46137343 move.avx
decide move unknown 46137344 max move.avx512.nt.pf512
decide move soon 256 786431 libc
decide move soon 786432 46137343 move.avx
decide move soon 46137344 max move.avx512.nt.pf512
decide fill unknown 256 1048575 libc fill.avx512
decide fill unknown 1048576 max fill.avx512
decide fill soon 256 1048575 libc fill.avx512
decide fill soon 1048576 max fill.avx512
decide zero unknown 256 786431 libc zero.avx512
decide zero unknown 786432 18874367 zero.avx512
decide zero unknown 18874368 max libc zero.rep.stosb
decide zero soon 256 786431 libc zero.avx512
decide zero soon 786432 18874367 zero.avx512
decide zero soon 18874368 max libc zero.rep.stosb
decide compare unknown 256 33554431 libc
decide compare unknown 33554432 max compare.avx2
decide equal unknown 256 max libc
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
end 43 fnv1a64:2575f6081a7d69ac
