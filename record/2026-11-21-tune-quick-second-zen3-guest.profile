cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-21-tune-quick-second-zen3-guest.jsonl fnv1a64:26b42bed5decde35
written 2026-11-21T16:59:00Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 3932159 copy.avx
decide copy unknown 3932160 5767167 copy.sse2
decide copy unknown 5767168 max copy.avx.nt.streams4
decide copy soon 256 7864319 copy.avx
decide copy soon 7864320 15728639 copy.rep.movsb.aligned
decide copy soon 15728640 max copy.avx.nt.streams4
decide copy never 256 3839 copy.avx
decide copy never 3840 7679 copy.avx.nt.streams4
decide copy never 7680 9215 copy.avx.nt
decide copy never 9216 18431 copy.avx.nt.streams4
decide copy never 18432 36863 copy.avx.nt
decide copy never 36864 max copy.avx.nt.streams4
decide move unknown 256 15728639 move.avx
decide move unknown 15728640 max move.avx.nt.streams4
decide move soon 256 7864319 move.avx
decide move soon 7864320 13631487 move.rep.movsb.aligned
decide move soon 13631488 max move.avx.nt.streams4
decide move never 256 3839 move.avx
decide move never 3840 4607 move.avx.nt.streams4
decide move never 4608 13311 move.avx.nt
decide move never 13312 30719 move.avx.nt.streams4
decide move never 30720 45055 move.avx.nt
decide move never 45056 max move.avx.nt.streams4
decide fill unknown 256 18874367 fill.avx
decide fill unknown 18874368 max fill.avx.nt
decide fill soon 256 15728639 fill.avx
decide fill soon 15728640 max fill.sse2
decide fill never 256 3839 fill.avx
decide fill never 3840 max fill.avx.nt
decide zero unknown 256 6815743 zero.avx
decide zero unknown 6815744 13631487 zero.clzero
decide zero unknown 13631488 18874367 zero.sse2
decide zero unknown 18874368 max zero.clzero
decide zero soon 256 23068671 zero.avx
decide zero soon 23068672 max zero.avx.nt
decide zero never 256 3839 zero.avx
decide zero never 3840 4607 zero.clzero
decide zero never 4608 30719 zero.avx.nt
decide zero never 30720 122879 zero.clzero
decide zero never 122880 1966079 zero.avx.nt
decide zero never 1966080 23068671 zero.clzero
decide zero never 23068672 max zero.avx.nt
decide compare unknown 256 245759 compare.avx2
decide compare unknown 245760 294911 compare.sse2
decide compare unknown 294912 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 8388608
parallel copy pooled 2 4194304
parallel zero spawned 2 never
parallel zero pooled 2 16777216
end 58 fnv1a64:8eb283049720b9af
