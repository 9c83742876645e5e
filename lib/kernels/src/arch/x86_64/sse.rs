//! SSE as the source documents used it: `movaps` and `movntps` over xmm registers. Seed 000's
//! `sse_*` twins and seed 002's copyH to copyJ.
//!
//! The destination is brought to a 16-byte boundary; a source that is then misaligned is loaded by
//! `movups` instead. A move is a move: denormals and NaNs pass unchanged (seed 002.12 asks only
//! whether they pass as fast).

use super::edge::{around, fill_around, pattern};
use crate::arch::rows::row;
use crate::isa::Features;
use crate::kernel::{Kernel, Prefetch, RegisterClass, StoreKind};

/// One line in four load-store pairs (seed 000).
macro_rules! by_1 {
    ($load:literal, $store:literal) => {
        groups!($load, $store, ["xmm0" 0] ["xmm1" 16] ["xmm2" 32] ["xmm3" 48])
    };
}
/// Four loads, four stores (seed 002.5).
macro_rules! by_4 {
    ($load:literal, $store:literal) => {
        groups!($load, $store, ["xmm0" 0, "xmm1" 16, "xmm2" 32, "xmm3" 48])
    };
}

sse_copies! {
    copy_vlasenko, 64: loop_vlasenko!(by_1!("movaps", "movaps")),
        loop_vlasenko!(by_1!("movups", "movaps")), "";
    copy_nt, 64: loop_plain!(by_4!("movaps", "movntps"), 64),
        loop_plain!(by_4!("movups", "movntps"), 64), "sfence";
    copy_nt_pf320, 64: loop_pf320!(by_4!("movaps", "movntps")),
        loop_pf320!(by_4!("movups", "movntps")), "sfence";
    copy_nt_block4k, 64: loop_block!(ascending, 64, by_4!("movaps", "movntps")),
        loop_block!(ascending, 64, by_4!("movups", "movntps")), "sfence";
    copy_nt_vlasenko, 64: loop_vlasenko!(by_1!("movaps", "movntps")),
        loop_vlasenko!(by_1!("movups", "movntps")), "sfence";
}

/// A fill and a zero of those names: four stores per 64 bytes, closed by `$last`.
macro_rules! fill {
    ($fill:ident, $zero:ident, $store:literal, $last:literal) => {
        unsafe extern "C" fn $fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
            let pattern = pattern(byte);
            let body = |dst: *mut u8, lines: usize| {
                // SAFETY: `fill_around` passes one or more whole lines of the buffer, from
                // a 16-aligned address on.
                unsafe {
                    core::arch::asm!(
                        "movq xmm0, rax",
                        "movlhps xmm0, xmm0",
                        ".p2align 4",
                        "2:",
                        concat!($store, " [rdi], xmm0"),
                        concat!($store, " [rdi + 16], xmm0"),
                        concat!($store, " [rdi + 32], xmm0"),
                        concat!($store, " [rdi + 48], xmm0"),
                        "add rdi, 64",
                        "dec rcx",
                        "jnz 2b",
                        $last,
                        inout("rdi") dst => _,
                        inout("rcx") lines => _,
                        in("rax") pattern,
                        out("xmm0") _,
                        options(nostack),
                    );
                }
            };
            // SAFETY: the caller's promise is the callee's.
            unsafe { fill_around::<16, 64>(dst, pattern, n, body) }
        }

        unsafe extern "C" fn $zero(dst: *mut u8, n: usize) -> *mut u8 {
            // SAFETY: the caller's promise is the callee's.
            unsafe { $fill(dst, 0, n) }
        }
    };
}
fill!(fill, zero, "movaps", "");
fill!(fill_nt, zero_nt, "movntps", "sfence");

const COPY: Kernel = Kernel { deploy: false, ..row(RegisterClass::Xmm, Features::SSE, 4) };
const NT: Kernel = Kernel { store: StoreKind::NonTemporal, ..COPY };
// The byte reaches its register by SSE2's movq, which every x86-64 CPU has.
const FILL: Kernel = Kernel { requires: Features::SSE.and(Features::SSE2), grouping: 0, ..COPY };
const FILL_NT: Kernel = Kernel { store: StoreKind::NonTemporal, ..FILL };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "copy.sse.pf320.vlasenko" like COPY, Copy(copy_vlasenko)
        { prefetch: Prefetch::Nta(320), grouping: 1, aliases: &["sse_APn"] },
        "seed 000 sse_APn: movaps pairs, prefetch at +320 until the last 320 bytes";
    "copy.sse.nt" like NT, Copy(copy_nt) { aliases: &["copyH"] },
        "seed 002 copyH: movntps, four loads then four stores; sfence";
    "copy.sse.nt.pf320" like NT, Copy(copy_nt_pf320) { prefetch: Prefetch::Nta(320), aliases: &["copyI"] },
        "seed 002 copyI (inferred): copyH with prefetchnta 320 bytes ahead";
    "copy.sse.nt.block4k" like NT, Copy(copy_nt_block4k) { prefetch: Prefetch::Block(4096), aliases: &["copyJ"] },
        "seed 002 copyJ (inferred): copyH behind block prefetch of 4 KiB";
    "copy.sse.nt.pf320.vlasenko" like NT, Copy(copy_nt_vlasenko)
        { prefetch: Prefetch::Nta(320), grouping: 1, aliases: &["sse_APN"] },
        "seed 000 sse_APN: movaps-movntps pairs, prefetch at +320 until the last 320 bytes";
    "fill.sse" like FILL, Fill(fill), "movaps, four stores per 64 bytes";
    "zero.sse" like FILL, Zero(zero) { aliases: &["sse_APn"] },
        "seed 000 sse_APn: movaps, four stores per 64 bytes";
    "fill.sse.nt" like FILL_NT, Fill(fill_nt), "movntps, four stores per 64 bytes, sfence";
    "zero.sse.nt" like FILL_NT, Zero(zero_nt) { aliases: &["sse_APN"] },
        "seed 000 sse_APN: movntps, four stores per 64 bytes, sfence";
};
