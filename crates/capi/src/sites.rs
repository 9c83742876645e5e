//! Operations at a named site: `struct cw_site`, and what is known of it.

use crate::Text;
use cachewise::SiteState;
use cachewise::site::{self, Name};
use cachewise_kernels::Operation;
use core::ffi::{CStr, c_char, c_int, c_uint};
use core::fmt::Write as _;
use core::mem::offset_of;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Below this no site is asked.
const LARGE: usize = 64 << 10;

/// `struct cw_site`.
#[repr(C)]
pub struct CwSite {
    name: *const c_char,
    /// The low and the high half of the name's number, where a size has 32 bits, once they are
    /// known.
    number: [AtomicUsize; 2],
    length: AtomicUsize,
}

/// # Safety
/// `site` is null, or as `cachewise.h` has it: made by `CW_SITE`, with a name that ends in NUL.
unsafe fn name<'a>(site: *mut CwSite) -> Name<'a> {
    const NOBODY: Name<'static> = Name::new(b"");
    // SAFETY: the caller's promise.
    let Some(site) = (unsafe { site.as_ref() }) else { return NOBODY };
    if site.name.is_null() {
        return NOBODY;
    }
    let length = site.length.load(Ordering::Acquire);
    if length > 0 {
        let [low, high] = &site.number;
        // SAFETY: as many bytes were seen before the length was stored.
        let bytes = unsafe { core::slice::from_raw_parts(site.name.cast::<u8>(), length) };
        let high = (high.load(Ordering::Relaxed) as u64) << 32;
        return Name::with_number(bytes, high | low.load(Ordering::Relaxed) as u64 & 0xFFFF_FFFF);
    }
    // SAFETY: the caller's promise.
    let all = unsafe { CStr::from_ptr(site.name) }.to_bytes();
    let bytes = all.get(..site::MAX_NAME).unwrap_or(all);
    let number = Name::number(bytes);
    site.number[0].store(number as u32 as usize, Ordering::Relaxed);
    site.number[1].store((number >> 32) as usize, Ordering::Relaxed);
    site.length.store(bytes.len(), Ordering::Release);
    Name::with_number(bytes, number)
}

/// See `cachewise.h`.
///
/// # Safety
/// `site` as `cw_site_state` has it, and `memcpy`'s contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_copy_at(
    site: *mut CwSite,
    dst: *mut u8,
    src: *const u8,
    n: usize,
) -> *mut u8 {
    if n < LARGE {
        // SAFETY: the caller's promise.
        return unsafe { crate::cw_copy(dst, src, n) };
    }
    // SAFETY: the caller's promise.
    let name = unsafe { name(site) };
    // SAFETY: the caller's promise.
    unsafe { site::copy(name, dst, src, n) }
}

/// See `cachewise.h`.
///
/// # Safety
/// `site` as `cw_site_state` has it, and `memmove`'s contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_move_at(
    site: *mut CwSite,
    dst: *mut u8,
    src: *const u8,
    n: usize,
) -> *mut u8 {
    if n < LARGE {
        // SAFETY: the caller's promise.
        return unsafe { crate::cw_move(dst, src, n) };
    }
    // SAFETY: the caller's promise.
    let name = unsafe { name(site) };
    // SAFETY: the caller's promise.
    unsafe { site::r#move(name, dst, src, n) }
}

/// See `cachewise.h`.
///
/// # Safety
/// `site` as `cw_site_state` has it, and `memset`'s contract.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_fill_at(
    site: *mut CwSite,
    dst: *mut u8,
    byte: c_int,
    n: usize,
) -> *mut u8 {
    if n < LARGE {
        // SAFETY: the caller's promise.
        return unsafe { crate::cw_fill(dst, byte, n) };
    }
    // SAFETY: the caller's promise.
    let name = unsafe { name(site) };
    // SAFETY: the caller's promise.
    unsafe { site::fill(name, dst, byte, n) }
}

/// See `cachewise.h`.
///
/// # Safety
/// `site` as `cw_site_state` has it, and `dst` is writable for `n` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_zero_at(site: *mut CwSite, dst: *mut u8, n: usize) -> *mut u8 {
    if n < LARGE {
        // SAFETY: the caller's promise.
        return unsafe { crate::cw_zero(dst, n) };
    }
    // SAFETY: the caller's promise.
    let name = unsafe { name(site) };
    // SAFETY: the caller's promise.
    unsafe { site::zero(name, dst, n) }
}

/// `struct cw_site_state`.
#[repr(C)]
pub struct CwSiteState {
    size: usize,
    outcome: c_uint,
    calls: usize,
    tried: usize,
    temporal_ns: f64,
    non_temporal_ns: f64,
}

/// See `cachewise.h`.
///
/// # Safety
/// `site` is null, or made by `CW_SITE` with a name that ends in NUL; `state` is writable for as
/// many bytes as its `size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_site_state(
    site: *mut CwSite,
    operation: c_uint,
    n: usize,
    state: *mut CwSiteState,
) -> c_int {
    let operation = match operation {
        0 => Operation::Copy,
        1 => Operation::Move,
        2 => Operation::Fill,
        3 => Operation::Zero,
        _ => return 0,
    };
    // SAFETY: the caller's promise.
    let Some(known) = site::state(unsafe { name(site) }, operation, n) else { return 0 };
    let SiteState { outcome, calls, tried, temporal_ns, non_temporal_ns, .. } = known;
    let whole = CwSiteState {
        size: 0,
        outcome: outcome as c_uint,
        calls: calls as usize,
        tried: tried as usize,
        temporal_ns,
        non_temporal_ns,
    };
    // SAFETY: the caller's promise: there are at least the bytes of a size.
    let room = unsafe { *state.cast::<usize>() }.min(size_of::<CwSiteState>());
    let first = offset_of!(CwSiteState, outcome);
    if let Some(count) = room.checked_sub(first) {
        let from = (&raw const whole).cast::<u8>().wrapping_add(first);
        let to = state.cast::<u8>().wrapping_add(first);
        // SAFETY: both have `room` bytes, and `whole` is ours alone.
        unsafe { crate::cw_copy(to, from, count) };
    }
    1
}

/// See `cachewise.h`.
///
/// # Safety
/// `problem` is writable for `capacity` bytes, or `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_sites_save(problem: *mut c_char, capacity: usize) -> usize {
    #[cfg(target_os = "linux")]
    let saved = cachewise::save_sites();
    #[cfg(not(target_os = "linux"))]
    let saved: Result<(), &str> = Err("sites are not learned on this system");
    // SAFETY: the caller's promise.
    unsafe {
        Text::told(problem, capacity, |text| match &saved {
            Ok(()) => Ok(()),
            Err(why) => write!(text, "{why}"),
        })
    }
}
