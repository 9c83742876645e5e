cachewise-profile 2
cpu AuthenticAMD 25 17 1 AMD EPYC
caches 32768 1048576 33554432
record 2026-11-25-costs-zen4-guest.csv fnv1a64:be8c63c318a3d804
written 2026-11-25T23:07:28Z by cachewise 0.1.0
note decided by the tuner on the simulated machine of that table
decide copy unknown 256 2047 libc copy.avx512
decide copy unknown 2048 6655 copy.avx
decide copy unknown 6656 524287 libc
decide copy unknown 524288 33554431 copy.avx
decide copy unknown 33554432 max copy.avx512.nt.ends
decide copy soon 256 2047 libc copy.avx512
decide copy soon 2048 6655 copy.avx
decide copy soon 6656 524287 libc
decide copy soon 524288 33554431 copy.avx
decide copy soon 33554432 max copy.avx512.nt.ends
decide move unknown 256 2047 libc move.avx512
decide move unknown 2048 6655 move.avx
decide move unknown 6656 524287 libc
decide move unknown 524288 33554431 move.avx
decide move unknown 33554432 max move.avx512.nt.pf512
decide move soon 256 2047 libc move.avx512
decide move soon 2048 6655 move.avx
decide move soon 6656 524287 libc
decide move soon 524288 33554431 move.avx
decide move soon 33554432 max move.avx512.nt.pf512
decide fill unknown 256 2047 libc fill.avx512
decide fill unknown 2048 3103 fill.avx512
decide fill unknown 3104 1048575 libc
decide fill unknown 1048576 37748735 fill.avx512
decide fill unknown 37748736 max libc fill.avx512.nt
decide fill soon 256 2047 libc fill.avx512
decide fill soon 2048 3103 fill.avx512
decide fill soon 3104 1048575 libc
decide fill soon 1048576 37748735 fill.avx512
decide fill soon 37748736 max libc fill.avx512.nt
decide zero unknown 256 2047 libc zero.avx512
decide zero unknown 2048 3103 zero.avx512
decide zero unknown 3104 65535 libc zero.avx
decide zero unknown 65536 18874367 zero.avx
decide zero unknown 18874368 67108863 libc zero.avx
decide zero unknown 67108864 max zero.avx512.nt
decide zero soon 256 2047 libc zero.avx512
decide zero soon 2048 3103 zero.avx512
decide zero soon 3104 65535 libc zero.avx
decide zero soon 65536 18874367 zero.avx
decide zero soon 18874368 67108863 libc zero.avx
decide zero soon 67108864 max zero.avx512.nt
decide compare unknown 256 2047 libc
decide compare unknown 2048 2079 compare.avx512
decide compare unknown 2080 16777215 libc
decide compare unknown 16777216 max compare.avx512
decide equal unknown 256 2047 libc equal.avx512
decide equal unknown 2048 6655 equal.avx512
decide equal unknown 6656 16777215 libc equal.avx512
decide equal unknown 16777216 max equal.avx512
end 56 fnv1a64:1d68c6b821277b17
