//! The vector registers that `family.rs` is generic over: xmm, ymm, zmm behind one trait.
//!
//! Every method compiles to the one instruction it is named after once it is inlined into a
//! function that enables the vector's ISA; that is the caller's obligation throughout.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "the group of loads in `differing_4` discharges one obligation: 4 x BYTES readable"
)]

use crate::isa::Features;
use crate::kernel::RegisterClass;
use core::arch::x86_64::*;

/// One vector register's worth of bytes.
///
/// # Safety contract of every method
/// The enclosing function enables the vector's ISA and the CPU has it; pointers are valid for
/// `BYTES` bytes (and aligned to `BYTES` where the name says so).
pub(super) trait Vector: Copy {
    /// Bytes in the register.
    const BYTES: usize;
    const CLASS: RegisterClass;
    /// The next narrower vector; xmm is its own half.
    type Half: Vector;

    unsafe fn load(from: *const u8) -> Self;
    unsafe fn store(to: *mut u8, value: Self);
    unsafe fn store_aligned(to: *mut u8, value: Self);
    /// Store non-temporally.
    unsafe fn stream_aligned(to: *mut u8, value: Self);
    unsafe fn splat(byte: u8) -> Self;
}

/// A vector that can also compare bytes (AVX2 and AVX-512BW are needed above SSE2).
pub(super) trait ComparingVector: Vector {
    type HalfComparing: ComparingVector;
    /// Bit i is set when byte i of the two differs.
    unsafe fn differing(a: *const u8, b: *const u8) -> u64;
    /// Returns whether any of the `4 * BYTES` bytes differ.
    #[inline(always)]
    unsafe fn differs_4(a: *const u8, b: *const u8) -> bool {
        // SAFETY: the caller's promise.
        unsafe { Self::differing_4(a, b) }.is_some()
    }
    /// As [`differing`](ComparingVector::differing) for each of four vectors, where any of them
    /// differs; every byte is loaded once. Values after the first that is not 0 are
    /// undefined.
    unsafe fn differing_4(a: *const u8, b: *const u8) -> Option<[u64; 4]>;
}

#[derive(Clone, Copy)]
pub(super) struct Xmm(__m128i);
#[derive(Clone, Copy)]
pub(super) struct Ymm(__m256i);
#[derive(Clone, Copy)]
pub(super) struct Zmm(__m512i);

impl Xmm {
    pub(super) const REQUIRES: Features = Features::SSE2;
}
impl Ymm {
    pub(super) const REQUIRES: Features = Features::AVX;
    pub(super) const COMPARE_REQUIRES: Features = Features::AVX.and(Features::AVX2);
}
impl Zmm {
    /// AVX-512F implies AVX2, and the compiler uses both once it is enabled.
    pub(super) const REQUIRES: Features = Ymm::COMPARE_REQUIRES.and(Features::AVX512F);
    pub(super) const COMPARE_REQUIRES: Features = Zmm::REQUIRES.and(Features::AVX512BW);
}

macro_rules! vector {
    ($name:ident, $half:ident, $class:ident, $bytes:literal, $raw:ty,
     $load:ident, $store:ident, $store_aligned:ident, $stream:ident, $splat:ident) => {
        impl Vector for $name {
            const BYTES: usize = $bytes;
            const CLASS: RegisterClass = RegisterClass::$class;
            type Half = $half;

            #[inline(always)]
            unsafe fn load(from: *const u8) -> Self {
                // SAFETY: the trait's contract: the ISA is there and BYTES bytes are readable.
                $name(unsafe { $load(from.cast::<$raw>()) })
            }
            #[inline(always)]
            unsafe fn store(to: *mut u8, value: Self) {
                // SAFETY: the trait's contract: the ISA is there and BYTES bytes are writable.
                unsafe { $store(to.cast::<$raw>(), value.0) }
            }
            #[inline(always)]
            unsafe fn store_aligned(to: *mut u8, value: Self) {
                // SAFETY: as `store`, and the caller aligned `to`.
                unsafe { $store_aligned(to.cast::<$raw>(), value.0) }
            }
            #[inline(always)]
            unsafe fn stream_aligned(to: *mut u8, value: Self) {
                // SAFETY: as `store_aligned`; the kernel fences before it returns.
                unsafe { $stream(to.cast::<$raw>(), value.0) }
            }
            #[inline(always)]
            unsafe fn splat(byte: u8) -> Self {
                // SAFETY: the trait's contract: the ISA is there.
                $name(unsafe { $splat(byte as i8) })
            }
        }
    };
}

vector!(
    Xmm,
    Xmm,
    Xmm,
    16,
    __m128i,
    _mm_loadu_si128,
    _mm_storeu_si128,
    _mm_store_si128,
    _mm_stream_si128,
    _mm_set1_epi8
);
vector!(
    Ymm,
    Xmm,
    Ymm,
    32,
    __m256i,
    _mm256_loadu_si256,
    _mm256_storeu_si256,
    _mm256_store_si256,
    _mm256_stream_si256,
    _mm256_set1_epi8
);
vector!(
    Zmm,
    Ymm,
    Zmm,
    64,
    __m512i,
    _mm512_loadu_si512,
    _mm512_storeu_si512,
    _mm512_store_si512,
    _mm512_stream_si512,
    _mm512_set1_epi8
);

impl ComparingVector for Xmm {
    type HalfComparing = Xmm;
    #[inline(always)]
    unsafe fn differing(a: *const u8, b: *const u8) -> u64 {
        // SAFETY: 16 bytes are readable at both (trait contract).
        let equal = unsafe { _mm_cmpeq_epi8(Xmm::load(a).0, Xmm::load(b).0) };
        // SAFETY: SSE2 is part of x86-64.
        u64::from(unsafe { _mm_movemask_epi8(equal) } as u32 ^ 0xffff)
    }
    #[inline(always)]
    unsafe fn differing_4(a: *const u8, b: *const u8) -> Option<[u64; 4]> {
        let differing = |equal| {
            // SAFETY: SSE2 is part of x86-64.
            u64::from(unsafe { _mm_movemask_epi8(equal) } as u32 ^ 0xffff)
        };
        // SAFETY: 64 bytes are readable at both (trait contract); SSE2 is part of x86-64.
        unsafe {
            let e0 = _mm_cmpeq_epi8(Xmm::load(a).0, Xmm::load(b).0);
            let e1 = _mm_cmpeq_epi8(Xmm::load(a.add(16)).0, Xmm::load(b.add(16)).0);
            let e2 = _mm_cmpeq_epi8(Xmm::load(a.add(32)).0, Xmm::load(b.add(32)).0);
            let e3 = _mm_cmpeq_epi8(Xmm::load(a.add(48)).0, Xmm::load(b.add(48)).0);
            let all = _mm_and_si128(_mm_and_si128(e0, e1), _mm_and_si128(e2, e3));
            if _mm_movemask_epi8(all) == 0xffff {
                return None;
            }
            Some([differing(e0), differing(e1), differing(e2), differing(e3)])
        }
    }
}

impl ComparingVector for Ymm {
    type HalfComparing = Xmm;
    #[inline(always)]
    unsafe fn differing(a: *const u8, b: *const u8) -> u64 {
        // SAFETY: 32 bytes are readable at both and AVX2 is there (trait contract).
        let equal = unsafe { _mm256_cmpeq_epi8(Ymm::load(a).0, Ymm::load(b).0) };
        // SAFETY: AVX2 is there (trait contract).
        u64::from(!(unsafe { _mm256_movemask_epi8(equal) } as u32))
    }
    #[inline(always)]
    unsafe fn differing_4(a: *const u8, b: *const u8) -> Option<[u64; 4]> {
        // SAFETY: 128 bytes are readable at both and AVX2 is there (trait contract).
        unsafe {
            let e0 = _mm256_cmpeq_epi8(Ymm::load(a).0, Ymm::load(b).0);
            let e1 = _mm256_cmpeq_epi8(Ymm::load(a.add(32)).0, Ymm::load(b.add(32)).0);
            let e2 = _mm256_cmpeq_epi8(Ymm::load(a.add(64)).0, Ymm::load(b.add(64)).0);
            let e3 = _mm256_cmpeq_epi8(Ymm::load(a.add(96)).0, Ymm::load(b.add(96)).0);
            let all = _mm256_and_si256(_mm256_and_si256(e0, e1), _mm256_and_si256(e2, e3));
            if _mm256_movemask_epi8(all) == -1 {
                return None;
            }
            let masks = [
                _mm256_movemask_epi8(e0),
                _mm256_movemask_epi8(e1),
                _mm256_movemask_epi8(e2),
                _mm256_movemask_epi8(e3),
            ];
            Some([
                u64::from(!(masks[0] as u32)),
                u64::from(!(masks[1] as u32)),
                u64::from(!(masks[2] as u32)),
                u64::from(!(masks[3] as u32)),
            ])
        }
    }
}

impl ComparingVector for Zmm {
    type HalfComparing = Ymm;
    #[inline(always)]
    unsafe fn differing(a: *const u8, b: *const u8) -> u64 {
        // SAFETY: 64 bytes are readable at both and AVX-512BW is there (trait contract).
        unsafe { _mm512_cmpneq_epi8_mask(Zmm::load(a).0, Zmm::load(b).0) }
    }
    #[inline(always)]
    unsafe fn differing_4(a: *const u8, b: *const u8) -> Option<[u64; 4]> {
        /// Truth table of `(a ^ b) | c`.
        const XOR_OR: i32 = 0xBE;
        // SAFETY: 256 bytes are readable at both and AVX-512BW is there (trait contract).
        unsafe {
            let d0 = _mm512_xor_si512(Zmm::load(a).0, Zmm::load(b).0);
            let d1 = _mm512_xor_si512(Zmm::load(a.add(64)).0, Zmm::load(b.add(64)).0);
            let (a2, b2) = (Zmm::load(a.add(128)).0, Zmm::load(b.add(128)).0);
            let (a3, b3) = (Zmm::load(a.add(192)).0, Zmm::load(b.add(192)).0);
            let d02 = _mm512_ternarylogic_epi64::<XOR_OR>(a2, b2, d0);
            let d13 = _mm512_ternarylogic_epi64::<XOR_OR>(a3, b3, d1);
            let any = _mm512_or_si512(d02, d13);
            if _mm512_test_epi64_mask(any, any) == 0 {
                return None;
            }
            // The third and fourth include the first and second, which come before them.
            Some([
                _mm512_test_epi8_mask(d0, d0),
                _mm512_test_epi8_mask(d1, d1),
                _mm512_test_epi8_mask(d02, d02),
                _mm512_test_epi8_mask(d13, d13),
            ])
        }
    }
}
