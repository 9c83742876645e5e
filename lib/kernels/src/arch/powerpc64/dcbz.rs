//! DCBZ: zeroes a whole cache block, 128 bytes since POWER4, without reading it from memory.
//!
//! The block's size is asked of the instruction itself: it is run once on a buffer of this
//! file's own that is larger than any block, and the zeroed bytes are counted. That needs no
//! operating system, where AT_DCACHEBSIZE is Linux's alone, and cannot be wrong about an emulator
//! or a hypervisor, as a constant can. The answer is a fact about the machine, so that remembering
//! it is no state that anybody could observe.

use super::gpr::Words;
use crate::PAGE_SIZE;
use crate::arch::rows::row;
use crate::arch::units::{Body, fill, fill_around, zero_by_blocks};
use crate::isa::Features;
use crate::kernel::{Kernel, RegisterClass, StoreKind};
use core::arch::asm;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Larger than any block: cores until the 970 had 32 bytes, since then 128.
const LARGEST: usize = 1024;

/// Zeroes whole blocks.
///
/// # Safety
/// `dst` is aligned to and writable for `blocks` >= 1 blocks of `block` bytes, the size that DCBZ
/// has here.
#[inline(always)]
unsafe fn clear(dst: *mut u8, block: usize, blocks: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "mtctr {blocks}",
            "2:",
            "dcbz 0, {dst}",
            "add {dst}, {dst}, {block}",
            "bdnz 2b",
            dst = inout(reg_nonzero) dst => _,
            block = in(reg) block,
            blocks = in(reg) blocks,
            out("ctr") _,
            options(nostack),
        );
    }
}

/// Bytes of a block, a power of two; `None` where DCBZ does not what it should.
#[inline(always)]
fn block() -> Option<usize> {
    /// 0: not asked yet; 1: no use.
    static BLOCK: AtomicUsize = AtomicUsize::new(0);
    // Complete in itself, and whoever asks twice gets the same answer.
    let known = match BLOCK.load(Ordering::Relaxed) {
        0 => {
            let found = probe();
            BLOCK.store(found, Ordering::Relaxed);
            found
        }
        known => known,
    };
    (known > 1).then_some(known)
}

/// Bytes that DCBZ zeroes at the front of an aligned buffer, or 1.
#[cold]
#[inline(never)]
fn probe() -> usize {
    #[repr(align(1024))]
    struct Aligned(#[allow(dead_code, reason = "reached by address alone")] [u8; LARGEST]);
    // Not an array of zeros, which the compiler would make by calling memset.
    let mut buffer = MaybeUninit::<Aligned>::uninit();
    let start = buffer.as_mut_ptr().cast::<u8>();
    // SAFETY: the buffer's own bytes, whole units.
    unsafe { Words::store(start, u64::MAX, LARGEST / Words::UNIT) };
    // SAFETY: one block at the start of a buffer that is aligned to and larger than any.
    unsafe { clear(start, LARGEST, 1) };
    let zeroed = |at: usize| {
        // SAFETY: at < LARGEST; volatile, since assembly wrote it.
        unsafe { start.wrapping_add(at).read_volatile() == 0 }
    };
    let mut found = 0;
    while found < LARGEST && zeroed(found) {
        found += 1;
    }
    // The whole buffer means that the block may be larger still.
    if found.is_power_of_two() && (16..LARGEST).contains(&found) { found } else { 1 }
}

zero_by_blocks!(block(), Words);

const ROW: Kernel =
    Kernel { store: StoreKind::BlockZero, ..row(RegisterClass::Gpr, Features::NONE, 0) };

pub(crate) const ROWS: &[Kernel] = kernels! {
    "zero.dcbz" like ROW, Zero(zero),
        "DCBZ a cache block at a time (size asked of it), general registers at unaligned edges";
    "zero-pages.dcbz" like ROW, ZeroPages(zero_pages), "DCBZ a cache block at a time (size asked of it)";
};

#[cfg(test)]
mod tests {
    #[test]
    fn the_block_is_asked_of_the_cpu() {
        let found = super::block().expect("DCBZ zeroes a block");
        assert!((32..=512).contains(&found), "{found}");
    }
}
