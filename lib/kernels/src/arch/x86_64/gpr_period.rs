//! Seed 002's integer copies with prefetch and with movnti, and the family that varies the size of
//! the prefetched block (seed 002.8, 002.10). Measured, never deployed.

use super::edge::{around, fill_around, pattern};
use super::gpr::{pairs, store_lines};
use crate::arch::rows::row;
use crate::isa::Features;
use crate::kernel::{Kernel, Prefetch, RegisterClass, StoreKind};
use core::arch::asm;

/// A copy of that name: integer edges around `$template`, which copies units of `$unit` bytes.
macro_rules! copy {
    ($name:ident, $unit:literal, $template:expr) => {
        unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
            let body = |dst: *mut u8, src: *const u8, units: usize| {
                copy_units!(dst, src, units, $template);
            };
            // SAFETY: the caller's promise is the callee's.
            unsafe { around::<8, $unit>(dst, src, n, body) }
        }
    };
}

copy!(copy_pf320, 64, loop_pf320!(pairs!("mov")));
copy!(copy_block4k, 64, loop_block!(ascending, 64, pairs!("mov")));
copy!(copy_nt, 8, concat!(loop_plain!(groups!("mov", "movnti", ["rax" 0]), 8), "sfence"));
copy!(copy_nt_pf320, 64, concat!(loop_pf320!(pairs!("movnti")), "sfence"));

/// movnti behind block prefetch of `$lines` lines.
macro_rules! copy_nt_block {
    ($($name:ident $order:ident $lines:literal;)+) => {$(
        copy!($name, 64, concat!(loop_block!($order, $lines, pairs!("movnti")), "sfence"));
    )+};
}

copy_nt_block! {
    copy_nt_block512 ascending 8;
    copy_nt_block1k ascending 16;
    copy_nt_block2k ascending 32;
    copy_nt_block4k ascending 64;
    copy_nt_block8k ascending 128;
    copy_nt_block8k_descending descending 128;
    copy_nt_block16k ascending 256;
    copy_nt_block32k ascending 512;
    copy_nt_block64k ascending 1024;
}

unsafe extern "C" fn fill_nt(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    let pattern = pattern(byte);
    let body = |dst: *mut u8, lines: usize| store_lines!("movnti", "sfence", dst, pattern, lines);
    // SAFETY: the caller's promise is the callee's.
    unsafe { fill_around::<8, 64>(dst, pattern, n, body) }
}

unsafe extern "C" fn zero_nt(dst: *mut u8, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise is the callee's.
    unsafe { fill_nt(dst, 0, n) }
}

const PLAIN: Kernel = Kernel { deploy: false, ..row(RegisterClass::Gpr, Features::NONE, 1) };
const NT: Kernel = Kernel { requires: Features::SSE2, store: StoreKind::NonTemporal, ..PLAIN };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "copy.gpr64.pf320" like PLAIN, Copy(copy_pf320)
        { requires: Features::SSE, prefetch: Prefetch::Nta(320), aliases: &["copyU"] },
        "seed 002 copyU: movq load-store pairs, prefetchnta 320 bytes ahead once a line";
    "copy.gpr64.block4k" like PLAIN, Copy(copy_block4k) { prefetch: Prefetch::Block(4096), aliases: &["copyV"] },
        "seed 002 copyV: block prefetch of 4 KiB by one load a line, then movq load-store pairs";
    "copy.gpr64.nt" like NT, Copy(copy_nt) { aliases: &["copyW"] },
        "seed 002 copyW: movnti, eight bytes a round, not unrolled; sfence";
    "copy.gpr64.nt.pf320" like NT, Copy(copy_nt_pf320) { prefetch: Prefetch::Nta(320), aliases: &["copyX"] },
        "seed 002 copyX: movnti, prefetchnta 320 bytes ahead once a line; sfence";
    "copy.gpr64.nt.block4k" like NT, Copy(copy_nt_block4k) { prefetch: Prefetch::Block(4096), aliases: &["copyY"] },
        "seed 002 copyY: block prefetch of 4 KiB by one load a line, then movnti; sfence";
    "copy.gpr64.nt.block512" like NT, Copy(copy_nt_block512) { prefetch: Prefetch::Block(512) },
        "seed 002.8: block prefetch of 512 bytes, movnti";
    "copy.gpr64.nt.block1k" like NT, Copy(copy_nt_block1k) { prefetch: Prefetch::Block(1024) },
        "seed 002.8: block prefetch of 1024 bytes, movnti";
    "copy.gpr64.nt.block2k" like NT, Copy(copy_nt_block2k) { prefetch: Prefetch::Block(2048) },
        "seed 002.8: block prefetch of 2048 bytes, movnti";
    "copy.gpr64.nt.block8k" like NT, Copy(copy_nt_block8k) { prefetch: Prefetch::Block(8192) },
        "seed 002.8: block prefetch of 8192 bytes, movnti";
    "copy.gpr64.nt.block8k.descending" like NT, Copy(copy_nt_block8k_descending) { prefetch: Prefetch::Block(8192) },
        "seed 002.8: block prefetch of 8192 bytes from its top down, AMD's order, movnti";
    "copy.gpr64.nt.block16k" like NT, Copy(copy_nt_block16k) { prefetch: Prefetch::Block(16384) },
        "seed 002.8: block prefetch of 16384 bytes, movnti";
    "copy.gpr64.nt.block32k" like NT, Copy(copy_nt_block32k) { prefetch: Prefetch::Block(32768) },
        "seed 002.8: block prefetch of 32768 bytes, movnti";
    "copy.gpr64.nt.block64k" like NT, Copy(copy_nt_block64k) { prefetch: Prefetch::Block(65536) },
        "seed 002.8: block prefetch of 65536 bytes, movnti";
    "fill.gpr64.nt" like NT, Fill(fill_nt) { grouping: 0 }, "movnti, unrolled 64 bytes, sfence";
    "zero.gpr64.nt" like NT, Zero(zero_nt) { grouping: 0 },
        "movnti, unrolled 64 bytes, sfence: FreeBSD's idle page zeroing (seed 002.13)";
};
