//! Calls of the allocator, counted: `malloc`, `calloc` and `realloc`, each handed on to the next definition in the
//! dynamic linker's order, which is the one the program would have called. `free` and the others are not replaced.

use crate::statistics;
use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
type Calloc = unsafe extern "C" fn(usize, usize) -> *mut c_void;
type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;

/// The next definition of a function, looked for once.
pub(crate) struct Next(AtomicPtr<c_void>, &'static CStr);

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Next {
        Next(AtomicPtr::new(ptr::null_mut()), name)
    }

    /// The definition, if it was looked for and found.
    pub(crate) fn known(&self) -> *mut c_void {
        self.0.load(Relaxed)
    }

    pub(crate) fn get(&self) -> *mut c_void {
        let known = self.known();
        if !known.is_null() {
            return known;
        }
        // Not by `dlsym`, which glibc moved from one library to another.
        let found = cachewise::next_definitions([self.1], ptr::from_ref(self).addr());
        let found = found.map_or(ptr::null_mut(), |[next]| next.cast());
        self.0.store(found, Relaxed);
        found
    }
}

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
