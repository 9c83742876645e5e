cachewise-profile 2
cpu AuthenticAMD 25 1 1 AMD EPYC
caches 32768 524288 33554432
record tune-quick.jsonl fnv1a64:ec4cab07d2bd8747
written 2026-11-25T08:25:26Z by cachewise 0.1.0
note budget 60 s, glibc 2.36
decide copy unknown 256 3103 copy.avx
decide copy unknown 3104 131071 libc copy.avx
decide copy unknown 131072 294911 copy.avx.ends
decide copy unknown 294912 2097151 libc copy.avx.ends
decide copy unknown 2097152 23068671 copy.avx.ends
decide copy unknown 23068672 max copy.avx.nt.ends
decide copy soon 256 3103 copy.avx
decide copy soon 3104 131071 libc copy.avx
decide copy soon 131072 294911 copy.avx.ends
decide copy soon 294912 2097151 libc copy.avx.ends
decide copy soon 2097152 23068671 copy.avx.ends
decide copy soon 23068672 max copy.avx.nt.ends
decide copy never 256 3103 copy.avx
decide copy never 3104 131071 libc copy.avx
decide copy never 131072 294911 copy.avx.ends
decide copy never 294912 1048575 libc copy.avx.ends
decide copy never 1048576 max copy.avx.nt.ends
decide move unknown 256 131071 libc move.avx
decide move unknown 131072 212991 move.avx.ends
decide move unknown 212992 max libc move.avx.ends
decide move soon 256 131071 libc move.avx
decide move soon 131072 212991 move.avx.ends
decide move soon 212992 max libc move.avx.ends
decide move never 256 131071 libc move.avx
decide move never 131072 212991 move.avx.ends
decide move never 212992 1048575 libc move.avx.ends
decide move never 1048576 max move.avx.nt.ends
decide fill unknown 256 49151 libc fill.avx
decide fill unknown 49152 589823 fill.avx
decide fill unknown 589824 max libc fill.avx
decide fill soon 256 49151 libc fill.avx
decide fill soon 49152 589823 fill.avx
decide fill soon 589824 max libc fill.avx
decide fill never 256 49151 libc fill.avx
decide fill never 49152 589823 fill.avx
decide fill never 589824 4194303 libc fill.avx
decide fill never 4194304 max fill.avx.nt
decide zero unknown 256 1572863 libc zero.avx
decide zero unknown 1572864 9437183 zero.avx
decide zero unknown 9437184 max libc zero.rep.stosb
decide zero soon 256 1572863 libc zero.avx
decide zero soon 1572864 9437183 zero.avx
decide zero soon 9437184 max libc zero.rep.stosb
decide zero never 256 1572863 libc zero.avx
decide zero never 1572864 8388607 zero.avx
decide zero never 8388608 max zero.clzero
decide compare unknown 256 max libc
decide equal unknown 256 3103 equal.avx2
decide equal unknown 3104 max libc
entry copy avx2
entry move avx2
entry fill avx2
entry zero avx2
entry compare avx2
entry equal avx2
parallel copy spawned 2 16777216
parallel copy pooled 2 16777216
parallel zero spawned 2 never
parallel zero pooled 2 never
end 65 fnv1a64:31e83473c67fdb1e
