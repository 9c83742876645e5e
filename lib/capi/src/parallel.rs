//! Large operations by several threads.

use crate::reuse;
use cachewise::parallel::{Threads, Workers, raw_copy_parallel, raw_zero_parallel};
use core::ffi::{c_uint, c_void};

/// `struct cw_workers`.
#[repr(C)]
pub struct CwWorkers {
    size: usize,
    threads: usize,
    pool: *mut c_void,
    run: Option<unsafe extern "C" fn(*mut c_void, usize, Job, *mut c_void)>,
}

type Job = unsafe extern "C" fn(*mut c_void);

/// Function that `run` is given to call: a closure behind a C function.
unsafe extern "C" fn call(argument: *mut c_void) {
    // SAFETY: `run` passes on the pointer that it was given, before it returns.
    let job = unsafe { &*argument.cast::<&(dyn Fn() + Sync)>() };
    job();
}

impl Workers for CwWorkers {
    fn threads(&self) -> usize {
        if self.run.is_some() { self.threads } else { 1 }
    }

    fn run(&self, threads: usize, job: &(dyn Fn() + Sync)) {
        let argument = (&raw const job).cast_mut().cast::<c_void>();
        if let Some(run) = self.run {
            // SAFETY: the contract of `cw_workers`: it calls the job, and returns when it has.
            unsafe { run(self.pool, threads, call, argument) };
        }
    }
}

fn own(threads: usize) -> Threads {
    if threads == 0 { Threads::all() } else { Threads::new(threads) }
}

/// The caller's pool; `None` where there is none, or it comes from an older header.
///
/// # Safety
/// Null, or valid for its own `size`.
unsafe fn pool<'w>(workers: *const CwWorkers) -> Option<&'w CwWorkers> {
    if workers.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; the size is the first member.
    let size = unsafe { workers.cast::<usize>().read() };
    if size < size_of::<CwWorkers>() {
        return None;
    }
    // SAFETY: the caller's promise, and the size covers all of it.
    Some(unsafe { &*workers })
}

/// See `cachewise.h`.
///
/// # Safety
/// `memcpy`'s contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_copy_parallel(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    hint: c_uint,
    threads: usize,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { raw_copy_parallel(reuse(hint), &own(threads), dst, src, n) };
    dst
}

/// See `cachewise.h`.
///
/// # Safety
/// `memset`'s contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_zero_parallel(
    dst: *mut u8,
    n: usize,
    hint: c_uint,
    threads: usize,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe { raw_zero_parallel(reuse(hint), &own(threads), dst, n) };
    dst
}

/// See `cachewise.h`.
///
/// # Safety
/// `memcpy`'s contract, and `workers` is null or as `cachewise.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_copy_workers(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    hint: c_uint,
    workers: *const CwWorkers,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    let workers: &dyn Workers = match unsafe { pool(workers) } {
        Some(workers) => workers,
        None => &Threads::new(1),
    };
    // SAFETY: the caller's promise.
    unsafe { raw_copy_parallel(reuse(hint), workers, dst, src, n) };
    dst
}

/// See `cachewise.h`.
///
/// # Safety
/// `memset`'s contract, and `workers` is null or as `cachewise.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_zero_workers(
    dst: *mut u8,
    n: usize,
    hint: c_uint,
    workers: *const CwWorkers,
) -> *mut u8 {
    // SAFETY: the caller's promise.
    let workers: &dyn Workers = match unsafe { pool(workers) } {
        Some(workers) => workers,
        None => &Threads::new(1),
    };
    // SAFETY: the caller's promise.
    unsafe { raw_zero_parallel(reuse(hint), workers, dst, n) };
    dst
}
