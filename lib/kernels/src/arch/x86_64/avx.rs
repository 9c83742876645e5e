//! AVX: 32-byte ymm registers. Comparing bytes in them needs AVX2, and is named after it.

vector_file!(Ymm, "avx", "avx", Ymm::COMPARE_REQUIRES, "avx,avx2", "avx2");
