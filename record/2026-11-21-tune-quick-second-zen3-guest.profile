cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-21-tune-quick-second-zen3-guest.jsonl fnv1a64:a034070b2ca29c16
written 2026-11-21T20:56:52Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 294911 copy.avx
decide copy unknown 294912 1966079 copy.sse2
decide copy unknown 1966080 5767167 copy.avx
decide copy unknown 5767168 15728639 copy.rep.movsb
decide copy unknown 15728640 max copy.avx.nt
decide copy soon 256 294911 copy.avx
decide copy soon 294912 18874367 copy.sse2
decide copy soon 18874368 max copy.avx.nt
decide copy never 256 3839 copy.avx
decide copy never 3840 max copy.avx.nt
decide move unknown 256 18874367 move.avx
decide move unknown 18874368 max move.avx.nt
decide move soon 256 491519 move.avx
decide move soon 491520 18874367 move.sse2
decide move soon 18874368 max move.avx.nt
decide move never 256 3839 move.avx
decide move never 3840 max move.avx.nt
decide fill unknown 256 31457279 fill.avx
decide fill unknown 31457280 max fill.rep.stosb
decide fill soon 256 31457279 fill.avx
decide fill soon 31457280 max fill.rep.stosb
decide fill never 256 3839 fill.avx
decide fill never 3840 max fill.avx.nt
decide zero unknown 256 7864319 zero.avx
decide zero unknown 7864320 max zero.rep.stosb
decide zero soon 256 31457279 zero.avx
decide zero soon 31457280 max zero.sse2
decide zero never 256 3839 zero.avx
decide zero never 3840 4607 zero.rep.stosb
decide zero never 4608 1703935 zero.clzero
decide zero never 1703936 max zero.avx.nt
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 8388608
parallel copy pooled 2 8388608
parallel zero spawned 2 16777216
parallel zero pooled 2 never
end 45 fnv1a64:eca25c45baf9617f
