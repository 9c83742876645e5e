//! The x87 stack as a copy engine: copyD, the Pentium-era bcopy of FreeBSD's kernel in the form
//! seed 002.6 measured.
//!
//! `fild` and `fistp` of 64-bit integers are exact: the 64-bit significand holds every value, so
//! nothing is rounded, and the precision-control field of the control word applies only to
//! addition, subtraction, multiplication, division and square root (Intel SDM volume 1, 8.1.5.2).
//! An exact conversion raises no exception either, so a program that lowered the precision or
//! unmasked exceptions gets the same bytes, and the control word need not be saved. Emulators that
//! keep the stack in 64-bit doubles (Valgrind) do round, and corrupt the copy.

use super::gpr;
use crate::arch::rows::row;
use crate::isa::Features;
use crate::kernel::{Kernel, Prefetch, RegisterClass};

unsafe extern "C" fn copy_iprefetch(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    if n < 1024 {
        // SAFETY: the caller's promise is the callee's.
        return unsafe { gpr::copy(dst, src, n) };
    }
    // Chunks of 60 lines = 3840 bytes: one integer load per 32-byte line of the Pentium, then
    // eight values up the stack and down again. The ABI has the stack empty on entry, and as many
    // pops as pushes leave it so.
    copy_units!(
        dst,
        src,
        n / 64,
        concat!(
            "3:\nmov r8d, 60\ncmp rcx, r8\ncmovb r8, rcx\nsub rcx, r8\n",
            "mov r9, rsi\nmov r10, r8\n",
            "4:\nmov eax, [r9]\nmov eax, [r9 + 32]\nadd r9, 64\ndec r10\njnz 4b\n",
            ".p2align 4\n2:\n",
            "fild qword ptr [rsi]\nfild qword ptr [rsi + 8]\n",
            "fild qword ptr [rsi + 16]\nfild qword ptr [rsi + 24]\n",
            "fild qword ptr [rsi + 32]\nfild qword ptr [rsi + 40]\n",
            "fild qword ptr [rsi + 48]\nfild qword ptr [rsi + 56]\n",
            "fistp qword ptr [rdi + 56]\nfistp qword ptr [rdi + 48]\n",
            "fistp qword ptr [rdi + 40]\nfistp qword ptr [rdi + 32]\n",
            "fistp qword ptr [rdi + 24]\nfistp qword ptr [rdi + 16]\n",
            "fistp qword ptr [rdi + 8]\nfistp qword ptr [rdi]\n",
            "add rsi, 64\nadd rdi, 64\ndec r8\njnz 2b\n",
            "test rcx, rcx\njnz 3b\n",
        ); x87
    );
    let done = n / 64 * 64;
    // SAFETY: fewer than 64 bytes are left after the first `done`.
    unsafe { gpr::copy(dst.wrapping_add(done), src.wrapping_add(done), n - done) };
    dst
}

const ROW: Kernel = Kernel {
    prefetch: Prefetch::Block(3840),
    deploy: false,
    ..row(RegisterClass::X87, Features::X87, 8)
};

pub(crate) const ROWS: &[Kernel] = kernels! {
    "copy.x87.iprefetch" like ROW, Copy(copy_iprefetch) { aliases: &["copyD"] },
        "seed 002 copyD: from 1024 B on, 3840 B pre-read by integer loads, then 8 fild + 8 fistp";
};
