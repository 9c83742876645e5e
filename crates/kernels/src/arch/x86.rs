//! 32-bit x86, on whose CPUs the source documents measured: their routines, and what stands beside
//! them there. Measured, never deployed.
//!
//! Edges are copied by `rep movsb`. `esi` belongs to the compiler, which no operand of `asm!` may
//! name; so string instructions find the source in `edx` and give `esi` back.

use crate::isa::Features;
use crate::table::{Function, Kernel, Prefetch, RegisterClass, StoreKind};
use core::arch::asm;

/// Bytes of a round.
const LINE: usize = 64;

/// A string copy of that many elements, and the rest of the bytes one by one.
macro_rules! string_copy {
    ($($name:ident: $instruction:literal $shift:literal;)+) => {$(
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            // SAFETY: n >> shift elements and the bytes left over are n bytes; the caller's promise.
            unsafe {
                asm!(
                    "xchg esi, edx",
                    $instruction,
                    "mov ecx, eax",
                    "rep movsb",
                    "mov esi, edx",
                    inout("edi") dst => _,
                    inout("edx") src => _,
                    inout("ecx") n >> $shift => _,
                    in("eax") n & ((1 << $shift) - 1),
                    options(nostack),
                );
            }
            dst
        }
    )+};
}
string_copy! {
    copy_movsb: "rep movsb" 0;
    copy_movsl: "rep movsd" 2;
}

/// A string fill of that many elements, and the rest of the bytes one by one.
macro_rules! string_fill {
    ($($name:ident: $instruction:literal $shift:literal;)+) => {$(
        unsafe extern "C" fn $name(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
            // SAFETY: n >> shift elements and the bytes left over are n bytes; the caller's promise.
            unsafe {
                asm!(
                    $instruction,
                    "mov ecx, edx",
                    "rep stosb",
                    inout("edi") dst => _,
                    inout("ecx") n >> $shift => _,
                    in("edx") n & ((1 << $shift) - 1),
                    in("eax") u32::from(byte as u8) * 0x0101_0101,
                    options(nostack),
                );
            }
            dst
        }
    )+};
}
string_fill! {
    fill_stosb: "rep stosb" 0;
    fill_stosl: "rep stosd" 2;
}

/// Zeroing by a fill.
macro_rules! zero {
    ($($name:ident: $fill:ident;)+) => {$(
        unsafe extern "C" fn $name(dst: *mut u8, n: usize) -> *mut u8 {
            // SAFETY: the caller's promise is the callee's.
            unsafe { $fill(dst, 0, n) }
        }
    )+};
}
zero! {
    zero_stosb: fill_stosb;
    zero_stosl: fill_stosl;
    zero_mmx: fill_mmx;
    zero_mmx_nt: fill_mmx_nt;
    zero_sse2: fill_sse2;
    zero_sse2_nt: fill_sse2_nt;
}

/// A copy whose destination is aligned to `$align` first, then whole lines by pairs of one load and
/// one store, `$ahead` at the beginning of each, then `$end`, then the rest.
macro_rules! copy {
    ($($name:ident: align $align:literal, $load:literal $store:literal
        [$($register:literal $at:literal)+], ahead $ahead:literal, end $end:literal;)+) => {$(
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            let head = ((dst as usize).wrapping_neg() & ($align - 1)).min(n);
            // SAFETY: head is at most n; the caller's promise.
            unsafe { copy_movsb(dst, src, head) };
            let lines = (n - head) / LINE;
            if lines > 0 {
                // SAFETY: that many whole lines lie behind the head; prefetches never fault.
                unsafe {
                    asm!(
                        ".p2align 4",
                        "2:",
                        $ahead,
                        $(
                            concat!($load, " ", $register, ", [edx + ", $at, "]"),
                            concat!($store, " [edi + ", $at, "], ", $register),
                        )+
                        "add edx, 64",
                        "add edi, 64",
                        "dec ecx",
                        "jnz 2b",
                        $end,
                        inout("edi") dst.wrapping_add(head) => _,
                        inout("edx") src.wrapping_add(head) => _,
                        inout("ecx") lines => _,
                        clobber_abi("C"),
                        options(nostack),
                    );
                }
            }
            let done = head + lines * LINE;
            // SAFETY: what is left of the n bytes.
            unsafe { copy_movsb(dst.wrapping_add(done), src.wrapping_add(done), n - done) };
            dst
        }
    )+};
}
copy! {
    copy_movl: align 4, "mov" "mov"
        ["eax" 0 "eax" 4 "eax" 8 "eax" 12 "eax" 16 "eax" 20 "eax" 24 "eax" 28
         "eax" 32 "eax" 36 "eax" 40 "eax" 44 "eax" 48 "eax" 52 "eax" 56 "eax" 60], ahead "", end "";
    copy_movnti: align 4, "mov" "movnti"
        ["eax" 0 "eax" 4 "eax" 8 "eax" 12 "eax" 16 "eax" 20 "eax" 24 "eax" 28
         "eax" 32 "eax" 36 "eax" 40 "eax" 44 "eax" 48 "eax" 52 "eax" 56 "eax" 60],
        ahead "", end "sfence";
    copy_mmx: align 8, "movq" "movq"
        ["mm0" 0 "mm1" 8 "mm2" 16 "mm3" 24 "mm4" 32 "mm5" 40 "mm6" 48 "mm7" 56], ahead "", end "emms";
    copy_mmx_pf320: align 8, "movq" "movq"
        ["mm0" 0 "mm1" 8 "mm2" 16 "mm3" 24 "mm4" 32 "mm5" 40 "mm6" 48 "mm7" 56],
        ahead "prefetchnta [edx + 320]", end "emms";
    copy_mmx_nt: align 8, "movq" "movntq"
        ["mm0" 0 "mm1" 8 "mm2" 16 "mm3" 24 "mm4" 32 "mm5" 40 "mm6" 48 "mm7" 56],
        ahead "", end "sfence\nemms";
    copy_mmx_nt_pf320: align 8, "movq" "movntq"
        ["mm0" 0 "mm1" 8 "mm2" 16 "mm3" 24 "mm4" 32 "mm5" 40 "mm6" 48 "mm7" 56],
        ahead "prefetchnta [edx + 320]", end "sfence\nemms";
    copy_sse2: align 16, "movdqu" "movdqa" ["xmm0" 0 "xmm1" 16 "xmm2" 32 "xmm3" 48], ahead "", end "";
    copy_sse2_nt: align 16, "movdqu" "movntdq"
        ["xmm0" 0 "xmm1" 16 "xmm2" 32 "xmm3" 48], ahead "", end "sfence";
}

/// A fill of whole lines from an aligned place, the byte eight times in `$register`.
macro_rules! fill {
    ($($name:ident: align $align:literal, $spread:literal, $store:literal $register:literal
        [$($at:literal)+], end $end:literal;)+) => {$(
        unsafe extern "C" fn $name(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
            let head = ((dst as usize).wrapping_neg() & ($align - 1)).min(n);
            // SAFETY: head is at most n; the caller's promise.
            unsafe { fill_stosb(dst, byte, head) };
            let lines = (n - head) / LINE;
            if lines > 0 {
                // SAFETY: that many whole lines lie behind the head.
                unsafe {
                    asm!(
                        $spread,
                        ".p2align 4",
                        "2:",
                        $(concat!($store, " [edi + ", $at, "], ", $register),)+
                        "add edi, 64",
                        "dec ecx",
                        "jnz 2b",
                        $end,
                        inout("edi") dst.wrapping_add(head) => _,
                        inout("ecx") lines => _,
                        in("eax") u32::from(byte as u8) * 0x0101_0101,
                        clobber_abi("C"),
                        options(nostack),
                    );
                }
            }
            let done = head + lines * LINE;
            // SAFETY: what is left of the n bytes.
            unsafe { fill_stosb(dst.wrapping_add(done), byte, n - done) };
            dst
        }
    )+};
}
fill! {
    fill_mmx: align 8, "movd mm0, eax\npunpckldq mm0, mm0", "movq" "mm0"
        [0 8 16 24 32 40 48 56], end "emms";
    fill_mmx_nt: align 8, "movd mm0, eax\npunpckldq mm0, mm0", "movntq" "mm0"
        [0 8 16 24 32 40 48 56], end "sfence\nemms";
    fill_sse2: align 16, "movd xmm0, eax\npshufd xmm0, xmm0, 0", "movdqa" "xmm0"
        [0 16 32 48], end "";
    fill_sse2_nt: align 16, "movd xmm0, eax\npshufd xmm0, xmm0, 0", "movntdq" "xmm0"
        [0 16 32 48], end "sfence";
}

const MOVSB: Kernel = Kernel {
    name: "copy.rep.movsb",
    requires: Features::NONE,
    store: StoreKind::String,
    prefetch: Prefetch::None,
    grouping: 0,
    registers: RegisterClass::Gpr,
    deploy: false,
    aliases: &[],
    about: "rep movsb",
    function: Function::Copy(copy_movsb),
};
const MMX: Kernel = Kernel {
    name: "copy.mmx",
    requires: Features::MMX,
    store: StoreKind::Temporal,
    grouping: 1,
    registers: RegisterClass::Mmx,
    about: "movq load-store pairs",
    function: Function::Copy(copy_mmx),
    ..MOVSB
};
const MMX_NT: Kernel = Kernel {
    name: "copy.mmx.nt",
    requires: Features::MMX.and(Features::SSE),
    store: StoreKind::NonTemporal,
    about: "movq and movntq; sfence",
    function: Function::Copy(copy_mmx_nt),
    ..MMX
};
const SSE2: Kernel = Kernel {
    name: "copy.sse2.movdqa",
    requires: Features::SSE2,
    registers: RegisterClass::Xmm,
    about: "movdqa stores, one register at a time",
    function: Function::Copy(copy_sse2),
    ..MMX
};
const SSE2_NT: Kernel = Kernel {
    name: "copy.sse2.nt",
    store: StoreKind::NonTemporal,
    about: "movntdq; sfence",
    function: Function::Copy(copy_sse2_nt),
    ..SSE2
};

pub(crate) const ROWS: &[Kernel] = &[
    MOVSB,
    Kernel {
        name: "copy.rep.movsl",
        about: "rep movsl: seed 002's copy0 of i386, seed 000's slow",
        function: Function::Copy(copy_movsl),
        ..MOVSB
    },
    Kernel {
        name: "copy.gpr32",
        store: StoreKind::Temporal,
        grouping: 1,
        about: "32-bit load-store pairs",
        function: Function::Copy(copy_movl),
        ..MOVSB
    },
    Kernel {
        name: "copy.gpr32.nt",
        requires: Features::SSE2,
        store: StoreKind::NonTemporal,
        grouping: 1,
        about: "movnti; sfence",
        function: Function::Copy(copy_movnti),
        ..MOVSB
    },
    MMX,
    Kernel {
        name: "copy.mmx.pf320",
        requires: Features::MMX.and(Features::SSE),
        prefetch: Prefetch::Nta(320),
        about: "movq load-store pairs, prefetchnta 320 bytes ahead",
        function: Function::Copy(copy_mmx_pf320),
        ..MMX
    },
    MMX_NT,
    Kernel {
        name: "copy.mmx.nt.pf320",
        prefetch: Prefetch::Nta(320),
        about: "movq and movntq, prefetchnta 320 bytes ahead; sfence",
        function: Function::Copy(copy_mmx_nt_pf320),
        ..MMX_NT
    },
    SSE2,
    SSE2_NT,
    Kernel {
        name: "fill.rep.stosb",
        about: "rep stosb",
        function: Function::Fill(fill_stosb),
        ..MOVSB
    },
    Kernel {
        name: "fill.rep.stosl",
        about: "rep stosl",
        function: Function::Fill(fill_stosl),
        ..MOVSB
    },
    Kernel { name: "fill.mmx", about: "movq", function: Function::Fill(fill_mmx), ..MMX },
    Kernel {
        name: "fill.mmx.nt",
        about: "movntq; sfence",
        function: Function::Fill(fill_mmx_nt),
        ..MMX_NT
    },
    Kernel { name: "fill.sse2", about: "movdqa", function: Function::Fill(fill_sse2), ..SSE2 },
    Kernel { name: "fill.sse2.nt", function: Function::Fill(fill_sse2_nt), ..SSE2_NT },
    Kernel {
        name: "zero.rep.stosb",
        about: "rep stosb",
        function: Function::Zero(zero_stosb),
        ..MOVSB
    },
    Kernel {
        name: "zero.rep.stosl",
        about: "rep stosl: seed 000's slow",
        function: Function::Zero(zero_stosl),
        ..MOVSB
    },
    Kernel { name: "zero.mmx", about: "movq", function: Function::Zero(zero_mmx), ..MMX },
    Kernel {
        name: "zero.mmx.nt",
        about: "movntq; sfence",
        function: Function::Zero(zero_mmx_nt),
        ..MMX_NT
    },
    Kernel { name: "zero.sse2", about: "movdqa", function: Function::Zero(zero_sse2), ..SSE2 },
    Kernel { name: "zero.sse2.nt", function: Function::Zero(zero_sse2_nt), ..SSE2_NT },
];
