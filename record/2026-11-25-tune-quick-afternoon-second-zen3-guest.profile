cachewise-profile 2
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record AuthenticAMD-25-1-1.record.jsonl fnv1a64:2d5b8ea97e969162
written 2026-11-25T14:39:57Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 18431 copy.avx
decide copy unknown 18432 49151 libc copy.avx.ends
decide copy unknown 49152 73727 copy.avx.ends
decide copy unknown 73728 33554431 libc copy.avx.ends
decide copy unknown 33554432 max copy.avx.nt.ends
decide copy soon 256 18431 copy.avx
decide copy soon 18432 49151 libc copy.avx.ends
decide copy soon 49152 73727 copy.avx.ends
decide copy soon 73728 33554431 libc copy.avx.ends
decide copy soon 33554432 max copy.avx.nt.ends
decide copy never 256 18431 copy.avx
decide copy never 18432 49151 libc copy.avx.ends
decide copy never 49152 73727 copy.avx.ends
decide copy never 73728 6291455 libc copy.avx.ends
decide copy never 6291456 max copy.avx.nt.ends
decide move unknown 256 49151 libc move.avx
decide move unknown 49152 212991 move.avx.ends
decide move unknown 212992 524287 libc move.avx.ends
decide move unknown 524288 6815743 move.avx.ends
decide move unknown 6815744 max libc move.avx.ends
decide move soon 256 49151 libc move.avx
decide move soon 49152 212991 move.avx.ends
decide move soon 212992 524287 libc move.avx.ends
decide move soon 524288 6815743 move.avx.ends
decide move soon 6815744 max libc move.avx.ends
decide move never 256 49151 libc move.avx
decide move never 49152 212991 move.avx.ends
decide move never 212992 524287 libc move.avx.ends
decide move never 524288 6291455 move.avx.ends
decide move never 6291456 max move.avx.nt.ends
decide fill unknown 256 36863 fill.avx
decide fill unknown 36864 65535 libc fill.rep.stosb
decide fill unknown 65536 3407871 fill.avx
decide fill unknown 3407872 67108863 libc fill.rep.stosb
decide fill unknown 67108864 max fill.avx.nt
decide fill soon 256 36863 fill.avx
decide fill soon 36864 65535 libc fill.rep.stosb
decide fill soon 65536 3407871 fill.avx
decide fill soon 3407872 67108863 libc fill.rep.stosb
decide fill soon 67108864 max fill.avx.nt
decide fill never 256 36863 fill.avx
decide fill never 36864 65535 libc fill.rep.stosb
decide fill never 65536 3407871 fill.avx
decide fill never 3407872 14680063 libc fill.rep.stosb
decide fill never 14680064 max fill.avx.nt
decide zero unknown 256 6655 zero.avx
decide zero unknown 6656 786431 libc zero.rep.stosb
decide zero unknown 786432 18874367 zero.avx
decide zero unknown 18874368 max libc zero.rep.stosb
decide zero soon 256 6655 zero.avx
decide zero soon 6656 786431 libc zero.rep.stosb
decide zero soon 786432 18874367 zero.avx
decide zero soon 18874368 max libc zero.rep.stosb
decide zero never 256 6655 zero.avx
decide zero never 6656 786431 libc zero.rep.stosb
decide zero never 786432 8388607 zero.avx
decide zero never 8388608 max zero.clzero
decide compare unknown 256 max libc
decide equal unknown 256 3103 equal.avx2
decide equal unknown 3104 max libc equal.avx2
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
end 76 fnv1a64:1957b7eec51f09a5
