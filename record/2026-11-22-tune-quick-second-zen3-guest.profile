cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-22-tune-quick-second-zen3-guest.jsonl fnv1a64:433bb1bb32aeccd6
written 2026-11-22T08:38:35Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 15359 copy.avx
decide copy unknown 15360 18431 copy.rep.movsb
decide copy unknown 18432 147455 copy.avx
decide copy unknown 147456 18874367 copy.avx.ends
decide copy unknown 18874368 max copy.avx.nt.ends
decide copy soon 256 294911 copy.avx
decide copy soon 294912 18874367 copy.avx.ends
decide copy soon 18874368 max copy.avx.nt.ends
decide copy never 256 3839 copy.avx
decide copy never 3840 491519 copy.avx.nt.pf512
decide copy never 491520 1966079 copy.avx.nt.ends
decide copy never 1966080 max copy.avx.nt.pf512
decide move unknown 256 294911 move.avx
decide move unknown 294912 18874367 move.avx.ends
decide move unknown 18874368 max move.avx.nt.ends
decide move soon 256 360447 move.avx
decide move soon 360448 18874367 move.avx.ends
decide move soon 18874368 max move.avx.nt.ends
decide move never 256 3839 move.avx
decide move never 3840 360447 move.avx.nt.pf512
decide move never 360448 1441791 move.avx.nt.ends
decide move never 1441792 max move.avx.nt.pf512
decide fill unknown 256 37748735 fill.avx
decide fill unknown 37748736 max fill.avx.nt
decide fill soon 256 37748735 fill.avx
decide fill soon 37748736 max fill.avx.nt
decide fill never 256 3839 fill.avx
decide fill never 3840 max fill.avx.nt
decide zero unknown 256 15728639 zero.avx
decide zero unknown 15728640 37748735 zero.rep.stosb
decide zero unknown 37748736 max zero.avx.nt
decide zero soon 256 15728639 zero.avx
decide zero soon 15728640 37748735 zero.rep.stosb
decide zero soon 37748736 max zero.avx.nt
decide zero never 256 3839 zero.avx
decide zero never 3840 5631 zero.clzero
decide zero never 5632 9215 zero.avx.nt
decide zero never 9216 45055 zero.clzero
decide zero never 45056 245759 zero.avx.nt
decide zero never 245760 2883583 zero.clzero
decide zero never 2883584 5767167 zero.avx.nt
decide zero never 5767168 15728639 zero.clzero
decide zero never 15728640 max zero.avx.nt
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 16777216
parallel copy pooled 2 8388608
parallel zero spawned 2 never
parallel zero pooled 2 never
end 57 fnv1a64:875857fa474683c2
