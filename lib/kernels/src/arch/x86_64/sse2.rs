//! SSE2: 16-byte xmm registers, part of every x86-64 CPU.

vector_file!(Xmm, "sse2", "sse2", Xmm::REQUIRES, "sse2", "sse2");
