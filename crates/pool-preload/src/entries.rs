//! The exported functions: `malloc` and all its relatives in glibc, since a block of the pool may
//! be given to any of them.
//!
//! They call no exported function: that would go by the table of addresses, which is not filled in
//! when another library's resolver calls (`next.rs`).
//!
//! In a fuzz target (`cfg(fuzzing)`) they are functions like any others, and the process keeps its
//! own.

use crate::{next, pool};
use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

/// Alignment of every block (System V ABI).
const ALIGN: usize = 16;

fn page() -> usize {
    // The smallest there is, where the C library cannot be asked.
    if !next::is_relocated() {
        return 4096;
    }
    // SAFETY: always callable; no memory is involved.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// # Safety
/// `malloc`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { allocate(size) }
}

/// # Safety
/// `malloc`'s contract.
#[inline(always)]
unsafe fn allocate(size: usize) -> *mut u8 {
    match pool::take(size, ALIGN, false) {
        Some(block) => block.as_ptr(),
        // SAFETY: the caller's promise.
        None => unsafe { next::malloc(size) },
    }
}

/// # Safety
/// `calloc`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size).and_then(|bytes| pool::take(bytes, ALIGN, true)) {
        Some(block) => block.as_ptr(),
        // SAFETY: the caller's promise.
        None => unsafe { next::calloc(count, size) },
    }
}

/// # Safety
/// `free`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn free(block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { release(block) };
}

/// C23's, in glibc from 2.43 on, whose own takes every block for one of its own.
///
/// # Safety
/// `free_sized`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn free_sized(block: *mut u8, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { release(block) };
}

/// # Safety
/// `free_aligned_sized`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn free_aligned_sized(block: *mut u8, _align: usize, _size: usize) {
    // SAFETY: the caller's promise.
    unsafe { release(block) };
}

/// # Safety
/// `free`'s contract.
#[inline(always)]
unsafe fn release(block: *mut u8) {
    if let (Some(owner), Some(block)) = (pool::owner(block), NonNull::new(block)) {
        return owner.give_back(block);
    }
    if next::early_length(block).is_none() {
        // SAFETY: the caller's promise; the block is neither the pool's nor from before.
        unsafe { next::free(block) };
    }
}

/// The C library's other name of `free`, by which a program may give back what `malloc` gave it.
///
/// # Safety
/// `free`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn __libc_free(block: *mut u8) {
    if let (Some(owner), Some(block)) = (pool::owner(block), NonNull::new(block)) {
        return owner.give_back(block);
    }
    if next::early_length(block).is_none() {
        // Whoever has `malloc` need not be who has this.
        // SAFETY: the caller's promise; the block is neither the pool's nor from before.
        unsafe { next::libc_free(block) };
    }
}

/// `free` for programs that were linked before glibc 2.26.
///
/// # Safety
/// `free`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn cfree(block: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { release(block) };
}

/// # Safety
/// `realloc`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { resize(block, size) }
}

/// As [`__libc_free`].
///
/// # Safety
/// `realloc`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn __libc_realloc(block: *mut u8, size: usize) -> *mut u8 {
    if pool::owner(block).is_some() || next::early_length(block).is_some() {
        // SAFETY: the caller's promise.
        return unsafe { resize(block, size) };
    }
    // SAFETY: the caller's promise.
    unsafe { next::libc_realloc(block, size) }
}

/// # Safety
/// `realloc`'s contract.
unsafe fn resize(block: *mut u8, size: usize) -> *mut u8 {
    let owner = pool::owner(block);
    let held = match (owner, next::early_length(block)) {
        (Some(owner), _) => owner.bytes(block),
        (None, Some(length)) => length,
        // One that has grown by `mremap` so far goes on doing so.
        // SAFETY: the caller's promise.
        (None, None) if !block.is_null() => return unsafe { next::realloc(block, size) },
        // SAFETY: the caller's promise.
        (None, None) => return unsafe { allocate(size) },
    };
    if size == 0 {
        // As glibc has it: freed, and nothing in its place.
        // SAFETY: the caller's promise.
        unsafe { release(block) };
        return ptr::null_mut();
    }
    // Smaller by an eighth at most: it stays.
    if owner.is_some() && size <= held && size >= held - held / 8 {
        return block;
    }
    // SAFETY: the caller's promise.
    let new = unsafe { allocate(size) };
    if new.is_null() {
        // One that only had to become shorter is good as it is.
        return if size <= held { block } else { new };
    }
    if owner.is_some() {
        // SAFETY: both are that long, and a new block overlaps no other.
        unsafe { ptr::copy_nonoverlapping(block, new, held.min(size)) };
    } else {
        next::copy_early(block, new, held.min(size));
    }
    // SAFETY: the caller's promise.
    unsafe { release(block) };
    new
}

/// # Safety
/// `reallocarray`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn reallocarray(block: *mut u8, count: usize, size: usize) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: the caller's promise.
        Some(bytes) => unsafe { resize(block, bytes) },
        None => next::out_of_memory(),
    }
}

/// # Safety
/// `aligned_alloc`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut u8 {
    if align.is_power_of_two()
        && let Some(block) = pool::take(size, align, false)
    {
        return block.as_ptr();
    }
    // SAFETY: the caller's promise.
    unsafe { next::aligned_alloc(align, size) }
}

/// # Safety
/// `memalign`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { aligned(align, size) }
}

/// # Safety
/// `memalign`'s contract.
unsafe fn aligned(align: usize, size: usize) -> *mut u8 {
    if align.is_power_of_two()
        && let Some(block) = pool::take(size, align, false)
    {
        return block.as_ptr();
    }
    // SAFETY: the caller's promise.
    unsafe { next::memalign(align, size) }
}

/// # Safety
/// `posix_memalign`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn posix_memalign(out: *mut *mut u8, align: usize, size: usize) -> c_int {
    if align.is_power_of_two()
        && align.is_multiple_of(size_of::<*mut u8>())
        && let Some(block) = pool::take(size, align, false)
    {
        // SAFETY: the caller's promise.
        unsafe { out.write(block.as_ptr()) };
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { next::posix_memalign(out, align, size) }
}

/// # Safety
/// `valloc`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn valloc(size: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { aligned(page(), size) }
}

/// # Safety
/// `pvalloc`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn pvalloc(size: usize) -> *mut u8 {
    match size.max(1).checked_next_multiple_of(page()) {
        // SAFETY: the caller's promise.
        Some(bytes) => unsafe { aligned(page(), bytes) },
        None => next::out_of_memory(),
    }
}

/// # Safety
/// `malloc_usable_size`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn malloc_usable_size(block: *mut u8) -> usize {
    match pool::owner(block) {
        Some(owner) => owner.bytes(block),
        None => match next::early_length(block) {
            Some(length) => length,
            // SAFETY: the caller's promise.
            None => unsafe { next::malloc_usable_size(block) },
        },
    }
}

/// What `pthread_atfork` calls. The pool's own handlers are registered before any others, so that
/// they run last before a fork and first after it: no handler of a program ever finds the pool
/// locked, or waits for a thread that does.
///
/// # Safety
/// `__register_atfork`'s contract.
#[cfg_attr(not(fuzzing), unsafe(no_mangle))]
pub unsafe extern "C" fn __register_atfork(
    prepare: next::Handler,
    parent: next::Handler,
    child: next::Handler,
    library: *mut c_void,
) -> c_int {
    if !next::is_relocated() {
        return libc::ENOMEM;
    }
    cachewise_pages::register_fork_handlers();
    // SAFETY: the caller's promise.
    unsafe { next::register_atfork(prepare, parent, child, library) }
}
