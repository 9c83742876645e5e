//! Calls that come before the dynamic linker has relocated this library.
//!
//! It relocates dependencies first, and what `LD_PRELOAD` names after every library of the program.
//! A library's resolver (GNU indirect functions) runs meanwhile, for a library that is relocated
//! later and refers to it. If it calls `memcpy`, it arrives here: in code whose tables of addresses
//! are not filled in. So nothing here takes an address from memory, or calls anything. Whether it is so
//! early, `dispatch.rs` sees.

use core::arch::asm;
use core::ptr;

/// # Safety
/// `memmove`'s contract.
pub(crate) unsafe fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
    if dst.addr().wrapping_sub(src.addr()) >= n {
        // SAFETY: the caller's promise; no byte is stored before it is loaded.
        unsafe {
            asm!(
                "rep movsb",
                inout("rcx") n => _, inout("rdi") dst => _, inout("rsi") src => _,
                options(nostack, preserves_flags),
            );
        }
    } else if n > 0 && !ptr::eq(dst, src) {
        let (last_to, last_from) = (dst.wrapping_add(n - 1), src.wrapping_add(n - 1));
        // SAFETY: as above, from the end to the beginning; the direction is put back.
        unsafe {
            asm!(
                "std", "rep movsb", "cld",
                inout("rcx") n => _, inout("rdi") last_to => _, inout("rsi") last_from => _,
                options(nostack),
            );
        }
    }
    dst
}

/// # Safety
/// `memset`'s contract.
pub(crate) unsafe fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            "rep stosb",
            inout("rcx") n => _, inout("rdi") dst => _, in("al") byte as u8,
            options(nostack, preserves_flags),
        );
    }
    dst
}

/// # Safety
/// `memcmp`'s contract.
pub(crate) unsafe fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
    let (first, second): (u32, u32);
    // SAFETY: the caller's promise; the two bytes that are loaded again are the last that were compared,
    // and none where n is 0.
    unsafe {
        asm!(
            "xor {first:e}, {first:e}",
            "xor {second:e}, {second:e}",
            "test rcx, rcx",
            "jz 2f",
            "repe cmpsb",
            "movzx {first:e}, byte ptr [rsi - 1]",
            "movzx {second:e}, byte ptr [rdi - 1]",
            "2:",
            first = out(reg) first, second = out(reg) second,
            inout("rcx") n => _, inout("rsi") a => _, inout("rdi") b => _,
            options(nostack, readonly),
        );
    }
    first as i32 - second as i32
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
            }
        }
    }
}
