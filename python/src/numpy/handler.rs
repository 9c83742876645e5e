//! NumPy's handler of array data: large blocks from the pool, all others from NumPy's own handler.
//! Whose a block is, is told by its address.

use super::pool;
use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

/// `PyDataMem_Handler` (numpy/ndarraytypes.h), version 1.
#[repr(C)]
struct Handler {
    name: [c_char; 127],
    version: u8,
    allocator: Allocator,
}

/// `PyDataMemAllocator`.
#[repr(C)]
struct Allocator {
    context: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

// SAFETY: NumPy reads it; the context is null.
unsafe impl Sync for Handler {}

const CAPSULE: &CStr = c"mem_handler";

static OURS: Handler = Handler {
    name: name(b"cachewise_pool"),
    version: 1,
    allocator: Allocator { context: ptr::null_mut(), malloc, calloc, realloc, free },
};

/// NumPy's own.
static DEFAULT: AtomicPtr<Handler> = AtomicPtr::new(ptr::null_mut());

const fn name(text: &[u8]) -> [c_char; 127] {
    let mut name = [0; 127];
    let mut at = 0;
    while at < text.len() {
        name[at] = text[at] as c_char;
        at += 1;
    }
    name
}

/// Hands blocks that are not the pool's to that handler.
pub(super) fn hand_on_to(default: NonNull<c_void>) {
    DEFAULT.store(default.cast().as_ptr(), Ordering::Release);
}

/// The handler as NumPy takes it.
pub(super) fn capsule(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    if !pool::is_made() {
        return Err(PyRuntimeError::new_err("there is no pool yet"));
    }
    let place = (&raw const OURS).cast_mut().cast();
    // SAFETY: a static, which lives as long as the process; NumPy only reads it.
    let capsule = unsafe { ffi::PyCapsule_New(place, CAPSULE.as_ptr(), None) };
    // SAFETY: a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, capsule) }
}

/// Returns whether that handler is this one.
pub(super) fn is_ours(handler: &Bound<'_, PyAny>) -> bool {
    // SAFETY: an object.
    if unsafe { ffi::PyCapsule_IsValid(handler.as_ptr(), CAPSULE.as_ptr()) } == 0 {
        return false;
    }
    // SAFETY: a capsule of that name.
    let found = unsafe { ffi::PyCapsule_GetPointer(handler.as_ptr(), CAPSULE.as_ptr()) };
    ptr::eq(found.cast::<Handler>(), &raw const OURS)
}

fn default() -> &'static Allocator {
    // SAFETY: NumPy's, set before it was first given this handler, and as long-lived as the process.
    let handler = unsafe { DEFAULT.load(Ordering::Acquire).as_ref() };
    match handler {
        Some(handler) => &handler.allocator,
        // No array can have this handler before `hand_on_to` was called.
        None => std::process::abort(),
    }
}

/// At least one byte: NumPy takes null for failure.
unsafe extern "C" fn malloc(_: *mut c_void, size: usize) -> *mut c_void {
    match pool::take(size, false) {
        Some(block) => block.as_ptr().cast(),
        None => {
            let next = default();
            // SAFETY: NumPy's own function with its own context.
            unsafe { (next.malloc)(next.context, size.max(1)) }
        }
    }
}

unsafe extern "C" fn calloc(_: *mut c_void, count: usize, size: usize) -> *mut c_void {
    match count.checked_mul(size).map(|bytes| pool::take(bytes, true)) {
        // More than there are addresses.
        None => ptr::null_mut(),
        Some(Some(block)) => block.as_ptr().cast(),
        Some(None) => {
            let next = default();
            // SAFETY: NumPy's own function with its own context.
            unsafe { (next.calloc)(next.context, count.max(1), size.max(1)) }
        }
    }
}

unsafe extern "C" fn realloc(_: *mut c_void, block: *mut c_void, size: usize) -> *mut c_void {
    let size = size.max(1);
    let (Some(held), Some(start)) = (pool::bytes(block.cast()), NonNull::new(block.cast())) else {
        // Nobody knows how long it is, but the handler it is from: it stays there, however it grows.
        let next = default();
        // SAFETY: a block of NumPy's own handler, or null.
        return unsafe { (next.realloc)(next.context, block, size) };
    };
    // SAFETY: a block of the pool; what is cut off is nobody's any more, and neither is one that moved.
    if let Some(resized) = unsafe { pool::resize(start, size) } {
        return resized.as_ptr().cast();
    }
    // SAFETY: always callable.
    let new = unsafe { malloc(ptr::null_mut(), size) };
    if new.is_null() {
        // One that only had to become shorter is good as it is.
        return if size <= held { block } else { new };
    }
    // SAFETY: both are that long, and a new block overlaps no other.
    unsafe {
        cachewise::raw::copy_nonoverlapping(new.cast(), block.cast(), held.min(size));
    }
    // SAFETY: a block of the pool, of which NumPy forgets.
    unsafe { pool::give_back(block.cast()) };
    new
}

/// Frees a block. NumPy's size is used for its own blocks only: the pool knows its own.
unsafe extern "C" fn free(_: *mut c_void, block: *mut c_void, size: usize) {
    if pool::owns(block.cast()) {
        // SAFETY: a block of the pool, of which NumPy forgets.
        return unsafe { pool::give_back(block.cast()) };
    }
    let next = default();
    // SAFETY: a block of NumPy's own handler, or null, and NumPy's size.
    unsafe { (next.free)(next.context, block, size) }
}
