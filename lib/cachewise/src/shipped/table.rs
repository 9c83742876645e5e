// Made of `profiles/` by a test in `shipped.rs`.
&[
    shipped! {
        "AuthenticAMD-25-1.profile" "AMD Zen 3 servers (family 25 model 1)"
        "AuthenticAMD" 25 1 [32768, 524288, 33554432]
        decide Copy Unknown (256 2047 LibcOr b"avx") (2048 26623 Kernel b"avx") (26624 49151 LibcOr b"avx.ends") (49152 11534335 Kernel b"avx.ends") (11534336 46137343 Kernel b"sse2") (46137344 18446744073709551615 Kernel b"avx.nt.ends")
        decide Copy Soon (256 2047 LibcOr b"avx") (2048 26623 Kernel b"avx") (26624 49151 LibcOr b"avx.ends") (49152 11534335 Kernel b"avx.ends") (11534336 46137343 Kernel b"sse2") (46137344 18446744073709551615 Kernel b"avx.nt.ends")
        decide Move Unknown (256 2047 LibcOr b"avx") (2048 4607 Kernel b"avx") (4608 12287 LibcOr b"avx.ends") (12288 36863 Kernel b"avx") (36864 4718591 Kernel b"avx.ends") (4718592 33554431 Kernel b"sse2") (33554432 18446744073709551615 Kernel b"avx.nt")
        decide Move Soon (256 2047 LibcOr b"avx") (2048 4607 Kernel b"avx") (4608 12287 LibcOr b"avx.ends") (12288 36863 Kernel b"avx") (36864 4718591 Kernel b"avx.ends") (4718592 33554431 Kernel b"sse2") (33554432 18446744073709551615 Kernel b"avx.nt")
        decide Fill Unknown (256 2047 LibcOr b"avx") (2048 3407871 Kernel b"avx") (3407872 18446744073709551615 Libc)
        decide Fill Soon (256 2047 LibcOr b"avx") (2048 3407871 Kernel b"avx") (3407872 18446744073709551615 Libc)
        decide Zero Unknown (256 2047 LibcOr b"avx") (2048 4607 Kernel b"avx") (4608 524287 Libc) (524288 18874367 Kernel b"avx") (18874368 18446744073709551615 LibcOr b"rep.stosb")
        decide Zero Soon (256 2047 LibcOr b"avx") (2048 4607 Kernel b"avx") (4608 524287 Libc) (524288 18874367 Kernel b"avx") (18874368 18446744073709551615 LibcOr b"rep.stosb")
        decide Compare Unknown (256 2047 Libc) (2048 2079 Kernel b"avx2") (2080 3145727 Libc) (3145728 18446744073709551615 Kernel b"avx2")
        decide Equal Unknown (256 2047 LibcOr b"avx2") (2048 53247 Kernel b"avx2") (53248 3145727 Libc) (3145728 18446744073709551615 Kernel b"avx2")
    },
    shipped! {
        "AuthenticAMD-25-17.profile" "AMD Zen 4 servers (family 25 model 17)"
        "AuthenticAMD" 25 17 [32768, 1048576, 33554432]
        decide Copy Unknown (256 2047 LibcOr b"avx512") (2048 6655 Kernel b"avx") (6656 524287 Libc) (524288 33554431 Kernel b"avx") (33554432 18446744073709551615 Kernel b"avx512.nt.ends")
        decide Copy Soon (256 2047 LibcOr b"avx512") (2048 6655 Kernel b"avx") (6656 524287 Libc) (524288 33554431 Kernel b"avx") (33554432 18446744073709551615 Kernel b"avx512.nt.ends")
        decide Move Unknown (256 2047 LibcOr b"avx512") (2048 6655 Kernel b"avx") (6656 524287 Libc) (524288 33554431 Kernel b"avx") (33554432 18446744073709551615 Kernel b"avx512.nt.pf512")
        decide Move Soon (256 2047 LibcOr b"avx512") (2048 6655 Kernel b"avx") (6656 524287 Libc) (524288 33554431 Kernel b"avx") (33554432 18446744073709551615 Kernel b"avx512.nt.pf512")
        decide Fill Unknown (256 2047 LibcOr b"avx512") (2048 3103 Kernel b"avx512") (3104 1048575 Libc) (1048576 37748735 Kernel b"avx512") (37748736 18446744073709551615 LibcOr b"avx512.nt")
        decide Fill Soon (256 2047 LibcOr b"avx512") (2048 3103 Kernel b"avx512") (3104 1048575 Libc) (1048576 37748735 Kernel b"avx512") (37748736 18446744073709551615 LibcOr b"avx512.nt")
        decide Zero Unknown (256 2047 LibcOr b"avx512") (2048 3103 Kernel b"avx512") (3104 65535 LibcOr b"avx") (65536 18874367 Kernel b"avx") (18874368 67108863 LibcOr b"avx") (67108864 18446744073709551615 Kernel b"avx512.nt")
        decide Zero Soon (256 2047 LibcOr b"avx512") (2048 3103 Kernel b"avx512") (3104 65535 LibcOr b"avx") (65536 18874367 Kernel b"avx") (18874368 67108863 LibcOr b"avx") (67108864 18446744073709551615 Kernel b"avx512.nt")
        decide Compare Unknown (256 2047 Libc) (2048 2079 Kernel b"avx512") (2080 16777215 Libc) (16777216 18446744073709551615 Kernel b"avx512")
        decide Equal Unknown (256 2047 LibcOr b"avx512") (2048 6655 Kernel b"avx512") (6656 16777215 LibcOr b"avx512") (16777216 18446744073709551615 Kernel b"avx512")
    },
    shipped! {
        "AuthenticAMD-26-2.profile" "AMD Zen 5 servers (family 26 model 2)"
        "AuthenticAMD" 26 2 [49152, 1048576, 33554432]
        decide Copy Unknown (256 1048575 Libc) (1048576 18446744073709551615 Kernel b"rep.movsb.aligned")
        decide Copy Soon (256 1048575 Libc) (1048576 18446744073709551615 Kernel b"rep.movsb.aligned")
        decide Move Unknown (256 6291455 Libc) (6291456 23068671 Kernel b"avx") (23068672 18446744073709551615 Kernel b"avx512.nt.ends")
        decide Move Soon (256 6291455 Libc) (6291456 23068671 Kernel b"avx") (23068672 18446744073709551615 Kernel b"avx512.nt.ends")
        decide Fill Unknown (256 2047 LibcOr b"avx") (2048 3103 Kernel b"avx512") (3104 18446744073709551615 Libc)
        decide Fill Soon (256 2047 LibcOr b"avx") (2048 3103 Kernel b"avx512") (3104 18446744073709551615 Libc)
        decide Zero Unknown (256 18446744073709551615 Libc)
        decide Zero Soon (256 18446744073709551615 Libc)
        decide Compare Unknown (256 2047 LibcOr b"avx512") (2048 106495 Kernel b"avx512") (106496 147455 Kernel b"avx2") (147456 1703935 Kernel b"avx512") (1703936 3145727 LibcOr b"avx512") (3145728 18446744073709551615 Kernel b"avx512")
        decide Equal Unknown (256 2047 LibcOr b"avx512") (2048 18446744073709551615 Kernel b"avx512")
    },
    shipped! {
        "GenuineIntel-6-85.profile" "Intel Skylake and Cascade Lake servers (family 6 model 85)"
        "GenuineIntel" 6 85 [32768, 1048576, 37486592]
        decide Copy Unknown (256 32767 Libc) (32768 2359295 Kernel b"avx512.ends") (2359296 18446744073709551615 LibcOr b"sse2.ends")
        decide Copy Soon (256 32767 Libc) (32768 2359295 Kernel b"avx512.ends") (2359296 18446744073709551615 LibcOr b"sse2.ends")
        decide Move Unknown (256 32767 Libc) (32768 851967 Kernel b"avx512.ends") (851968 18446744073709551615 LibcOr b"avx")
        decide Move Soon (256 32767 Libc) (32768 851967 Kernel b"avx512.ends") (851968 18446744073709551615 LibcOr b"avx")
        decide Fill Unknown (256 2047 Libc) (2048 18431 Kernel b"avx512") (18432 393215 Libc) (393216 589823 Kernel b"avx512") (589824 18446744073709551615 Libc)
        decide Fill Soon (256 2047 Libc) (2048 18431 Kernel b"avx512") (18432 393215 Libc) (393216 589823 Kernel b"avx512") (589824 18446744073709551615 Libc)
        decide Zero Unknown (256 3071 LibcOr b"avx512") (3072 18431 Kernel b"avx512") (18432 262143 Libc) (262144 589823 Kernel b"avx512") (589824 18446744073709551615 Libc)
        decide Zero Soon (256 3071 LibcOr b"avx512") (3072 18431 Kernel b"avx512") (18432 262143 Libc) (262144 589823 Kernel b"avx512") (589824 18446744073709551615 Libc)
        decide Compare Unknown (256 2047 LibcOr b"avx512") (2048 1179647 Kernel b"avx512") (1179648 4194303 LibcOr b"avx512") (4194304 6815743 Kernel b"avx512") (6815744 18446744073709551615 LibcOr b"avx512")
        decide Equal Unknown (256 2047 LibcOr b"avx512") (2048 851967 Kernel b"avx512") (851968 18446744073709551615 Libc)
    },
]
