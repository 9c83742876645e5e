//! `libcachewise.so` and `libcachewise.a`: the C interface, as `include/cachewise.h` describes it.
//!
//! On x86-64 the functions without a hint are the operation itself, by the macros of
//! `cachewise::entry`: no jump leads there, and none through the global offset table. The others
//! are a jump into `cachewise::raw`, or read what that crate decided. Nothing here can panic, and
//! the libraries are built to abort rather than unwind should anything do so.
//!
//! Built by itself in a profile that aborts on panic (`cargo build --release -p cachewise-capi`),
//! it links neither the standard library nor anything else but libc. `cargo run -p xtask --
//! install` builds it so and puts header, libraries and pkg-config file where they belong.
#![no_std]
#![warn(missing_docs)]

#[cfg(panic = "unwind")]
extern crate std;

use cachewise::{Reuse, raw};
use cachewise_kernels::Operation;
use core::ffi::{CStr, c_char, c_int, c_uint};
use core::fmt::{self, Write as _};
use core::slice;

cachewise::panic_handler_without_std!();

#[cfg_attr(panic = "unwind", allow(dead_code, reason = "then std has the panic handler"))]
fn abort() -> ! {
    // SAFETY: always callable.
    unsafe { libc::abort() }
}

#[link(name = "c")]
unsafe extern "C" {}

/// `enum cw_reuse`, of which C may pass any value: what is no hint is none.
fn reuse(value: c_uint) -> Reuse {
    match value {
        1 => Reuse::Soon,
        2 => Reuse::Never,
        _ => Reuse::Unknown,
    }
}

/// The operations: an entry of `cachewise::entry` where those are written out.
macro_rules! operations {
    ($($(#[$contract:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = $entry:ident, $raw:path;)*) => {$(
        /// See `cachewise.h`.
        ///
        /// # Safety
        $(#[$contract])*
        #[unsafe(no_mangle)]
        #[cfg_attr(written_out, unsafe(naked))]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            #[cfg(written_out)]
            cachewise::$entry!();
            #[cfg(not(written_out))]
            // SAFETY: the caller's promise.
            unsafe {
                $raw($($argument),*)
            }
        }
    )*};
}

operations! {
    /// `memcpy`'s contract.
    fn cw_copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = entry_copy, raw::copy_nonoverlapping;
    /// `memmove`'s contract.
    fn cw_move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = entry_move, raw::copy;
    /// `memset`'s contract.
    fn cw_fill(dst: *mut u8, byte: c_int, n: usize) -> *mut u8 = entry_fill, raw::fill;
    /// `dst` is writable for `n` bytes.
    fn cw_zero(dst: *mut u8, n: usize) -> *mut u8 = entry_zero, raw::zero;
    /// `memcmp`'s contract.
    fn cw_compare(a: *const u8, b: *const u8, n: usize) -> c_int = entry_compare, raw::compare;
    /// `a` and `b` are readable for `n` bytes.
    fn cw_equal(a: *const u8, b: *const u8, n: usize) -> c_int = entry_equal, raw::equal_int;
}

/// Exported operations with a hint about reuse.
macro_rules! hinted {
    ($(fn $name:ident($($argument:ident: $type:ty),*; $hint:ident: c_uint) -> *mut u8 = $raw:path, as $plain:ident;)*) => {$(
        /// See `cachewise.h`.
        ///
        /// # Safety
        #[doc = concat!("As [`", stringify!($plain), "`].")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type,)* $hint: c_uint) -> *mut u8 {
            // SAFETY: the caller's promise.
            unsafe { $raw(reuse($hint), $($argument),*) }
        }
    )*};
}

hinted! {
    fn cw_copy_hint(dst: *mut u8, src: *const u8, n: usize; hint: c_uint) -> *mut u8 = raw::copy_nonoverlapping_with, as cw_copy;
    fn cw_move_hint(dst: *mut u8, src: *const u8, n: usize; hint: c_uint) -> *mut u8 = raw::copy_with, as cw_move;
    fn cw_fill_hint(dst: *mut u8, byte: c_int, n: usize; hint: c_uint) -> *mut u8 = raw::fill_with, as cw_fill;
    fn cw_zero_hint(dst: *mut u8, n: usize; hint: c_uint) -> *mut u8 = raw::zero_with, as cw_zero;
}

/// See `cachewise.h`.
#[unsafe(no_mangle)]
pub extern "C" fn cw_init() {
    cachewise::init();
}

/// See `cachewise.h`.
#[unsafe(no_mangle)]
pub extern "C" fn cw_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => panic!("a version has no NUL in it"),
        };
    VERSION.as_ptr()
}

/// See `cachewise.h`.
///
/// # Safety
/// `buffer` is writable for `capacity` bytes, or `capacity` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cw_profile_source(buffer: *mut c_char, capacity: usize) -> usize {
    let source = cachewise::profile_source();
    // SAFETY: the caller's promise.
    unsafe { Text::told(buffer, capacity, |text| write!(text, "{source}")) }
}

/// Text that is counted to its end, and written as far as there is room.
struct Text<'a> {
    into: &'a mut [u8],
    length: usize,
}

impl Text<'_> {
    /// Tells into C's buffer, with a NUL at the end; the whole text's length.
    ///
    /// # Safety
    /// `buffer` is writable for `capacity` bytes, or `capacity` is 0.
    unsafe fn told(
        buffer: *mut c_char,
        capacity: usize,
        tell: impl FnOnce(&mut Text<'_>) -> fmt::Result,
    ) -> usize {
        let mut into: &mut [u8] = &mut [];
        // More than any path has: what comes after it need not be a slice, whose length is bounded.
        let room = capacity.min(1 << 16);
        if room > 0 {
            // SAFETY: the caller's promise; C's char may hold any byte.
            into = unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), room) };
        }
        let mut text = Text { into, length: 0 };
        // Text counts what it has no room for, and does not fail.
        let _ = tell(&mut text);
        let length = text.length;
        if let Some(end) = text.into.get_mut(length.min(room.saturating_sub(1))) {
            *end = 0;
        }
        length
    }
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = self.into.get_mut(self.length..).unwrap_or(&mut []);
        for (place, byte) in free.iter_mut().zip(text.bytes()) {
            *place = byte;
        }
        self.length += text.len();
        Ok(())
    }
}

/// See `cachewise.h`.
#[unsafe(no_mangle)]
pub extern "C" fn cw_decision(operation: c_uint, hint: c_uint, n: usize) -> *const c_char {
    let operation = match operation {
        0 => Operation::Copy,
        1 => Operation::Move,
        2 => Operation::Fill,
        3 => Operation::Zero,
        4 => Operation::Compare,
        5 => Operation::Equal,
        _ => return core::ptr::null(),
    };
    let decided = cachewise::decision(operation, reuse(hint), n as u64);
    if let Some(name) = decided.or_libc {
        return name.as_ptr();
    }
    match decided.kernel {
        None if decided.libc => c"libc".as_ptr(),
        None => c"inlined".as_ptr(),
        Some(kernel) => names::of(kernel),
    }
}

mod names {
    //! Kernels' names with a NUL at the end, which Rust's strings have not.

    use cachewise_kernels::{Kernel, TABLE};
    use core::ffi::c_char;

    /// Longer than any name, which is checked where the names are made.
    const ROOM: usize = 48;

    static NAMES: [[u8; ROOM]; TABLE.len()] = {
        let mut names = [[0; ROOM]; TABLE.len()];
        let mut at = 0;
        while at < TABLE.len() {
            let name = TABLE[at].name.as_bytes();
            assert!(name.len() < ROOM);
            let mut byte = 0;
            while byte < name.len() {
                names[at][byte] = name[byte];
                byte += 1;
            }
            at += 1;
        }
        names
    };

    pub(super) fn of(kernel: &Kernel) -> *const c_char {
        let at = TABLE.iter().position(|row| row.name == kernel.name);
        at.and_then(|at| NAMES.get(at)).map_or(core::ptr::null(), |name| name.as_ptr().cast())
    }
}
