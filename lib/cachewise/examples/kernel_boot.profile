cachewise-profile 2
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record quick.record.jsonl fnv1a64:3e007c49ebd446fa
written 2026-11-21T11:12:54Z by cachewise 0.1.0
note effort quick, glibc 2.36
note soon = operation + reader; never = operation + bystander
note unknown = operation 1/2, soon 1/4, never 1/4, geometric mean of ratios
decide copy unknown 256 360447 copy.avx
decide copy unknown 360448 3932159 copy.sse2
decide copy unknown 3932160 4718591 copy.rep.movsb.aligned
decide copy unknown 4718592 11534335 copy.sse2
decide copy unknown 11534336 max copy.avx.nt.streams4
decide copy soon 256 45055 copy.avx
decide copy soon 45056 7864319 copy.sse2
decide copy soon 7864320 11534335 copy.rep.movsb
decide copy soon 11534336 max copy.avx.nt.streams4
decide copy never 256 3839 copy.avx
decide copy never 3840 45055 copy.avx.nt.pages4
decide copy never 45056 max copy.avx.nt.streams4
decide move unknown 256 9437183 move.avx
decide move unknown 9437184 max move.avx.nt.streams4
decide move soon 256 36863 move.avx
decide move soon 36864 6815743 move.sse2
decide move soon 6815744 15728639 move.rep.movsb
decide move soon 15728640 max move.avx.nt.streams4
decide move never 256 3839 move.avx
decide move never 3840 45055 move.avx.nt.pages4
decide move never 45056 max move.avx.nt.streams4
decide fill unknown 256 23068671 fill.avx
decide fill unknown 23068672 max fill.avx.nt
decide fill soon 256 1966079 fill.avx
decide fill soon 1966080 31457279 fill.rep.stosb
decide fill soon 31457280 max fill.sse2
decide fill never 256 3839 fill.avx
decide fill never 3840 max fill.avx.nt
decide zero unknown 256 13631487 zero.avx
decide zero unknown 13631488 23068671 zero.avx.nt
decide zero unknown 23068672 max zero.clzero
decide zero soon 256 18874367 zero.avx
decide zero soon 18874368 max zero.clzero
decide zero never 256 3839 zero.avx
decide zero never 3840 180223 zero.clzero
decide zero never 180224 27262975 zero.avx.nt
decide zero never 27262976 max zero.clzero
decide compare unknown 256 max compare.avx2
decide equal unknown 256 max equal.avx2
end 47 fnv1a64:b2a95d66cda903c7
