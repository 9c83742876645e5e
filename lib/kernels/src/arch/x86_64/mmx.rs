//! MMX: eight 8-byte registers over the x87 stack. The period kernels of seed 000 (`mmx_*`) and
//! seed 002 (copyK to copyP), and the families that vary block size and grouping around copyN.
//!
//! Every template ends in `emms`, so that the x87 stack is empty again for whoever comes next.

use super::edge::{around, fill_around, pattern};
use crate::arch::rows::row;
use crate::isa::Features;
use crate::kernel::{Kernel, Prefetch, RegisterClass, StoreKind};

/// One line in eight load-store pairs (seed 000).
macro_rules! by_1 {
    ($store:literal) => {
        groups!("movq", $store, ["mm0" 0] ["mm1" 8] ["mm2" 16] ["mm3" 24]
            ["mm4" 32] ["mm5" 40] ["mm6" 48] ["mm7" 56])
    };
}
/// Two loads, two stores, over four pairs of registers (seed 002.5).
macro_rules! by_2 {
    ($store:literal) => {
        groups!("movq", $store, ["mm0" 0, "mm1" 8] ["mm2" 16, "mm3" 24]
            ["mm4" 32, "mm5" 40] ["mm6" 48, "mm7" 56])
    };
}
/// Four loads, four stores.
macro_rules! by_4 {
    ($store:literal) => {
        groups!("movq", $store, ["mm0" 0, "mm1" 8, "mm2" 16, "mm3" 24]
            ["mm4" 32, "mm5" 40, "mm6" 48, "mm7" 56])
    };
}
/// Eight loads, eight stores (seed 002.5).
macro_rules! by_8 {
    ($store:literal) => {
        groups!("movq", $store, ["mm0" 0, "mm1" 8, "mm2" 16, "mm3" 24,
            "mm4" 32, "mm5" 40, "mm6" 48, "mm7" 56])
    };
}

/// A copy of that name: integer edges around `$template`, which copies lines of 64 bytes to an
/// 8-aligned destination and is closed by `$last`.
macro_rules! copy {
    ($($name:ident: $template:expr, $last:literal;)+) => {$(
        pub(super) unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            let body = |dst: *mut u8, src: *const u8, lines: usize| {
                copy_units!(
                    dst, src, lines, concat!($template, $last); x87,
                    "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7"
                );
            };
            // SAFETY: the caller's promise is the callee's.
            unsafe { around::<8, 64>(dst, src, n, body) }
        }
    )+};
}

copy! {
    copy: loop_plain!(by_2!("movq"), 64), "emms";
    copy_g8: loop_plain!(by_8!("movq"), 64), "emms";
    copy_pf320: loop_pf320!(by_2!("movq")), "emms";
    copy_block4k: loop_block!(ascending, 64, by_2!("movq")), "emms";
    copy_vlasenko: loop_vlasenko!(by_1!("movq")), "emms";
    copy_nt: loop_plain!(by_8!("movntq"), 64), "sfence\nemms";
    copy_nt_g1: loop_plain!(by_1!("movntq"), 64), "sfence\nemms";
    copy_nt_g2: loop_plain!(by_2!("movntq"), 64), "sfence\nemms";
    copy_nt_g4: loop_plain!(by_4!("movntq"), 64), "sfence\nemms";
    copy_nt_pf320: loop_pf320!(by_8!("movntq")), "sfence\nemms";
    copy_nt_vlasenko: loop_vlasenko!(by_1!("movntq")), "sfence\nemms";
    copy_nt_block512: loop_block!(ascending, 8, by_8!("movntq")), "sfence\nemms";
    copy_nt_block1k: loop_block!(ascending, 16, by_8!("movntq")), "sfence\nemms";
    copy_nt_block2k: loop_block!(ascending, 32, by_8!("movntq")), "sfence\nemms";
    copy_nt_block4k: loop_block!(ascending, 64, by_8!("movntq")), "sfence\nemms";
    copy_nt_block8k: loop_block!(ascending, 128, by_8!("movntq")), "sfence\nemms";
    copy_nt_block8k_descending: loop_block!(descending, 128, by_8!("movntq")), "sfence\nemms";
    copy_nt_block16k: loop_block!(ascending, 256, by_8!("movntq")), "sfence\nemms";
    copy_nt_block32k: loop_block!(ascending, 512, by_8!("movntq")), "sfence\nemms";
    copy_nt_block64k: loop_block!(ascending, 1024, by_8!("movntq")), "sfence\nemms";
}

/// A fill and a zero of those names: eight stores per 64 bytes (seed 000), closed by `$last`.
macro_rules! fill {
    ($fill:ident, $zero:ident, $store:literal, $last:literal) => {
        unsafe extern "C" fn $fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
            let pattern = pattern(byte);
            let body = |dst: *mut u8, lines: usize| {
                // SAFETY: `fill_around` passes one or more whole lines of the buffer.
                unsafe {
                    core::arch::asm!(
                        "movq mm0, rax",
                        ".p2align 4",
                        "2:",
                        concat!($store, " [rdi], mm0"),
                        concat!($store, " [rdi + 8], mm0"),
                        concat!($store, " [rdi + 16], mm0"),
                        concat!($store, " [rdi + 24], mm0"),
                        concat!($store, " [rdi + 32], mm0"),
                        concat!($store, " [rdi + 40], mm0"),
                        concat!($store, " [rdi + 48], mm0"),
                        concat!($store, " [rdi + 56], mm0"),
                        "add rdi, 64",
                        "dec rcx",
                        "jnz 2b",
                        $last,
                        inout("rdi") dst => _,
                        inout("rcx") lines => _,
                        in("rax") pattern,
                        clobber_abi("C"),
                        options(nostack),
                    );
                }
            };
            // SAFETY: the caller's promise is the callee's.
            unsafe { fill_around::<8, 64>(dst, pattern, n, body) }
        }

        unsafe extern "C" fn $zero(dst: *mut u8, n: usize) -> *mut u8 {
            // SAFETY: the caller's promise is the callee's.
            unsafe { $fill(dst, 0, n) }
        }
    };
}
fill!(fill, zero, "movq", "emms");
fill!(fill_nt, zero_nt, "movntq", "sfence\nemms");

const ROW: Kernel = Kernel { deploy: false, ..row(RegisterClass::Mmx, Features::MMX, 2) };
const PREFETCHED: Kernel =
    Kernel { requires: Features::MMX.and(Features::SSE), prefetch: Prefetch::Nta(320), ..ROW };
const NT: Kernel =
    Kernel { store: StoreKind::NonTemporal, prefetch: Prefetch::None, grouping: 8, ..PREFETCHED };
const NT_PREFETCHED: Kernel = Kernel { prefetch: Prefetch::Nta(320), ..NT };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "copy.mmx" like ROW, Copy(copy) { aliases: &["copyK"] },
        "seed 002 copyK: movq, two loads then two stores over four register pairs";
    "copy.mmx.g8" like ROW, Copy(copy_g8) { grouping: 8 },
        "movq, eight loads then eight stores (seed 002.10)";
    "copy.mmx.pf320" like PREFETCHED, Copy(copy_pf320) { aliases: &["copyL"] },
        "seed 002 copyL (inferred): copyK with prefetchnta 320 bytes ahead";
    "copy.mmx.block4k" like ROW, Copy(copy_block4k) { prefetch: Prefetch::Block(4096), aliases: &["copyM"] },
        "seed 002 copyM (inferred): copyK behind block prefetch of 4 KiB";
    "copy.mmx.pf320.vlasenko" like PREFETCHED, Copy(copy_vlasenko) { grouping: 1, aliases: &["mmx_APn"] },
        "seed 000 mmx_APn: movq load-store pairs, prefetch at +320 until the last 320 bytes";
    "copy.mmx.nt" like NT, Copy(copy_nt) { aliases: &["copyN"] },
        "seed 002 copyN: movntq, eight loads then eight stores; sfence";
    "copy.mmx.nt.g1" like NT, Copy(copy_nt_g1) { grouping: 1 },
        "seed 002.10: movntq, loads and stores in groups of 1";
    "copy.mmx.nt.g2" like NT, Copy(copy_nt_g2) { grouping: 2 },
        "seed 002.10: movntq, loads and stores in groups of 2";
    "copy.mmx.nt.g4" like NT, Copy(copy_nt_g4) { grouping: 4 },
        "seed 002.10: movntq, loads and stores in groups of 4";
    "copy.mmx.nt.pf320" like NT_PREFETCHED, Copy(copy_nt_pf320) { aliases: &["copyO"] },
        "seed 002 copyO: copyN with prefetchnta 320 bytes ahead";
    "copy.mmx.nt.block4k" like NT, Copy(copy_nt_block4k) { prefetch: Prefetch::Block(4096), aliases: &["copyP"] },
        "seed 002 copyP: copyN behind block prefetch of 4 KiB";
    "copy.mmx.nt.pf320.vlasenko" like NT_PREFETCHED, Copy(copy_nt_vlasenko) { grouping: 1, aliases: &["mmx_APN"] },
        "seed 000 mmx_APN: movq-movntq pairs, prefetch at +320 until the last 320 bytes";
    "copy.mmx.nt.block512" like NT, Copy(copy_nt_block512) { prefetch: Prefetch::Block(512) },
        "seed 002.8: block prefetch of 512 bytes, movntq 8+8";
    "copy.mmx.nt.block1k" like NT, Copy(copy_nt_block1k) { prefetch: Prefetch::Block(1024) },
        "seed 002.8: block prefetch of 1024 bytes, movntq 8+8";
    "copy.mmx.nt.block2k" like NT, Copy(copy_nt_block2k) { prefetch: Prefetch::Block(2048) },
        "seed 002.8: block prefetch of 2048 bytes, movntq 8+8";
    "copy.mmx.nt.block8k" like NT, Copy(copy_nt_block8k) { prefetch: Prefetch::Block(8192) },
        "seed 002.8: block prefetch of 8192 bytes, movntq 8+8";
    "copy.mmx.nt.block8k.descending" like NT, Copy(copy_nt_block8k_descending) { prefetch: Prefetch::Block(8192) },
        "seed 002.8: block prefetch of 8192 bytes from its top down, AMD's order, movntq 8+8";
    "copy.mmx.nt.block16k" like NT, Copy(copy_nt_block16k) { prefetch: Prefetch::Block(16384) },
        "seed 002.8: block prefetch of 16384 bytes, movntq 8+8";
    "copy.mmx.nt.block32k" like NT, Copy(copy_nt_block32k) { prefetch: Prefetch::Block(32768) },
        "seed 002.8: block prefetch of 32768 bytes, movntq 8+8";
    "copy.mmx.nt.block64k" like NT, Copy(copy_nt_block64k) { prefetch: Prefetch::Block(65536) },
        "seed 002.8: block prefetch of 65536 bytes, movntq 8+8";
    "fill.mmx" like ROW, Fill(fill) { grouping: 0 }, "movq, eight stores per 64 bytes";
    "zero.mmx" like ROW, Zero(zero) { grouping: 0, aliases: &["mmx_APn"] },
        "seed 000 mmx_APn: movq, eight stores per 64 bytes";
    "fill.mmx.nt" like NT, Fill(fill_nt) { grouping: 0 }, "movntq, eight stores per 64 bytes, sfence";
    "zero.mmx.nt" like NT, Zero(zero_nt) { grouping: 0, aliases: &["mmx_APN"] },
        "seed 000 mmx_APN: movntq, eight stores per 64 bytes, sfence";
};
