cachewise-profile 2
cpu AuthenticAMD 26 2 1 AMD EPYC
caches 49152 1048576 33554432
record 2026-11-22-costs-zen5-guest.csv fnv1a64:d9ba1645b1995228
written 2026-11-24T12:24:22Z by cachewise 0.1.0
note decided by the tuner on the simulated machine of that table
decide copy unknown 256 1048575 libc
decide copy unknown 1048576 max copy.rep.movsb.aligned
decide copy soon 256 1048575 libc
decide copy soon 1048576 max copy.rep.movsb.aligned
decide move unknown 256 6291455 libc
decide move unknown 6291456 23068671 move.avx
decide move unknown 23068672 max move.avx512.nt.ends
decide move soon 256 6291455 libc
decide move soon 6291456 23068671 move.avx
decide move soon 23068672 max move.avx512.nt.ends
decide fill unknown 256 2047 libc fill.avx
decide fill unknown 2048 3103 fill.avx512
decide fill unknown 3104 max libc
decide fill soon 256 2047 libc fill.avx
decide fill soon 2048 3103 fill.avx512
decide fill soon 3104 max libc
decide zero unknown 256 max libc
decide zero soon 256 max libc
decide compare unknown 256 2047 libc compare.avx512
decide compare unknown 2048 106495 compare.avx512
decide compare unknown 106496 147455 compare.avx2
decide compare unknown 147456 1703935 compare.avx512
decide compare unknown 1703936 3145727 libc compare.avx512
decide compare unknown 3145728 max compare.avx512
decide equal unknown 256 2047 libc equal.avx512
decide equal unknown 2048 max equal.avx512
end 32 fnv1a64:a2c8cf0008131f24
