cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-21-tune-quick-zen3-guest.jsonl fnv1a64:a32b401d9515a627
written 2026-11-21T19:57:41Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 2883583 copy.avx
decide copy unknown 2883584 max copy.avx.nt.streams4
decide copy soon 256 6815743 copy.avx
decide copy soon 6815744 11534335 copy.rep.movsb
decide copy soon 11534336 max copy.avx.nt.streams4
decide copy never 256 3839 copy.avx
decide copy never 3840 6655 copy.rep.movsb
decide copy never 6656 max copy.avx.nt.streams4
decide move unknown 256 11534335 move.avx
decide move unknown 11534336 max move.avx.nt.streams4
decide move soon 256 7864319 move.avx
decide move soon 7864320 13631487 move.rep.movsb
decide move soon 13631488 max move.avx.nt.streams4
decide move never 256 3839 move.avx
decide move never 3840 5631 move.rep.movsb
decide move never 5632 max move.avx.nt.streams4
decide fill unknown 256 13631487 fill.avx
decide fill unknown 13631488 18874367 fill.rep.stosb
decide fill unknown 18874368 max fill.avx.nt
decide fill soon 256 15728639 fill.avx
decide fill soon 15728640 31457279 fill.rep.stosb
decide fill soon 31457280 max fill.sse2
decide fill never 256 3839 fill.avx
decide fill never 3840 4607 fill.rep.stosb
decide fill never 4608 max fill.avx.nt
decide zero unknown 256 11534335 zero.avx
decide zero unknown 11534336 18874367 zero.rep.stosb
decide zero unknown 18874368 max zero.avx.nt
decide zero soon 256 7864319 zero.avx
decide zero soon 7864320 11534335 zero.rep.stosb
decide zero soon 11534336 23068671 zero.avx
decide zero soon 23068672 max zero.clzero
decide zero never 256 3839 zero.avx
decide zero never 3840 4607 zero.rep.stosb
decide zero never 4608 11263 zero.avx.nt
decide zero never 11264 122879 zero.clzero
decide zero never 122880 720895 zero.avx.nt
decide zero never 720896 1179647 zero.clzero
decide zero never 1179648 5767167 zero.avx.nt
decide zero never 5767168 max zero.clzero
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 33554432
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 16777216
end 54 fnv1a64:d5aa18224de1be34
