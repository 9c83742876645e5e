//! Where large calls arrive: the return address is on top of the stack, and the call is done by the
//! kernel of the way that was chosen.

use super::learner;
use cachewise::hooks;
use cachewise_learn::Way;
use cachewise_learn::sites::Operation;

/// Nanoseconds of a clock that never goes back, by the vDSO: no system call.
pub(super) fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable for a timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Non-temporal, temporal, or as the profile has it.
fn around(operation: Operation, n: usize, site: usize) -> Option<bool> {
    let way = learner()?.way(operation, n, site)?;
    Some(way == Way::NonTemporal)
}

/// A copy from a call site.
///
/// # Safety
/// `memcpy`'s contract; the size is one that is hooked.
pub(crate) unsafe extern "C" fn copy(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    site: usize,
) -> *mut u8 {
    let kernel = hooks::copy(around(Operation::Copy, n, site), n);
    // SAFETY: the caller's promise; the table holds kernels that this CPU can run.
    unsafe { kernel(dst, src, n) }
}

unsafe extern "C" fn r#move(dst: *mut u8, src: *const u8, n: usize, site: usize) -> *mut u8 {
    let kernel = hooks::r#move(around(Operation::Move, n, site), n);
    // SAFETY: as in `copy`.
    unsafe { kernel(dst, src, n) }
}

unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize, site: usize) -> *mut u8 {
    let kernel = hooks::fill(around(Operation::Fill, n, site), n);
    // SAFETY: as in `copy`.
    unsafe { kernel(dst, byte, n) }
}

unsafe extern "C" fn zero(dst: *mut u8, n: usize, site: usize) -> *mut u8 {
    let kernel = hooks::zero(around(Operation::Zero, n, site), n);
    // SAFETY: as in `copy`.
    unsafe { kernel(dst, n) }
}

/// What the decision table jumps to.
pub(super) mod stub {
    use core::arch::naked_asm;

    macro_rules! stubs {
        ($($name:ident($($argument:ident: $type:ty),*): $register:literal;)*) => {$(
            /// # Safety
            /// As the kernels of its operation.
            #[unsafe(naked)]
            pub(in super::super) unsafe extern "C" fn $name($($argument: $type),*) -> *mut u8 {
                naked_asm!(
                    concat!("mov ", $register, ", [rsp]"),
                    "jmp {}",
                    sym super::$name,
                )
            }
        )*};
    }

    stubs! {
        copy(dst: *mut u8, src: *const u8, n: usize): "rcx";
        r#move(dst: *mut u8, src: *const u8, n: usize): "rcx";
        fill(dst: *mut u8, byte: i32, n: usize): "rcx";
        zero(dst: *mut u8, n: usize): "rdx";
    }
}
