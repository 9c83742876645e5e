cachewise-profile 2
cpu GenuineIntel 6 85 7 Intel(R) Xeon(R) Processor @ 2.50GHz
caches 32768 1048576 37486592
record 2026-11-22-costs-cascade-lake-guest.csv fnv1a64:b42c0c6312680f9d
written 2026-11-22T11:02:36Z by cachewise 0.1.0
note decided by the tuner on the simulated machine of that table
decide copy unknown 256 32767 libc
decide copy unknown 32768 2359295 copy.avx512.ends
decide copy unknown 2359296 max libc copy.sse2.ends
decide copy soon 256 32767 libc
decide copy soon 32768 2359295 copy.avx512.ends
decide copy soon 2359296 max libc copy.sse2.ends
decide move unknown 256 32767 libc
decide move unknown 32768 851967 move.avx512.ends
decide move unknown 851968 max libc move.avx
decide move soon 256 32767 libc
decide move soon 32768 851967 move.avx512.ends
decide move soon 851968 max libc move.avx
decide fill unknown 256 2047 libc
decide fill unknown 2048 18431 fill.avx512
decide fill unknown 18432 393215 libc
decide fill unknown 393216 589823 fill.avx512
decide fill unknown 589824 max libc
decide fill soon 256 2047 libc
decide fill soon 2048 18431 fill.avx512
decide fill soon 18432 393215 libc
decide fill soon 393216 589823 fill.avx512
decide fill soon 589824 max libc
decide zero unknown 256 3071 libc zero.avx512
decide zero unknown 3072 18431 zero.avx512
decide zero unknown 18432 262143 libc
decide zero unknown 262144 589823 zero.avx512
decide zero unknown 589824 max libc
decide zero soon 256 3071 libc zero.avx512
decide zero soon 3072 18431 zero.avx512
decide zero soon 18432 262143 libc
decide zero soon 262144 589823 zero.avx512
decide zero soon 589824 max libc
decide compare unknown 256 2047 libc compare.avx512
decide compare unknown 2048 1179647 compare.avx512
decide compare unknown 1179648 4194303 libc compare.avx512
decide compare unknown 4194304 6815743 compare.avx512
decide compare unknown 6815744 max libc compare.avx512
decide equal unknown 256 2047 libc equal.avx512
decide equal unknown 2048 851967 equal.avx512
decide equal unknown 851968 max libc
end 46 fnv1a64:bdb46a9f01adc08f
