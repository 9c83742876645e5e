//! Seed 002's integer copies with prefetch and with movnti, and the family that varies the size of
//! the prefetched block (seed 002.8, 002.10). Measured, never deployed.

use super::edge::{around, fill_around, pattern};
use super::gpr::{pairs, store_lines};
use crate::isa::Features;
use crate::kernel::{Function, Kernel, Prefetch, RegisterClass, StoreKind};
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

const PLAIN: Kernel = Kernel {
    name: "copy.gpr64.block4k",
    requires: Features::NONE,
    store: StoreKind::Temporal,
    prefetch: Prefetch::Block(4096),
    grouping: 1,
    registers: RegisterClass::Gpr,
    deploy: false,
    aliases: &["copyV"],
    about: "seed 002 copyV: block prefetch of 4 KiB by one load a line, then movq load-store pairs",
    function: Function::Copy(copy_block4k),
};
const NT: Kernel = Kernel {
    name: "copy.gpr64.nt",
    requires: Features::SSE2,
    store: StoreKind::NonTemporal,
    prefetch: Prefetch::None,
    aliases: &["copyW"],
    about: "seed 002 copyW: movnti, eight bytes a round, not unrolled; sfence",
    function: Function::Copy(copy_nt),
    ..PLAIN
};

/// A row of the block-size family.
macro_rules! block {
    ($shape:literal, $bytes:literal, $how:literal, $function:ident) => {
        Kernel {
            name: concat!("copy.gpr64.nt.", $shape),
            prefetch: Prefetch::Block($bytes),
            aliases: &[],
            about: concat!("seed 002.8: block prefetch of ", $bytes, " bytes", $how, ", movnti"),
            function: Function::Copy($function),
            ..NT
        }
    };
}

pub(crate) const ROWS: &[Kernel] = &[
    Kernel {
        name: "copy.gpr64.pf320",
        requires: Features::SSE,
        prefetch: Prefetch::Nta(320),
        aliases: &["copyU"],
        about: "seed 002 copyU: movq load-store pairs, prefetchnta 320 bytes ahead once a line",
        function: Function::Copy(copy_pf320),
        ..PLAIN
    },
    PLAIN,
    NT,
    Kernel {
        name: "copy.gpr64.nt.pf320",
        prefetch: Prefetch::Nta(320),
        aliases: &["copyX"],
        about: "seed 002 copyX: movnti, prefetchnta 320 bytes ahead once a line; sfence",
        function: Function::Copy(copy_nt_pf320),
        ..NT
    },
    Kernel {
        name: "copy.gpr64.nt.block4k",
        prefetch: Prefetch::Block(4096),
        aliases: &["copyY"],
        about: "seed 002 copyY: block prefetch of 4 KiB by one load a line, then movnti; sfence",
        function: Function::Copy(copy_nt_block4k),
        ..NT
    },
    block!("block512", 512, "", copy_nt_block512),
    block!("block1k", 1024, "", copy_nt_block1k),
    block!("block2k", 2048, "", copy_nt_block2k),
    block!("block8k", 8192, "", copy_nt_block8k),
    block!(
        "block8k.descending",
        8192,
        " from its top down, AMD's order",
        copy_nt_block8k_descending
    ),
    block!("block16k", 16384, "", copy_nt_block16k),
    block!("block32k", 32768, "", copy_nt_block32k),
    block!("block64k", 65536, "", copy_nt_block64k),
    Kernel {
        name: "fill.gpr64.nt",
        grouping: 0,
        aliases: &[],
        about: "movnti, unrolled 64 bytes, sfence",
        function: Function::Fill(fill_nt),
        ..NT
    },
    Kernel {
        name: "zero.gpr64.nt",
        grouping: 0,
        aliases: &[],
        about: "movnti, unrolled 64 bytes, sfence: FreeBSD's idle page zeroing (seed 002.13)",
        function: Function::Zero(zero_nt),
        ..NT
    },
];
