cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-21-tune-quick-zen3-guest.jsonl fnv1a64:00704bcd631f402e
written 2026-11-21T20:55:34Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 425983 copy.avx
decide copy unknown 425984 1179647 copy.sse2
decide copy unknown 1179648 15728639 copy.avx
decide copy unknown 15728640 max copy.avx.nt.pf512
decide copy soon 256 13631487 copy.avx
decide copy soon 13631488 18874367 copy.rep.movsb
decide copy soon 18874368 max copy.avx.nt.pf512
decide copy never 256 3839 copy.avx
decide copy never 3840 106495 copy.avx.nt.pages4
decide copy never 106496 max copy.avx.nt.pf512
decide move unknown 256 18874367 move.avx
decide move unknown 18874368 max move.avx.nt.pf512
decide move soon 256 13631487 move.avx
decide move soon 13631488 18874367 move.rep.movsb
decide move soon 18874368 max move.avx.nt.pf512
decide move never 256 3839 move.avx
decide move never 3840 106495 move.avx.nt.pages4
decide move never 106496 max move.avx.nt.pf512
decide fill unknown 256 7864319 fill.avx
decide fill unknown 7864320 max fill.rep.stosb
decide fill soon 256 15728639 fill.avx
decide fill soon 15728640 max fill.rep.stosb
decide fill never 256 3839 fill.avx
decide fill never 3840 7679 fill.avx.nt
decide fill never 7680 9215 fill.rep.stosb
decide fill never 9216 max fill.avx.nt
decide zero unknown 256 7864319 zero.avx
decide zero unknown 7864320 max zero.rep.stosb
decide zero soon 256 23068671 zero.avx
decide zero soon 23068672 max zero.rep.stosb
decide zero never 256 3839 zero.avx
decide zero never 3840 1441791 zero.clzero
decide zero never 1441792 max zero.avx.nt
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 16777216
parallel copy pooled 2 4194304
parallel zero spawned 2 never
parallel zero pooled 2 never
end 47 fnv1a64:2e0831473ecbef29
