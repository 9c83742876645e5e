cachewise-profile 2
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-25-costs-zen3-guest.csv fnv1a64:b263db95a0223110
written 2026-11-25T09:13:05Z by cachewise 0.1.0
note decided by the tuner on the simulated machine of that table
decide copy unknown 256 2047 libc copy.avx
decide copy unknown 2048 26623 copy.avx
decide copy unknown 26624 49151 libc copy.avx.ends
decide copy unknown 49152 11534335 copy.avx.ends
decide copy unknown 11534336 46137343 copy.sse2
decide copy unknown 46137344 max copy.avx.nt.ends
decide copy soon 256 2047 libc copy.avx
decide copy soon 2048 26623 copy.avx
decide copy soon 26624 49151 libc copy.avx.ends
decide copy soon 49152 11534335 copy.avx.ends
decide copy soon 11534336 46137343 copy.sse2
decide copy soon 46137344 max copy.avx.nt.ends
decide move unknown 256 2047 libc move.avx
decide move unknown 2048 4607 move.avx
decide move unknown 4608 12287 libc move.avx.ends
decide move unknown 12288 36863 move.avx
decide move unknown 36864 4718591 move.avx.ends
decide move unknown 4718592 33554431 move.sse2
decide move unknown 33554432 max move.avx.nt
decide move soon 256 2047 libc move.avx
decide move soon 2048 4607 move.avx
decide move soon 4608 12287 libc move.avx.ends
decide move soon 12288 36863 move.avx
decide move soon 36864 4718591 move.avx.ends
decide move soon 4718592 33554431 move.sse2
decide move soon 33554432 max move.avx.nt
decide fill unknown 256 2047 libc fill.avx
decide fill unknown 2048 3407871 fill.avx
decide fill unknown 3407872 max libc
decide fill soon 256 2047 libc fill.avx
decide fill soon 2048 3407871 fill.avx
decide fill soon 3407872 max libc
decide zero unknown 256 2047 libc zero.avx
decide zero unknown 2048 4607 zero.avx
decide zero unknown 4608 524287 libc
decide zero unknown 524288 18874367 zero.avx
decide zero unknown 18874368 max libc zero.rep.stosb
decide zero soon 256 2047 libc zero.avx
decide zero soon 2048 4607 zero.avx
decide zero soon 4608 524287 libc
decide zero soon 524288 18874367 zero.avx
decide zero soon 18874368 max libc zero.rep.stosb
decide compare unknown 256 2047 libc
decide compare unknown 2048 2079 compare.avx2
decide compare unknown 2080 3145727 libc
decide compare unknown 3145728 max compare.avx2
decide equal unknown 256 2047 libc equal.avx2
decide equal unknown 2048 53247 equal.avx2
decide equal unknown 53248 3145727 libc
decide equal unknown 3145728 max equal.avx2
end 56 fnv1a64:b9c5840e1a53ee27
