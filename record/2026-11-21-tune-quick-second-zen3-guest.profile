cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-21-tune-quick-second-zen3-guest.jsonl fnv1a64:4bfadb5341c2d918
written 2026-11-21T22:42:05Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 3407871 copy.avx
decide copy unknown 3407872 18874367 copy.sse2
decide copy unknown 18874368 max copy.avx.nt.pf512
decide copy soon 256 589823 copy.avx
decide copy soon 589824 18874367 copy.sse2
decide copy soon 18874368 max copy.avx.nt
decide copy never 256 3839 copy.avx
decide copy never 3840 4607 copy.avx.nt.pf512
decide copy never 4608 13311 copy.avx.nt
decide copy never 13312 45055 copy.avx.nt.pf512
decide copy never 45056 max copy.avx.nt
decide move unknown 256 18874367 move.avx
decide move unknown 18874368 max move.avx.nt.pf512
decide move soon 256 983039 move.avx
decide move soon 983040 18874367 move.sse2
decide move soon 18874368 max move.avx.nt
decide move never 256 3839 move.avx
decide move never 3840 6655 move.avx.nt.pf512
decide move never 6656 9215 move.avx.nt
decide move never 9216 53247 move.avx.nt.pf512
decide move never 53248 max move.avx.nt
decide fill unknown 256 13631487 fill.avx
decide fill unknown 13631488 max fill.rep.stosb
decide fill soon 256 983039 fill.avx
decide fill soon 983040 max fill.rep.stosb
decide fill never 256 3839 fill.avx
decide fill never 3840 max fill.avx.nt
decide zero unknown 256 15728639 zero.avx
decide zero unknown 15728640 37748735 zero.rep.stosb
decide zero unknown 37748736 max zero.avx.nt
decide zero soon 256 18874367 zero.avx
decide zero soon 18874368 37748735 zero.rep.stosb
decide zero soon 37748736 max zero.clzero
decide zero never 256 3839 zero.avx
decide zero never 3840 5631 zero.clzero
decide zero never 5632 13311 zero.avx.nt
decide zero never 13312 61439 zero.clzero
decide zero never 61440 max zero.avx.nt
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 8388608
parallel copy pooled 2 2097152
parallel zero spawned 2 never
parallel zero pooled 2 never
end 52 fnv1a64:40f8ea9defc5d606
