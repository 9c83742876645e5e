//! Single words in general registers, each one instruction of its own: what the edges are made of.
//! `words/` has them for each architecture.

/// Loads and stores by their instructions, with the class of registers that may hold an address.
macro_rules! single_words {
    ($address:ident: $($load:ident $read:literal, $store:ident $write:literal;)*) => {$(
        /// # Safety
        /// `p` is readable for as many bytes as the name says.
        #[inline(always)]
        pub(in crate::arch) unsafe fn $load(p: *const u8) -> u64 {
            let word;
            // SAFETY: the caller's promise; shorter loads clear the rest of the register.
            unsafe {
                asm!(
                    $read,
                    word = out(reg) word,
                    p = in($address) p,
                    options(nostack, readonly, preserves_flags),
                );
            }
            word
        }

        /// # Safety
        /// `p` is writable for as many bytes as the name says.
        #[inline(always)]
        pub(in crate::arch) unsafe fn $store(p: *mut u8, word: u64) {
            // SAFETY: the caller's promise.
            unsafe {
                asm!(
                    $write,
                    word = in(reg) word,
                    p = in($address) p,
                    options(nostack, preserves_flags),
                );
            }
        }
    )*};
}

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "powerpc64")]
mod powerpc64;

#[cfg(target_arch = "aarch64")]
pub(super) use aarch64::*;
#[cfg(target_arch = "powerpc64")]
pub(super) use powerpc64::*;
