//! Each thread's clocks, in thread-local storage of the initial-exec kind: at a fixed distance from
//! the thread pointer, there from a thread's first instruction to its last, and never allocated.
//! Zeroed, as the C library makes it for every thread, it is a set of stopped clocks.

use cachewise_learn::sites::Clocks;
use core::arch::{asm, global_asm};

#[repr(C)]
struct Local {
    /// Somebody has the clocks: a signal handler that copies finds them taken.
    taken: u64,
    clocks: Clocks,
}

global_asm!(
    ".pushsection .tbss.cachewise_clocks, \"awT\", @nobits",
    ".p2align 4",
    ".hidden cachewise_clocks",
    ".type cachewise_clocks, @object",
    ".size cachewise_clocks, {size}",
    "cachewise_clocks:",
    ".zero {size}",
    ".popsection",
    size = const size_of::<Local>(),
);

fn local() -> *mut Local {
    let place: *mut Local;
    // SAFETY: the System V ABI's way to a thread's initial-exec variable: its distance from the
    // thread pointer, and the thread pointer, which is the word at fs:0.
    unsafe {
        asm!(
            "mov {place}, qword ptr [rip + cachewise_clocks@GOTTPOFF]",
            "add {place}, qword ptr fs:[0]",
            place = out(reg) place,
            options(pure, readonly, nostack),
        );
    }
    place
}

/// Runs `body` with this thread's clocks; `None` in a signal handler that came meanwhile.
pub(super) fn with_clocks<T>(body: impl FnOnce(&mut Clocks) -> T) -> Option<T> {
    let local = local();
    // The first field of a repr(C) struct.
    let taken = local.cast::<u64>();
    // SAFETY: this thread's own; zero or one. Volatile, since a signal handler of this thread may
    // run between any two instructions.
    if unsafe { taken.read_volatile() } != 0 {
        return None;
    }
    // SAFETY: as above.
    unsafe { taken.write_volatile(1) };
    // SAFETY: `taken` keeps everybody else out, and zeroes are stopped clocks.
    let result = body(unsafe { &mut (*local).clocks });
    // SAFETY: as above.
    unsafe { taken.write_volatile(0) };
    Some(result)
}
