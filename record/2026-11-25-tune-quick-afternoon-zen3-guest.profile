cachewise-profile 2
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record AuthenticAMD-25-1-1.record.jsonl fnv1a64:1212b7d229eff4a1
written 2026-11-25T13:51:33Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 26623 copy.avx
decide copy unknown 26624 49151 libc copy.avx.ends
decide copy unknown 49152 425983 copy.avx.ends
decide copy unknown 425984 33554431 libc copy.avx.ends
decide copy unknown 33554432 max copy.avx.nt.ends
decide copy soon 256 26623 copy.avx
decide copy soon 26624 49151 libc copy.avx.ends
decide copy soon 49152 425983 copy.avx.ends
decide copy soon 425984 33554431 libc copy.avx.ends
decide copy soon 33554432 max copy.avx.nt.ends
decide copy never 256 26623 copy.avx
decide copy never 26624 49151 libc copy.avx.ends
decide copy never 49152 425983 copy.avx.ends
decide copy never 425984 4194303 libc copy.avx.ends
decide copy never 4194304 max copy.avx.nt.pages4
decide move unknown 256 4607 move.avx
decide move unknown 4608 49151 libc move.avx
decide move unknown 49152 1179647 move.avx.ends
decide move unknown 1179648 67108863 libc
decide move unknown 67108864 max move.avx.nt
decide move soon 256 4607 move.avx
decide move soon 4608 49151 libc move.avx
decide move soon 49152 1179647 move.avx.ends
decide move soon 1179648 67108863 libc
decide move soon 67108864 max move.avx.nt
decide move never 256 4607 move.avx
decide move never 4608 49151 libc move.avx
decide move never 49152 1179647 move.avx.ends
decide move never 1179648 4194303 libc
decide move never 4194304 max move.avx.nt.pages4
decide fill unknown 256 26623 fill.avx
decide fill unknown 26624 49151 libc fill.avx
decide fill unknown 49152 3407871 fill.avx
decide fill unknown 3407872 max libc fill.rep.stosb
decide fill soon 256 26623 fill.avx
decide fill soon 26624 49151 libc fill.avx
decide fill soon 49152 3407871 fill.avx
decide fill soon 3407872 max libc fill.rep.stosb
decide fill never 256 26623 fill.avx
decide fill never 26624 49151 libc fill.avx
decide fill never 49152 3407871 fill.avx
decide fill never 3407872 8388607 libc fill.avx
decide fill never 8388608 max fill.avx.nt
decide zero unknown 256 4607 zero.avx
decide zero unknown 4608 1048575 libc zero.avx
decide zero unknown 1048576 18874367 zero.avx
decide zero unknown 18874368 67108863 libc zero.avx
decide zero unknown 67108864 max zero.clzero
decide zero soon 256 4607 zero.avx
decide zero soon 4608 1048575 libc zero.avx
decide zero soon 1048576 18874367 zero.avx
decide zero soon 18874368 67108863 libc zero.avx
decide zero soon 67108864 max zero.clzero
decide zero never 256 4607 zero.avx
decide zero never 4608 1048575 libc zero.avx
decide zero never 1048576 14680063 zero.avx
decide zero never 14680064 max zero.avx.nt
decide compare unknown 256 max libc
decide equal unknown 256 53247 equal.avx2
decide equal unknown 53248 max libc equal.avx2
entry copy avx2
entry move avx2
entry fill avx2
entry zero avx2
entry compare avx2
entry equal avx2
parallel copy spawned 2 67108864
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 76 fnv1a64:db1cd541e7502557
