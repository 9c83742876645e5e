//! SSE2 as seed 002 used it: Evans's `movdqa` copies (copyQ to copyS and the second form of 002.4)
//! and the copy DragonFly settled on (002.7). The generic SSE2 family is `sse2.rs`.

use super::edge::{around, copy as copy_edge};
use super::{gpr, mmx};
use crate::arch::rows::row;
use crate::isa::Features;
use crate::kernel::{Kernel, Prefetch, RegisterClass};

/// One line in four load-store pairs through a single register (seed 002.5).
macro_rules! by_1 {
    ($load:literal) => {
        groups!($load, "movdqa", ["xmm0" 0] ["xmm0" 16] ["xmm0" 32] ["xmm0" 48])
    };
}
/// Eight loads, eight stores: two lines (seed 002.4, 002.7).
macro_rules! by_8 {
    ($load:literal) => {
        groups!($load, "movdqa", ["xmm0" 0, "xmm1" 16, "xmm2" 32, "xmm3" 48,
            "xmm4" 64, "xmm5" 80, "xmm6" 96, "xmm7" 112])
    };
}

sse_copies! {
    copy_movdqa, 64: loop_plain!(by_1!("movdqa"), 64), loop_plain!(by_1!("movdqu"), 64), "";
    copy_pf320, 64: loop_pf320!(by_1!("movdqa")), loop_pf320!(by_1!("movdqu")), "";
    copy_block4k, 64: loop_block!(ascending, 64, by_1!("movdqa")),
        loop_block!(ascending, 64, by_1!("movdqu")), "";
    copy_g8, 128: loop_plain!(by_8!("movdqa"), 128), loop_plain!(by_8!("movdqu"), 128), "";
}

/// 128 bytes read, then 128 written, in one linear pass; the tail is the only other access.
unsafe extern "C" fn copy_dillon(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    if n < 2048 {
        // SAFETY: the caller's promise is the callee's.
        return unsafe { gpr::copy(dst, src, n) };
    }
    if !(dst.addr() | src.addr()).is_multiple_of(16) {
        // SAFETY: the caller's promise is the callee's.
        return unsafe { mmx::copy_g8(dst, src, n) };
    }
    copy_units!(dst, src, n / 128, loop_plain!(by_8!("movdqa"), 128); xmm);
    let done = n / 128 * 128;
    // SAFETY: fewer than 128 bytes are left after the first `done`.
    unsafe { copy_edge(dst.wrapping_add(done), src.wrapping_add(done), n - done) };
    dst
}

const ROW: Kernel = Kernel { deploy: false, ..row(RegisterClass::Xmm, Features::SSE2, 1) };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "copy.sse2.movdqa" like ROW, Copy(copy_movdqa) { aliases: &["copyQ"] },
        "seed 002 copyQ: movdqa, load-store pairs through one register";
    "copy.sse2.movdqa.pf320" like ROW, Copy(copy_pf320)
        { requires: Features::SSE.and(Features::SSE2), prefetch: Prefetch::Nta(320), aliases: &["copyR"] },
        "seed 002 copyR: copyQ with prefetchnta 320 bytes ahead";
    "copy.sse2.movdqa.block4k" like ROW, Copy(copy_block4k) { prefetch: Prefetch::Block(4096), aliases: &["copyS"] },
        "seed 002 copyS: copyQ behind block prefetch of 4 KiB";
    "copy.sse2.movdqa.g8" like ROW, Copy(copy_g8) { grouping: 8 },
        "seed 002.4: movdqa, eight loads then eight stores";
    "copy.sse2.dillon" like ROW, Copy(copy_dillon) { requires: Features::MMX.and(Features::SSE2), grouping: 8 },
        "seed 002.7: from 2048 B on movdqa 8+8 if both are 16-aligned, else movq 8+8 (MMX)";
};
