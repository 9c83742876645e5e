//! `libcachewise_pool.so` and `libcachewise_pool.a`: the page pool for C, as
//! `include/cachewise_pool.h` describes it.
//!
//! A library apart from `libcachewise`, which promises to need libc alone, to allocate nothing and
//! never to lock: a pool has threads, locks and memory, and so the standard library under it.
//!
//! A handle is a few bytes that are never freed: it outlives its pool, so that the use of a
//! destroyed pool is an error and not undefined.
#![warn(missing_docs)]
#![cfg(target_os = "linux")]

mod code;
mod settings;
mod stats;

pub use code::Code;
pub use settings::Config;
pub use stats::PoolStats;

use cachewise_pages::{Note, Pool, PoolError};
use core::ffi::{c_char, c_int, c_uint};
use std::cell::RefCell;
use std::ffi::CString;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, Ordering};

/// The handle that C programs have of a pool.
#[derive(Debug)]
pub struct Handle {
    /// Null once destroyed.
    pool: AtomicPtr<Pool>,
    /// The one made before it.
    before: AtomicPtr<Handle>,
}

/// The handle made last, the head of a list. Handles are never freed, so that destroying one twice is an error;
/// tools that report unreachable memory (LeakSanitizer, Valgrind) reach them from here.
static HANDLES: AtomicPtr<Handle> = AtomicPtr::new(ptr::null_mut());

impl Handle {
    fn keep(pool: Pool) -> *mut Handle {
        let pool = AtomicPtr::new(Box::into_raw(Box::new(pool)));
        let handle = Box::leak(Box::new(Handle { pool, before: AtomicPtr::default() }));
        let mut before = HANDLES.load(Ordering::Relaxed);
        loop {
            handle.before.store(before, Ordering::Relaxed);
            let last = ptr::from_mut(handle);
            match HANDLES.compare_exchange(before, last, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return last,
                Err(other) => before = other,
            }
        }
    }
}

thread_local! {
    static MESSAGE: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// Keeps the error's text for `cw_pool_message`, and returns its code.
fn failed(error: &PoolError) -> c_int {
    match Code::of(error) {
        // In a signal handler, where nothing may allocate.
        Code::Reentered => Code::Reentered as c_int,
        code => told(code, &error.to_string()),
    }
}

fn told(code: Code, text: &str) -> c_int {
    let text = CString::new(text).unwrap_or_default();
    // A thread that is ending has no place for it any more.
    let _ = MESSAGE.try_with(|place| {
        if let Ok(mut place) = place.try_borrow_mut() {
            *place = Some(text);
        }
    });
    code as c_int
}

/// The pool behind a handle.
fn pool<'p>(handle: *const Handle) -> Result<&'p Pool, PoolError> {
    // SAFETY: null, or what `cw_pool_create` gave out, which is never freed.
    let handle = unsafe { handle.as_ref() }.ok_or(PoolError::Closed)?;
    // SAFETY: null, or a pool: the caller destroys none that is in use.
    unsafe { handle.pool.load(Ordering::Acquire).as_ref() }.ok_or(PoolError::Closed)
}

fn code(done: Result<(), PoolError>) -> c_int {
    done.map_or_else(|error| failed(&error), |()| Code::Ok as c_int)
}

fn block(found: Result<NonNull<u8>, PoolError>) -> *mut u8 {
    match found {
        Ok(block) => block.as_ptr(),
        Err(error) => {
            // Running out is part of life: nothing is put into words, and nothing allocated, for
            // it.
            if !matches!(error, PoolError::Exhausted { .. }) {
                failed(&error);
            }
            set_errno(Code::of(&error).errno());
            ptr::null_mut()
        }
    }
}

fn set_errno(value: c_int) {
    // SAFETY: always callable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    unsafe { place.write(value) };
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// `config` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_config_init(config: *mut Config) {
    if !config.is_null() {
        // SAFETY: the caller's promise.
        unsafe { config.write(Config::default()) };
    }
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// `config` is null or readable for the size it says; `out` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_create(config: *const Config, out: *mut *mut Handle) -> c_int {
    if out.is_null() {
        return told(Code::Invalid, "out: expected a place for the pool, found NULL");
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { out.write(ptr::null_mut()) };
    // SAFETY: the caller's promise.
    let config = unsafe { settings::read(config) };
    let builder = match config.and_then(|config| config.builder()) {
        Ok(builder) => builder,
        Err((code, text)) => return told(code, &text),
    };
    match builder.build() {
        Ok(pool) => {
            let told_of = |note: &Note| {
                matches!(note, Note::NoLease(_) | Note::NoDevice(_) | Note::NoHugetlb(_))
            };
            if let Some(note) = pool.notes().into_iter().find(told_of) {
                told(Code::Ok, &note.to_string());
            }
            // SAFETY: as above.
            unsafe { out.write(Handle::keep(pool)) };
            Code::Ok as c_int
        }
        Err(error) => failed(&error),
    }
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// `handle` is null or came from `cw_pool_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_alloc(handle: *mut Handle, order: c_uint) -> *mut u8 {
    block(pool(handle).and_then(|pool| pool.alloc_raw(order)))
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_zalloc(handle: *mut Handle, order: c_uint) -> *mut u8 {
    block(pool(handle).and_then(|pool| pool.zalloc_raw(order)))
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_zalloc_to_fill(handle: *mut Handle, order: c_uint) -> *mut u8 {
    block(pool(handle).and_then(|pool| pool.zalloc_to_fill_raw(order)))
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`], and nobody uses the block any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_free(handle: *mut Handle, block: *mut u8, order: c_uint) -> c_int {
    code(pool(handle).and_then(|pool| match NonNull::new(block) {
        // SAFETY: the caller's promise; that it is a block of the pool is checked.
        Some(block) => unsafe { pool.free_raw(block, order) },
        None => Ok(()),
    }))
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_alloc_bytes(handle: *mut Handle, bytes: usize) -> *mut u8 {
    block(pool(handle).and_then(|pool| pool.alloc_run_raw(pool.frames_for(bytes)?)))
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_zalloc_bytes(handle: *mut Handle, bytes: usize) -> *mut u8 {
    block(pool(handle).and_then(|pool| pool.zalloc_run_raw(pool.frames_for(bytes)?)))
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_free_bytes(
    handle: *mut Handle,
    block: *mut u8,
    bytes: usize,
) -> c_int {
    code(pool(handle).and_then(|pool| match NonNull::new(block) {
        // SAFETY: the caller's promise; that it is a block of the pool is checked.
        Some(block) => unsafe { pool.free_run_raw(block, pool.frames_for(bytes)?) },
        None => Ok(()),
    }))
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_contains(handle: *const Handle, address: *const u8) -> c_int {
    pool(handle).is_ok_and(|pool| pool.contains(address)).into()
}

/// Does something with a pool that counts bytes.
///
/// # Safety
/// `handle` as for [`cw_pool_alloc`]; `out` is null or writable.
unsafe fn counted(
    handle: *mut Handle,
    out: *mut usize,
    work: impl FnOnce(&Pool) -> Result<usize, PoolError>,
) -> c_int {
    code(pool(handle).and_then(work).map(|bytes| {
        if !out.is_null() {
            // SAFETY: the caller's promise.
            unsafe { out.write(bytes) };
        }
    }))
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`]; `scrubbed` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_scrub(
    handle: *mut Handle,
    max_bytes: usize,
    scrubbed: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { counted(handle, scrubbed, |pool| pool.scrub_now(max_bytes)) }
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`]; `bytes` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_trim(handle: *mut Handle, bytes: *mut usize) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { counted(handle, bytes, Pool::trim) }
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`]; `out` is null or writable for the size it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_get_stats(handle: *const Handle, out: *mut PoolStats) -> c_int {
    match pool(handle).and_then(Pool::stats) {
        // SAFETY: the caller's promise.
        Ok(figures) => match unsafe { stats::write(&figures, out) } {
            Ok(()) => Code::Ok as c_int,
            Err((code, text)) => told(code, &text),
        },
        Err(error) => failed(&error),
    }
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_get_stats`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_stats(handle: *const Handle, out: *mut PoolStats) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { cw_pool_get_stats(handle, out) }
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_page_size(handle: *const Handle) -> usize {
    pool(handle).map_or(0, Pool::page_size)
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_pause(handle: *mut Handle) -> c_int {
    pool(handle).map_or(0, |pool| pool.pause_scrubber().into())
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_resume(handle: *mut Handle) {
    if let Ok(pool) = pool(handle) {
        pool.resume_scrubber();
    }
}

/// See `cachewise_pool.h`.
///
/// # Safety
/// Promises of [`cw_pool_alloc`]; nobody is in a call on this pool, or uses a block of it afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_pool_destroy(handle: *mut Handle) {
    // SAFETY: null, or what `cw_pool_create` gave out, which is never freed.
    let Some(handle) = (unsafe { handle.as_ref() }) else { return };
    let pool = handle.pool.swap(ptr::null_mut(), Ordering::AcqRel);
    if !pool.is_null() {
        // SAFETY: made by `Box::into_raw`, and taken out of the handle once.
        drop(unsafe { Box::from_raw(pool) });
    }
}

/// See `cachewise_pool.h`.
#[unsafe(no_mangle)]
pub extern "C" fn cw_strerror(code: c_int) -> *const c_char {
    let known = Code::ALL.iter().find(|known| **known as c_int == code);
    known.map_or(c"unknown error", |code| code.text()).as_ptr()
}

/// See `cachewise_pool.h`.
#[unsafe(no_mangle)]
pub extern "C" fn cw_pool_message() -> *const c_char {
    let message = MESSAGE.try_with(|place| {
        place.try_borrow().ok().and_then(|text| text.as_ref().map(|text| text.as_ptr()))
    });
    message.ok().flatten().unwrap_or(c"".as_ptr())
}
