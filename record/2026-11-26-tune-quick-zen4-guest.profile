cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record 2026-11-26-tune-quick-zen4-guest.jsonl.gz fnv1a64:954e37308ac25816
written 2026-11-26T03:38:50Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 3103 copy.avx512
decide copy unknown 3104 524287 libc copy.avx
decide copy unknown 524288 1179647 copy.avx
decide copy unknown 1179648 2097151 libc copy.avx512
decide copy unknown 2097152 23068671 copy.avx
decide copy unknown 23068672 max copy.avx512.nt.pf512
decide copy soon 256 3103 copy.avx512
decide copy soon 3104 524287 libc copy.avx
decide copy soon 524288 1179647 copy.avx
decide copy soon 1179648 2097151 libc copy.avx512
decide copy soon 2097152 23068671 copy.avx
decide copy soon 23068672 max copy.avx512.nt.pf512
decide copy never 256 3103 copy.avx512
decide copy never 3104 524287 libc copy.avx
decide copy never 524288 1179647 copy.avx
decide copy never 1179648 2097151 libc copy.avx512
decide copy never 2097152 16777215 copy.avx
decide copy never 16777216 max copy.avx512.nt
decide move unknown 256 786431 libc
decide move unknown 786432 3407871 move.avx
decide move unknown 3407872 6291455 libc move.avx
decide move unknown 6291456 18874367 move.avx
decide move unknown 18874368 max libc move.avx512.nt.ends
decide move soon 256 786431 libc
decide move soon 786432 3407871 move.avx
decide move soon 3407872 6291455 libc move.avx
decide move soon 6291456 18874367 move.avx
decide move soon 18874368 max libc move.avx512.nt.ends
decide move never 256 786431 libc
decide move never 786432 3407871 move.avx
decide move never 3407872 6291455 libc move.avx
decide move never 6291456 16777215 move.avx
decide move never 16777216 max move.avx512.nt
decide fill unknown 256 3145727 libc fill.avx512
decide fill unknown 3145728 37748735 fill.avx512
decide fill unknown 37748736 max libc fill.avx512
decide fill soon 256 3145727 libc fill.avx512
decide fill soon 3145728 37748735 fill.avx512
decide fill soon 37748736 max libc fill.avx512
decide fill never 256 3145727 libc fill.avx512
decide fill never 3145728 37748735 fill.avx512
decide fill never 37748736 max libc fill.avx512
decide zero unknown 256 196607 libc zero.avx
decide zero unknown 196608 6291455 zero.avx
decide zero unknown 6291456 6815743 zero.avx512
decide zero unknown 6815744 max libc zero.rep.stosb
decide zero soon 256 196607 libc zero.avx
decide zero soon 196608 6291455 zero.avx
decide zero soon 6291456 6815743 zero.avx512
decide zero soon 6815744 max libc zero.rep.stosb
decide zero never 256 196607 libc zero.avx
decide zero never 196608 6291455 zero.avx
decide zero never 6291456 6815743 zero.avx512
decide zero never 6815744 16777215 libc zero.rep.stosb
decide zero never 16777216 max zero.clzero
decide compare unknown 256 max libc
decide equal unknown 256 6655 equal.avx512
decide equal unknown 6656 max libc
entry copy avx512vl
entry move avx512vl
entry fill avx512vl
entry zero avx512vl
entry compare avx512vl
entry equal avx512vl
parallel copy spawned 2 67108864
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 74 fnv1a64:a20cff2befabbda7
