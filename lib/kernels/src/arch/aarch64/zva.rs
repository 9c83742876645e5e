//! DC ZVA: zeroes a whole block, 64 bytes on most CPUs, without reading it from memory.
//!
//! DCZID_EL0 says how large the block is and whether the instruction is prohibited, and may be
//! read at every privilege level (Arm ARM, D19.2 DCZID_EL0). Prohibited means that the feature is
//! not there; the size is read at every call, since an emulator's is 512 bytes and a hypervisor
//! may move a program between CPUs of different sizes.

use super::gpr::Pairs;
use crate::PAGE_SIZE;
use crate::arch::rows::row;
use crate::arch::units::{Body, fill, fill_around, zero_by_blocks};
use crate::isa::{self, Features};
use crate::kernel::{Kernel, RegisterClass, StoreKind};
use core::arch::asm;

/// Zeroes whole blocks.
///
/// # Safety
/// `dst` is aligned to and writable for `blocks` >= 1 blocks of `block` bytes, which is what
/// DCZID_EL0 says, and DC ZVA is not prohibited.
#[inline(always)]
unsafe fn clear(dst: *mut u8, block: usize, blocks: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "2:",
            "dc zva, {dst}",
            "add {dst}, {dst}, {block}",
            "subs {blocks}, {blocks}, #1",
            "b.ne 2b",
            dst = inout(reg) dst => _,
            block = in(reg) block,
            blocks = inout(reg) blocks => _,
            options(nostack),
        );
    }
}

zero_by_blocks!(isa::zva_block(), Pairs);

const ROW: Kernel =
    Kernel { store: StoreKind::BlockZero, ..row(RegisterClass::Gpr, Features::ZVA, 0) };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "zero.zva" like ROW, Zero(zero),
        "DC ZVA a block at a time (size from DCZID_EL0), general registers at unaligned edges";
    "zero-pages.zva" like ROW, ZeroPages(zero_pages), "DC ZVA a block at a time (size from DCZID_EL0)";
};
