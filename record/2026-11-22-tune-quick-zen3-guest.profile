cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-22-tune-quick-zen3-guest.jsonl fnv1a64:5d77f3c1c5dc4962
written 2026-11-22T08:35:49Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 147455 copy.avx
decide copy unknown 147456 18874367 copy.avx.ends
decide copy unknown 18874368 max copy.avx.nt.ends
decide copy soon 256 147455 copy.avx
decide copy soon 147456 18874367 copy.avx.ends
decide copy soon 18874368 max copy.avx.nt.ends
decide copy never 256 6655 copy.avx
decide copy never 6656 36863 copy.avx.nt.pages4
decide copy never 36864 147455 copy.avx
decide copy never 147456 max copy.avx.nt.ends
decide move unknown 256 180223 move.avx
decide move unknown 180224 18874367 move.avx.ends
decide move unknown 18874368 max move.avx.nt.ends
decide move soon 256 180223 move.avx
decide move soon 180224 18874367 move.avx.ends
decide move soon 18874368 max move.avx.nt.ends
decide move never 256 5631 move.avx
decide move never 5632 36863 move.avx.nt.pages4
decide move never 36864 147455 move.avx
decide move never 147456 max move.avx.nt.ends
decide fill unknown 256 27262975 fill.avx
decide fill unknown 27262976 37748735 fill.rep.stosb
decide fill unknown 37748736 max fill.avx.nt
decide fill soon 256 max fill.avx
decide fill never 256 3839 fill.avx
decide fill never 3840 max fill.avx.nt
decide zero unknown 256 31457279 zero.avx
decide zero unknown 31457280 37748735 zero.rep.stosb
decide zero unknown 37748736 max zero.clzero
decide zero soon 256 37748735 zero.avx
decide zero soon 37748736 max zero.clzero
decide zero never 256 3839 zero.avx
decide zero never 3840 9215 zero.clzero
decide zero never 9216 22527 zero.avx.nt
decide zero never 22528 61439 zero.clzero
decide zero never 61440 983039 zero.avx.nt
decide zero never 983040 2359295 zero.clzero
decide zero never 2359296 9437183 zero.avx.nt
decide zero never 9437184 max zero.clzero
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 16777216
parallel copy pooled 2 16777216
parallel zero spawned 2 16777216
parallel zero pooled 2 8388608
end 53 fnv1a64:aa4d22d7137a6032
