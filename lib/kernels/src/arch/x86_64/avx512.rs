//! AVX-512: 64-byte zmm registers, a whole cache line in each. Comparing bytes needs AVX-512BW.

vector_file!(
    Zmm,
    "avx,avx512f",
    "avx512",
    Zmm::COMPARE_REQUIRES,
    "avx,avx2,avx512f,avx512bw",
    "avx512"
);
