cachewise-profile 2
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-22-costs-zen3-guest.csv fnv1a64:ef8791ffef4ebf1f
written 2026-11-22T08:34:19Z by cachewise 0.1.0
note decided by the tuner on the simulated machine of that table
decide copy unknown 256 2047 libc copy.avx
decide copy unknown 2048 147455 copy.avx
decide copy unknown 147456 393215 libc copy.avx.ends
decide copy unknown 393216 23068671 copy.avx.ends
decide copy unknown 23068672 max copy.avx.nt.block4k
decide copy soon 256 2047 libc copy.avx
decide copy soon 2048 147455 copy.avx
decide copy soon 147456 393215 libc copy.avx.ends
decide copy soon 393216 23068671 copy.avx.ends
decide copy soon 23068672 max copy.avx.nt.block4k
decide move unknown 256 2047 libc move.avx
decide move unknown 2048 36863 move.avx
decide move unknown 36864 23068671 move.avx.ends
decide move unknown 23068672 max move.avx.nt.ends
decide move soon 256 2047 libc move.avx
decide move soon 2048 36863 move.avx
decide move soon 36864 23068671 move.avx.ends
decide move soon 23068672 max move.avx.nt.ends
decide fill unknown 256 6291455 libc
decide fill unknown 6291456 9437183 libc fill.avx
decide fill unknown 9437184 67108863 libc fill.avx
decide fill unknown 67108864 max fill.avx.nt
decide fill soon 256 6291455 libc
decide fill soon 6291456 9437183 libc fill.avx
decide fill soon 9437184 67108863 libc fill.avx
decide fill soon 67108864 max fill.avx.nt
decide zero unknown 256 67108863 libc
decide zero unknown 67108864 max zero.avx.nt
decide zero soon 256 67108863 libc
decide zero soon 67108864 max zero.avx.nt
decide compare unknown 256 max libc
decide equal unknown 256 max libc
end 38 fnv1a64:0af55e75bd325701
