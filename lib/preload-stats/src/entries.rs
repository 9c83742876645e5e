//! The exported functions: each counts its call and then does it as `libcachewise_preload.so` does.

use crate::statistics::{Operation, count};
#[cfg(not(target_arch = "x86_64"))]
use cachewise::raw as operation;

#[cfg(target_arch = "x86_64")]
mod operation {
    //! The operations as `libcachewise_preload.so` exports them: no call of theirs reads an address in memory, where a
    //! resolver that runs before this library is relocated would find none.

    macro_rules! entries {
        ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty = $entry:ident;)*) => {$(
            #[unsafe(naked)]
            pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                cachewise::$entry!();
            }
        )*};
    }

    entries! {
        copy_nonoverlapping(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = entry_copy;
        copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = entry_move;
        fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 = entry_fill;
        zero(dst: *mut u8, n: usize) -> *mut u8 = entry_zero;
        compare(a: *const u8, b: *const u8, n: usize) -> i32 = entry_compare;
    }
}

/// The exported functions, with the contracts of their namesakes in the C library; a form that knows the destination's
/// room ends the program where `n` exceeds it.
macro_rules! exported {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty, $n:ident $(in $room:ident)? = $work:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, counted.")]
        ///
        /// # Safety
        /// As the C function; buffers of `memcpy` may overlap.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            $(if $room < $n {
                cachewise::overflow();
            })?
            $work
        }
    )*};
}

fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    count(Operation::Copy, n);
    let distance = dst.addr().wrapping_sub(src.addr());
    if distance < n || distance.wrapping_neg() < n {
        // SAFETY: the exported function's caller promises `memmove`'s contract.
        return unsafe { operation::copy(dst, src, n) };
    }
    // SAFETY: as above, and the buffers do not overlap.
    unsafe { operation::copy_nonoverlapping(dst, src, n) }
}

fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    count(Operation::Move, n);
    // SAFETY: the exported function's caller promises `memmove`'s contract.
    unsafe { operation::copy(dst, src, n) }
}

fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    if byte as u8 == 0 {
        count(Operation::Zero, n);
        // SAFETY: the exported function's caller promises `memset`'s contract.
        return unsafe { operation::zero(dst, n) };
    }
    count(Operation::Fill, n);
    // SAFETY: as above.
    unsafe { operation::fill(dst, byte, n) }
}

fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    count(Operation::Compare, n);
    // SAFETY: the exported function's caller promises `memcmp`'s contract.
    unsafe { operation::compare(a, b, n) }
}

exported! {
    memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8, n = copy(dst, src, n);
    memmove(dst: *mut u8, src: *const u8, n: usize) -> *mut u8, n = r#move(dst, src, n);
    mempcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8, n = copy(dst, src, n).wrapping_add(n);
    memset(dst: *mut u8, byte: i32, n: usize) -> *mut u8, n = fill(dst, byte, n);
    memset_explicit(dst: *mut u8, byte: i32, n: usize) -> *mut u8, n = fill(dst, byte, n);
    memcmp(a: *const u8, b: *const u8, n: usize) -> i32, n = compare(a, b, n);
    bcmp(a: *const u8, b: *const u8, n: usize) -> i32, n = compare(a, b, n);
    bzero(dst: *mut u8, n: usize) -> *mut u8, n = fill(dst, 0, n);
    explicit_bzero(dst: *mut u8, n: usize) -> *mut u8, n = fill(dst, 0, n);
    __memcpy_chk(dst: *mut u8, src: *const u8, n: usize, room: usize) -> *mut u8, n in room = copy(dst, src, n);
    __memmove_chk(dst: *mut u8, src: *const u8, n: usize, room: usize) -> *mut u8, n in room = r#move(dst, src, n);
    __mempcpy_chk(dst: *mut u8, src: *const u8, n: usize, room: usize) -> *mut u8, n in room = copy(dst, src, n).wrapping_add(n);
    __memset_chk(dst: *mut u8, byte: i32, n: usize, room: usize) -> *mut u8, n in room = fill(dst, byte, n);
    __memset_explicit_chk(dst: *mut u8, byte: i32, n: usize, room: usize) -> *mut u8, n in room = fill(dst, byte, n);
    __explicit_bzero_chk(dst: *mut u8, n: usize, room: usize) -> *mut u8, n in room = fill(dst, 0, n);
}
