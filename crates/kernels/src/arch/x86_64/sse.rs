//! SSE as the source documents used it: `movaps` and `movntps` over xmm registers. Seed 000's
//! `sse_*` twins and seed 002's copyH to copyJ.
//!
//! The destination is brought to a 16-byte boundary; a source that is then misaligned is loaded by
//! `movups` instead. A move is a move: denormals and NaNs pass unchanged (seed 002.12 asks only
//! whether they pass as fast).

use super::edge::{around, fill_around, pattern};
use crate::isa::Features;
use crate::kernel::{Function, Kernel, Prefetch, RegisterClass, StoreKind};

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

/// A copy of that name: integer edges around a loop over lines of 64 bytes, in one version for an
/// aligned source and one for any.
macro_rules! copy {
    ($($name:ident: $aligned:expr, $unaligned:expr, $last:literal;)+) => {$(
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            let body = |dst: *mut u8, src: *const u8, lines: usize| {
                if src.addr().is_multiple_of(16) {
                    copy_units!(
                        dst, src, lines, concat!($aligned, $last),
                        "xmm0", "xmm1", "xmm2", "xmm3"
                    );
                } else {
                    copy_units!(
                        dst, src, lines, concat!($unaligned, $last),
                        "xmm0", "xmm1", "xmm2", "xmm3"
                    );
                }
            };
            // SAFETY: the caller's promise is the callee's.
            unsafe { around::<16, 64>(dst, src, n, body) }
        }
    )+};
}

copy! {
    copy_vlasenko: loop_vlasenko!(by_1!("movaps", "movaps")),
        loop_vlasenko!(by_1!("movups", "movaps")), "";
    copy_nt: loop_plain!(by_4!("movaps", "movntps"), 64),
        loop_plain!(by_4!("movups", "movntps"), 64), "sfence";
    copy_nt_pf320: loop_pf320!(by_4!("movaps", "movntps")),
        loop_pf320!(by_4!("movups", "movntps")), "sfence";
    copy_nt_block4k: loop_block!(ascending, 64, by_4!("movaps", "movntps")),
        loop_block!(ascending, 64, by_4!("movups", "movntps")), "sfence";
    copy_nt_vlasenko: loop_vlasenko!(by_1!("movaps", "movntps")),
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

const NT: Kernel = Kernel {
    name: "copy.sse.nt",
    requires: Features::SSE,
    store: StoreKind::NonTemporal,
    prefetch: Prefetch::None,
    grouping: 4,
    registers: RegisterClass::Xmm,
    deploy: false,
    aliases: &["copyH"],
    about: "seed 002 copyH: movntps, four loads then four stores; sfence",
    function: Function::Copy(copy_nt),
};
// The byte reaches its register by SSE2's movq, which every x86-64 CPU has.
const FILL: Kernel = Kernel {
    name: "fill.sse",
    requires: Features::SSE.and(Features::SSE2),
    store: StoreKind::Temporal,
    grouping: 0,
    aliases: &[],
    about: "movaps, four stores per 64 bytes",
    function: Function::Fill(fill),
    ..NT
};

pub(crate) const ROWS: &[Kernel] = &[
    Kernel {
        name: "copy.sse.pf320.vlasenko",
        store: StoreKind::Temporal,
        prefetch: Prefetch::Nta(320),
        grouping: 1,
        aliases: &["sse_APn"],
        about: "seed 000 sse_APn: movaps pairs, prefetch at +320 until the last 320 bytes",
        function: Function::Copy(copy_vlasenko),
        ..NT
    },
    NT,
    Kernel {
        name: "copy.sse.nt.pf320",
        prefetch: Prefetch::Nta(320),
        aliases: &["copyI"],
        about: "seed 002 copyI (inferred): copyH with prefetchnta 320 bytes ahead",
        function: Function::Copy(copy_nt_pf320),
        ..NT
    },
    Kernel {
        name: "copy.sse.nt.block4k",
        prefetch: Prefetch::Block(4096),
        aliases: &["copyJ"],
        about: "seed 002 copyJ (inferred): copyH behind block prefetch of 4 KiB",
        function: Function::Copy(copy_nt_block4k),
        ..NT
    },
    Kernel {
        name: "copy.sse.nt.pf320.vlasenko",
        prefetch: Prefetch::Nta(320),
        grouping: 1,
        aliases: &["sse_APN"],
        about: "seed 000 sse_APN: movaps-movntps pairs, prefetch at +320 until the last 320 bytes",
        function: Function::Copy(copy_nt_vlasenko),
        ..NT
    },
    FILL,
    Kernel {
        name: "zero.sse",
        aliases: &["sse_APn"],
        about: "seed 000 sse_APn: movaps, four stores per 64 bytes",
        function: Function::Zero(zero),
        ..FILL
    },
    Kernel {
        name: "fill.sse.nt",
        store: StoreKind::NonTemporal,
        about: "movntps, four stores per 64 bytes, sfence",
        function: Function::Fill(fill_nt),
        ..FILL
    },
    Kernel {
        name: "zero.sse.nt",
        store: StoreKind::NonTemporal,
        aliases: &["sse_APN"],
        about: "seed 000 sse_APN: movntps, four stores per 64 bytes, sfence",
        function: Function::Zero(zero_nt),
        ..FILL
    },
];
