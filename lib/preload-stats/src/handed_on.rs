//! Functions whose work another library does: the next definition in the dynamic linker's order, which is the one that
//! the program would have called. `malloc`, `calloc` and `realloc` are counted; `free` and the others are not replaced.
//! `_exit` and `_Exit`, by which shells and forked workers end, print the statistics first: no destructor runs then.

use crate::statistics;
use cachewise::os;
use core::ffi::{CStr, c_int, c_void};
use core::mem::transmute;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The next definition of a function, looked for once.
struct Next(AtomicPtr<c_void>, &'static CStr);

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next(AtomicPtr::new(ptr::null_mut()), name)
    }

    fn get(&self) -> *mut c_void {
        let known = self.0.load(Relaxed);
        if !known.is_null() {
            return known;
        }
        let found = os::next_definition(self.1);
        self.0.store(found, Relaxed);
        found
    }
}

static EXIT: Next = Next::new(c"_exit");

/// Finds the next `_exit`: later it may be asked for in a signal handler.
pub(crate) fn start() {
    EXIT.get();
}

/// Allocating functions: what counts their bytes, and the C type.
macro_rules! counted {
    ($($name:ident($($argument:ident: $type:ty),*): $bytes:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, counted.")]
        ///
        /// # Safety
        /// As the C function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> *mut c_void {
            static NEXT: Next = Next::new({
                let name = concat!(stringify!($name), "\0");
                match CStr::from_bytes_with_nul(name.as_bytes()) {
                    Ok(name) => name,
                    Err(_) => panic!(),
                }
            });
            let next = NEXT.get();
            if next.is_null() {
                return ptr::null_mut();
            }
            statistics::block($bytes);
            // SAFETY: the next function of that name, which has this C type.
            let next = unsafe {
                transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> *mut c_void>(next)
            };
            // SAFETY: the caller's promise.
            unsafe { next($($argument),*) }
        }
    )*};
}

counted! {
    malloc(bytes: usize): bytes;
    calloc(count: usize, bytes: usize): count.saturating_mul(bytes);
    realloc(block: *mut c_void, bytes: usize): bytes;
}

fn end(status: c_int) -> ! {
    statistics::finish();
    let next = EXIT.0.load(Relaxed);
    if !next.is_null() {
        // SAFETY: the next `_exit` has this type.
        let next = unsafe { transmute::<*mut c_void, extern "C" fn(c_int) -> !>(next) };
        next(status)
    }
    loop {
        // SAFETY: reads and changes no memory.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// Prints the statistics, and ends the process.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(status: c_int) -> ! {
    end(status)
}

/// `_exit` by C99's name.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(status: c_int) -> ! {
    end(status)
}
