//! Calls that come before the dynamic linker has relocated this library.
//!
//! The linker relocates dependencies first, and what `LD_PRELOAD` names after every library of the program.
//! A library's resolver (GNU indirect functions) runs meanwhile, for a library that is relocated
//! later and refers to it. If it calls `memcpy`, it arrives here: in code whose tables of addresses
//! are not filled in. So nothing here takes an address from memory, or calls anything. Whether it is so
//! early, `dispatch.rs` sees.

use core::ptr;

/// # Safety
/// `memmove`'s contract.
pub(crate) unsafe fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    let forwards = dst.addr().wrapping_sub(src.addr()) >= n;
    let bytes = if ptr::eq(dst, src) { 0 } else { n };
    for done in 0..bytes {
        let at = if forwards { done } else { n - 1 - done };
        // Volatile: a loop that a compiler knows becomes a call of `memmove`.
        // SAFETY: the caller's promise; no byte is stored before it is loaded.
        let byte = unsafe { src.wrapping_add(at).read_volatile() };
        // SAFETY: the caller's promise.
        unsafe { dst.wrapping_add(at).write_volatile(byte) };
    }
    dst
}

/// # Safety
/// `memset`'s contract.
pub(crate) unsafe fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    for at in 0..n {
        // SAFETY: the caller's promise.
        unsafe { dst.wrapping_add(at).write_volatile(byte as u8) };
    }
    dst
}

/// # Safety
/// `memcmp`'s contract.
pub(crate) unsafe fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    for at in 0..n {
        // SAFETY: the caller's promise.
        let [a, b] = [a, b].map(|from| i32::from(unsafe { from.wrapping_add(at).read_volatile() }));
        if a != b {
            return a - b;
        }
    }
    0
}

/// # Safety
/// `memcmp`'s contract.
pub(crate) unsafe fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's promise.
    i32::from(unsafe { compare(a, b, n) } == 0)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    #[test]
    fn they_do_what_the_c_library_does() {
        let from: Vec<u8> = (0..300).map(|i| (i * 7 % 251) as u8).collect();
        for n in [0, 1, 2, 7, 64, 200] {
            for (to, at) in [(0, 50), (50, 0), (3, 0), (0, 3), (9, 9)] {
                let (mut ours, mut wanted) = (from.clone(), from.clone());
                wanted.copy_within(at..at + n, to);
                let base = ours.as_mut_ptr();
                // SAFETY: all inside the buffer.
                unsafe { r#move(base.wrapping_add(to), base.wrapping_add(at), n) };
                assert_eq!(ours, wanted, "{n} {to} {at}");
            }
            let mut ours = from.clone();
            // SAFETY: inside the buffer.
            unsafe { fill(ours.as_mut_ptr().wrapping_add(5), 0x1AB, n) };
            assert!(
                ours[5..5 + n].iter().all(|byte| *byte == 0xAB) && ours[5 + n..] == from[5 + n..]
            );
            for differs in 0..=n {
                let mut other = from.clone();
                other[differs] ^= 0x80;
                let wanted = from[..n].cmp(&other[..n]) as i32;
                // SAFETY: both have 300 bytes.
                let found = unsafe { compare(from.as_ptr(), other.as_ptr(), n) };
                assert_eq!(found.signum(), wanted, "{n} {differs}");
                // SAFETY: as above.
                let equal = unsafe { equal(from.as_ptr(), other.as_ptr(), n) };
                assert_eq!(equal, i32::from(wanted == 0), "{n} {differs}");
            }
        }
    }
}
