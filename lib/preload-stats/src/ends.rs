//! `_exit` and `_Exit`, by which shells and forked workers end: no destructor runs then, so statistics are printed here.

use crate::next::Next;
use crate::os;
use crate::statistics::{self, End};
use core::ffi::c_int;

static EXIT: Next = Next::new(c"_exit");

/// Finds the next definition: later it may be asked for in a signal handler.
pub(crate) fn start() {
    EXIT.get();
}

fn end(status: c_int) -> ! {
    statistics::finish(End::AtOnce);
    let next = EXIT.known();
    if !next.is_null() {
        // SAFETY: the next `_exit` has this type.
        let next = unsafe {
            core::mem::transmute::<*mut core::ffi::c_void, extern "C" fn(c_int) -> !>(next)
        };
        next(status)
    }
    os::end(status)
}

/// Prints the statistics, and ends the process.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    end(status)
}

/// The same by C99's name.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    end(status)
}
