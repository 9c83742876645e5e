cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-21-tune-quick-zen3-guest.jsonl fnv1a64:b22149bb9c527f45
written 2026-11-21T22:40:33Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 18874367 copy.avx
decide copy unknown 18874368 max copy.avx.nt.pf512
decide copy soon 256 18874367 copy.avx
decide copy soon 18874368 max copy.avx.nt.pf512
decide copy never 256 3839 copy.avx
decide copy never 3840 4607 copy.rep.movsb
decide copy never 4608 30719 copy.avx.nt
decide copy never 30720 max copy.avx.nt.pf512
decide move unknown 256 18874367 move.avx
decide move unknown 18874368 max move.avx.nt.pf512
decide move soon 256 18874367 move.avx
decide move soon 18874368 max move.avx.nt.pf512
decide move never 256 3839 move.avx
decide move never 3840 4607 move.rep.movsb
decide move never 4608 22527 move.avx.nt
decide move never 22528 max move.avx.nt.pf512
decide fill unknown 256 37748735 fill.avx
decide fill unknown 37748736 max fill.avx.nt
decide fill soon 256 max fill.avx
decide fill never 256 3839 fill.avx
decide fill never 3840 max fill.avx.nt
decide zero unknown 256 31457279 zero.avx
decide zero unknown 31457280 37748735 zero.rep.stosb
decide zero unknown 37748736 max zero.avx.nt
decide zero soon 256 37748735 zero.avx
decide zero soon 37748736 max zero.clzero
decide zero never 256 3839 zero.avx
decide zero never 3840 22527 zero.clzero
decide zero never 22528 36863 zero.avx.nt
decide zero never 36864 122879 zero.clzero
decide zero never 122880 212991 zero.avx.nt
decide zero never 212992 491519 zero.clzero
decide zero never 491520 7864319 zero.avx.nt
decide zero never 7864320 max zero.clzero
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 16777216
parallel copy pooled 2 4194304
parallel zero spawned 2 16777216
parallel zero pooled 2 4194304
end 48 fnv1a64:c48eab7660d3ac6b
