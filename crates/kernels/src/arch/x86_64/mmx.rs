//! MMX: eight 8-byte registers over the x87 stack. The period kernels of seed 000 (`mmx_*`) and
//! seed 002 (copyK to copyP), and the families that vary block size and grouping around copyN.
//!
//! Every template ends in `emms`, so that the x87 stack is empty again for whoever comes next.

use super::edge::{around, fill_around, pattern};
use crate::isa::Features;
use crate::kernel::{Function, Kernel, Prefetch, RegisterClass, StoreKind};

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
                    dst, src, lines, concat!($template, $last),
                    "mm0", "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7",
                    "st(0)", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"
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

const ROW: Kernel = Kernel {
    name: "copy.mmx",
    requires: Features::MMX,
    store: StoreKind::Temporal,
    prefetch: Prefetch::None,
    grouping: 2,
    registers: RegisterClass::Mmx,
    deploy: false,
    aliases: &["copyK"],
    about: "seed 002 copyK: movq, two loads then two stores over four register pairs",
    function: Function::Copy(copy),
};
const NT: Kernel = Kernel {
    name: "copy.mmx.nt",
    requires: Features::MMX.and(Features::SSE),
    store: StoreKind::NonTemporal,
    grouping: 8,
    aliases: &["copyN"],
    about: "seed 002 copyN: movntq, eight loads then eight stores; sfence",
    function: Function::Copy(copy_nt),
    ..ROW
};

/// A row of the block-size family.
macro_rules! block {
    ($shape:literal, $bytes:literal, $how:literal, $function:ident) => {
        Kernel {
            name: concat!("copy.mmx.nt.", $shape),
            prefetch: Prefetch::Block($bytes),
            aliases: &[],
            about: concat!(
                "seed 002.8: block prefetch of ",
                $bytes,
                " bytes",
                $how,
                ", movntq 8+8"
            ),
            function: Function::Copy($function),
            ..NT
        }
    };
}

/// A row of the grouping family.
macro_rules! grouping {
    ($shape:literal, $grouping:literal, $function:ident) => {
        Kernel {
            name: concat!("copy.mmx.nt.", $shape),
            grouping: $grouping,
            aliases: &[],
            about: concat!("seed 002.10: movntq, loads and stores in groups of ", $grouping),
            function: Function::Copy($function),
            ..NT
        }
    };
}

pub(crate) const ROWS: &[Kernel] = &[
    ROW,
    Kernel {
        name: "copy.mmx.g8",
        grouping: 8,
        aliases: &[],
        about: "movq, eight loads then eight stores (seed 002.10)",
        function: Function::Copy(copy_g8),
        ..ROW
    },
    Kernel {
        name: "copy.mmx.pf320",
        requires: Features::MMX.and(Features::SSE),
        prefetch: Prefetch::Nta(320),
        aliases: &["copyL"],
        about: "seed 002 copyL (inferred): copyK with prefetchnta 320 bytes ahead",
        function: Function::Copy(copy_pf320),
        ..ROW
    },
    Kernel {
        name: "copy.mmx.block4k",
        prefetch: Prefetch::Block(4096),
        aliases: &["copyM"],
        about: "seed 002 copyM (inferred): copyK behind block prefetch of 4 KiB",
        function: Function::Copy(copy_block4k),
        ..ROW
    },
    Kernel {
        name: "copy.mmx.pf320.vlasenko",
        requires: Features::MMX.and(Features::SSE),
        prefetch: Prefetch::Nta(320),
        grouping: 1,
        aliases: &["mmx_APn"],
        about: "seed 000 mmx_APn: movq load-store pairs, prefetch at +320 until the last 320 bytes",
        function: Function::Copy(copy_vlasenko),
        ..ROW
    },
    NT,
    grouping!("g1", 1, copy_nt_g1),
    grouping!("g2", 2, copy_nt_g2),
    grouping!("g4", 4, copy_nt_g4),
    Kernel {
        name: "copy.mmx.nt.pf320",
        prefetch: Prefetch::Nta(320),
        aliases: &["copyO"],
        about: "seed 002 copyO: copyN with prefetchnta 320 bytes ahead",
        function: Function::Copy(copy_nt_pf320),
        ..NT
    },
    Kernel {
        name: "copy.mmx.nt.block4k",
        prefetch: Prefetch::Block(4096),
        aliases: &["copyP"],
        about: "seed 002 copyP: copyN behind block prefetch of 4 KiB",
        function: Function::Copy(copy_nt_block4k),
        ..NT
    },
    Kernel {
        name: "copy.mmx.nt.pf320.vlasenko",
        prefetch: Prefetch::Nta(320),
        grouping: 1,
        aliases: &["mmx_APN"],
        about: "seed 000 mmx_APN: movq-movntq pairs, prefetch at +320 until the last 320 bytes",
        function: Function::Copy(copy_nt_vlasenko),
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
        name: "fill.mmx",
        grouping: 0,
        aliases: &[],
        about: "movq, eight stores per 64 bytes",
        function: Function::Fill(fill),
        ..ROW
    },
    Kernel {
        name: "zero.mmx",
        grouping: 0,
        aliases: &["mmx_APn"],
        about: "seed 000 mmx_APn: movq, eight stores per 64 bytes",
        function: Function::Zero(zero),
        ..ROW
    },
    Kernel {
        name: "fill.mmx.nt",
        grouping: 0,
        aliases: &[],
        about: "movntq, eight stores per 64 bytes, sfence",
        function: Function::Fill(fill_nt),
        ..NT
    },
    Kernel {
        name: "zero.mmx.nt",
        grouping: 0,
        aliases: &["mmx_APN"],
        about: "seed 000 mmx_APN: movntq, eight stores per 64 bytes, sfence",
        function: Function::Zero(zero_nt),
        ..NT
    },
];
