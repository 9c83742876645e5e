cachewise-profile 2
cpu AuthenticAMD 23 1 2 AMD EPYC
caches 32768 524288 8388608
record 2026-11-28-tune-quick-zen1-guest.jsonl.gz fnv1a64:b74be70715a469f1
written 2026-11-28T03:01:12Z by cachewise 0.2.0
note budget 60 s, glibc 2.36
decide copy unknown 256 1572863 libc copy.avx
decide copy unknown 1572864 6815743 copy.avx.ends
decide copy unknown 6815744 max libc copy.avx.nt.pf512
decide copy soon 256 1572863 libc copy.avx
decide copy soon 1572864 6815743 copy.avx.ends
decide copy soon 6815744 max libc copy.avx.nt.pf512
decide copy never 256 1310719 libc copy.avx
decide copy never 1310720 max copy.avx.nt.pf512
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 1310719 libc
decide move never 1310720 max move.avx.nt.pf512
decide fill unknown 256 67108863 libc fill.avx
decide fill unknown 67108864 max fill.avx.nt
decide fill soon 256 67108863 libc fill.avx
decide fill soon 67108864 max fill.avx.nt
decide fill never 256 6291455 libc fill.avx
decide fill never 6291456 max fill.avx.nt
decide zero unknown 256 max libc zero.avx
decide zero soon 256 max libc zero.avx
decide zero never 256 4194303 libc zero.avx
decide zero never 4194304 max zero.clzero
decide compare unknown 256 2079 compare.avx2
decide compare unknown 2080 max libc
decide equal unknown 256 3103 equal.avx2
decide equal unknown 3104 6143 libc
decide equal unknown 6144 26623 equal.avx2
decide equal unknown 26624 max libc
entry copy avx2
entry move avx2
entry fill avx2
entry zero avx2
entry compare avx2
entry equal avx2
parallel copy spawned 2 never
parallel copy pooled 2 never
parallel zero spawned 2 16777216
parallel zero pooled 2 16777216
end 44 fnv1a64:6102203d28b41ecb
