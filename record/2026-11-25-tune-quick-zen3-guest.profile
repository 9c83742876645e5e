cachewise-profile 2
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-25-tune-quick-zen3-guest.jsonl.gz fnv1a64:d59dd0093be00862
written 2026-11-25T09:13:05Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 3103 copy.avx
decide copy unknown 3104 131071 libc copy.avx
decide copy unknown 131072 425983 copy.avx.ends
decide copy unknown 425984 33554431 libc copy.avx.ends
decide copy unknown 33554432 max copy.avx.nt.pf512
decide copy soon 256 3103 copy.avx
decide copy soon 3104 131071 libc copy.avx
decide copy soon 131072 425983 copy.avx.ends
decide copy soon 425984 33554431 libc copy.avx.ends
decide copy soon 33554432 max copy.avx.nt.pf512
decide copy never 256 3103 copy.avx
decide copy never 3104 131071 libc copy.avx
decide copy never 131072 425983 copy.avx.ends
decide copy never 425984 4194303 libc copy.avx.ends
decide copy never 4194304 max copy.avx.nt.pf512
decide move unknown 256 max libc
decide move soon 256 max libc
decide move never 256 4194303 libc
decide move never 4194304 max move.avx.nt.pf512
decide fill unknown 256 3071 libc fill.avx
decide fill unknown 3072 4607 fill.avx
decide fill unknown 4608 67108863 libc
decide fill unknown 67108864 max fill.avx.nt
decide fill soon 256 3071 libc fill.avx
decide fill soon 3072 4607 fill.avx
decide fill soon 4608 67108863 libc
decide fill soon 67108864 max fill.avx.nt
decide fill never 256 3071 libc fill.avx
decide fill never 3072 4607 fill.avx
decide fill never 4608 4194303 libc fill.avx
decide fill never 4194304 max fill.avx.nt
decide zero unknown 256 6291455 libc zero.avx
decide zero unknown 6291456 18874367 zero.avx
decide zero unknown 18874368 max libc zero.rep.stosb
decide zero soon 256 6291455 libc zero.avx
decide zero soon 6291456 18874367 zero.avx
decide zero soon 18874368 max libc zero.rep.stosb
decide zero never 256 6291455 libc zero.avx
decide zero never 6291456 8388607 zero.avx
decide zero never 8388608 max zero.avx.nt
decide compare unknown 256 max libc
decide equal unknown 256 max libc
entry copy avx2
entry move avx2
entry fill avx2
entry zero avx2
entry compare avx2
entry equal avx2
parallel copy spawned 2 16777216
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 58 fnv1a64:0389b4fee6013588
