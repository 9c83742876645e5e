cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record AuthenticAMD-25-17-1.record.jsonl fnv1a64:9a6b55f7887bb380
written 2026-11-25T03:04:29Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 786431 libc
decide copy unknown 786432 2359295 copy.avx512
decide copy unknown 2359296 6291455 libc copy.avx
decide copy unknown 6291456 23068671 copy.avx
decide copy unknown 23068672 max copy.avx512.nt.pf512
decide copy soon 256 786431 libc
decide copy soon 786432 2359295 copy.avx512
decide copy soon 2359296 6291455 libc copy.avx
decide copy soon 6291456 23068671 copy.avx
decide copy soon 23068672 max copy.avx512.nt.pf512
decide copy never 256 786431 libc
decide copy never 786432 2359295 copy.avx512
decide copy never 2359296 6291455 libc copy.avx
decide copy never 6291456 10485759 copy.avx
decide copy never 10485760 max copy.avx512.nt
decide move unknown 256 1048575 libc move.avx512
decide move unknown 1048576 9437183 move.avx
decide move unknown 9437184 33554431 libc move.avx
decide move unknown 33554432 max move.avx512.nt.pf512
decide move soon 256 1048575 libc move.avx512
decide move soon 1048576 9437183 move.avx
decide move soon 9437184 33554431 libc move.avx
decide move soon 33554432 max move.avx512.nt.pf512
decide move never 256 1048575 libc move.avx512
decide move never 1048576 9437183 move.avx
decide move never 9437184 10485759 libc
decide move never 10485760 max move.avx512.nt
decide fill unknown 256 16777215 libc
decide fill unknown 16777216 37748735 fill.avx512
decide fill unknown 37748736 max libc fill.rep.stosb
decide fill soon 256 16777215 libc
decide fill soon 16777216 37748735 fill.avx512
decide fill soon 37748736 max libc fill.rep.stosb
decide fill never 256 16777215 libc
decide fill never 16777216 37748735 fill.avx512
decide fill never 37748736 max libc fill.rep.stosb
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide zero never 256 12582911 libc zero.avx
decide zero never 12582912 max zero.clzero
decide compare unknown 256 2079 compare.avx512
decide compare unknown 2080 max libc
decide equal unknown 256 13311 equal.avx512
decide equal unknown 13312 max libc
entry copy avx2
entry move avx2
entry fill avx512vl.masked
entry zero avx512vl.masked
entry compare avx512vl.masked
entry equal avx512vl.masked
parallel copy spawned 2 67108864
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 60 fnv1a64:7db945424318132c
