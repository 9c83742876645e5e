cachewise-profile 1
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record 2026-11-21-tune-quick-zen3-guest.jsonl fnv1a64:b1497fa6ed7b88e6
written 2026-11-21T16:57:35Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 425983 copy.avx
decide copy unknown 425984 1179647 copy.rep.movsb.aligned
decide copy unknown 1179648 5767167 copy.sse2
decide copy unknown 5767168 max copy.avx.nt.streams4
decide copy soon 256 7864319 copy.avx
decide copy soon 7864320 13631487 copy.rep.movsb
decide copy soon 13631488 max copy.avx.nt.streams4
decide copy never 256 3839 copy.avx
decide copy never 3840 36863 copy.avx.nt.pages4
decide copy never 36864 max copy.avx.nt.streams4
decide move unknown 256 7864319 move.avx
decide move unknown 7864320 max move.avx.nt.streams4
decide move soon 256 5767167 move.avx
decide move soon 5767168 13631487 move.rep.movsb
decide move soon 13631488 max move.avx.nt.streams4
decide move never 256 3839 move.avx
decide move never 3840 36863 move.avx.nt.pages4
decide move never 36864 max move.avx.nt.streams4
decide fill unknown 256 7864319 fill.avx
decide fill unknown 7864320 9437183 fill.rep.stosb
decide fill unknown 9437184 18874367 fill.avx
decide fill unknown 18874368 max fill.avx.nt
decide fill soon 256 491519 fill.avx
decide fill soon 491520 589823 fill.rep.stosb
decide fill soon 589824 15728639 fill.avx
decide fill soon 15728640 18874367 fill.sse2
decide fill soon 18874368 max fill.avx.nt
decide fill never 256 3839 fill.avx
decide fill never 3840 max fill.avx.nt
decide zero unknown 256 7864319 zero.avx
decide zero unknown 7864320 15728639 zero.rep.stosb
decide zero unknown 15728640 max zero.avx.nt
decide zero soon 256 7864319 zero.avx
decide zero soon 7864320 9437183 zero.rep.stosb
decide zero soon 9437184 18874367 zero.avx
decide zero soon 18874368 max zero.clzero
decide zero never 256 3839 zero.avx
decide zero never 3840 26623 zero.avx.nt
decide zero never 26624 61439 zero.clzero
decide zero never 61440 589823 zero.avx.nt
decide zero never 589824 1966079 zero.clzero
decide zero never 1966080 max zero.avx.nt
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
parallel copy spawned 2 16777216
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 56 fnv1a64:706aefc734f7dc99
