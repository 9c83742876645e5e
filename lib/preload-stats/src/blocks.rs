//! Calls of the allocator, counted: `malloc`, `calloc` and `realloc`, each handed on to the next definition in the
//! dynamic linker's order, which is the one the program would have called. `free` and the others are not replaced.

use crate::next::Next;
use crate::statistics;
use core::ffi::c_void;
use core::ptr;

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;

static MALLOC: Next = Next::new(c"malloc");
static CALLOC: Next = Next::new(c"calloc");
static REALLOC: Next = Next::new(c"realloc");

/// `malloc`, counted.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(bytes: usize) -> *mut c_void {
    let next = MALLOC.get();
    if next.is_null() {
        return ptr::null_mut();
    }
    statistics::block(bytes);
    // SAFETY: the next `malloc`, which every C library has, has this type.
    let next = unsafe { core::mem::transmute::<*mut c_void, Malloc>(next) };
    // SAFETY: the caller's promise.
    unsafe { next(bytes) }
}

/// `calloc`, counted.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
    let next = CALLOC.get();
    if next.is_null() {
        return ptr::null_mut();
    }
    statistics::block(count.saturating_mul(bytes));
    // SAFETY: the next `calloc` has this type.
    let next = unsafe { core::mem::transmute::<*mut c_void, Calloc>(next) };
    // SAFETY: the caller's promise.
    unsafe { next(count, bytes) }
}

/// `realloc`, counted.
///
/// # Safety
/// As the C function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
    let next = REALLOC.get();
    if next.is_null() {
        return ptr::null_mut();
    }
    statistics::block(bytes);
    // SAFETY: the next `realloc` has this type.
    let next = unsafe { core::mem::transmute::<*mut c_void, Realloc>(next) };
    // SAFETY: the caller's promise.
    unsafe { next(block, bytes) }
}
