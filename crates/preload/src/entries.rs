//! The exported functions, with the contracts of the C library's.
//!
//! On x86-64 each is written in assembly, for two reasons: it is a jump and nothing else up to
//! [`SMALL`] bytes, and [`switch`](crate::switch) may replace its first eight bytes, which no
//! compiler promises to keep whole. Elsewhere they are the functions of [`plain`].
//!
//! Two things a caller relies on without the C standard's leave are kept:
//! - `memcpy` of buffers that overlap is a `memmove`, as it is in glibc on x86-64, where both have
//!   been one function for years and programs have come to depend on it.
//! - the `__*_chk` forms end the program as glibc's do, by glibc's own function.
//!
//! `memset` of zeros is the operation zero: whole lines of zeros have ways of their own.

/// Up to here the library loads everything before it stores anything, whatever the operation.
const SMALL: usize = 128;

#[link(name = "c")]
unsafe extern "C" {
    /// glibc's `*** buffer overflow detected ***: terminated`.
    fn __chk_fail() -> !;
}

/// What the functions do, for entries that are not a jump into `cachewise::raw`.
pub(crate) mod plain {
    use super::{__chk_fail, SMALL};
    use cachewise::raw;

    /// Whether two buffers of `n` bytes share any.
    pub(crate) fn overlap(dst: *const u8, src: *const u8, n: usize) -> bool {
        let distance = dst.addr().wrapping_sub(src.addr());
        distance < n || distance.wrapping_neg() < n
    }

    /// # Safety
    /// `memmove`'s contract.
    pub(crate) unsafe extern "C" fn memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        if n > SMALL && overlap(dst, src, n) {
            // SAFETY: the caller's promise.
            unsafe { raw::copy(dst, src, n) }
        } else {
            // SAFETY: the caller's promise; the buffers do not overlap, or everything is loaded
            // before anything is stored.
            unsafe { raw::copy_nonoverlapping(dst, src, n) }
        }
    }

    /// # Safety
    /// As [`memcpy`].
    pub(crate) unsafe extern "C" fn mempcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { memcpy(dst, src, n) };
        dst.wrapping_add(n)
    }

    /// # Safety
    /// `memset`'s contract.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) unsafe extern "C" fn memset(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
        if n > SMALL && byte as u8 == 0 {
            // SAFETY: the caller's promise.
            unsafe { raw::zero(dst, n) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { raw::fill(dst, byte, n) }
        }
    }

    /// Ends the program.
    pub(crate) extern "C" fn overflow() -> ! {
        // SAFETY: always callable; does not return.
        unsafe { __chk_fail() }
    }
}

#[cfg(target_arch = "x86_64")]
mod exported {
    //! `rdi`, `rsi`, `rdx`, `rcx` hold the arguments (System V ABI); a tail jump leaves the stack
    //! as the callee expects it. Each function has a section of its own, and `.p2align` anywhere in
    //! it aligns the section and so the function, which `switch` needs.

    use super::{SMALL, plain};
    use cachewise::raw;
    use core::arch::naked_asm;

    /// Copies `n` bytes; returns `dst`.
    ///
    /// # Safety
    /// `memmove`'s contract: more than C asks for, see above.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        naked_asm!(
            "cmp rdx, {small}",
            "ja 2f",
            "jmp {copy}",
            "2:",
            // Overlap: dst - src or src - dst below n, both modulo 2^64.
            "mov rax, rdi",
            "sub rax, rsi",
            "cmp rax, rdx",
            "jb 3f",
            "neg rax",
            "cmp rax, rdx",
            "jb 3f",
            "jmp {copy}",
            "3:",
            "jmp {move}",
            ".p2align 4",
            small = const SMALL,
            copy = sym raw::copy_nonoverlapping,
            r#move = sym raw::copy,
        )
    }

    /// Copies `n` bytes, overlap allowed; returns `dst`.
    ///
    /// # Safety
    /// `memmove`'s contract.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn memmove(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        naked_asm!("jmp {}", ".p2align 4", sym raw::copy)
    }

    /// Copies `n` bytes; returns the end of the destination.
    ///
    /// # Safety
    /// As [`memcpy`].
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn mempcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        naked_asm!("jmp {}", ".p2align 4", sym plain::mempcpy)
    }

    /// Stores the low byte of `byte` in `n` places; returns `dst`.
    ///
    /// # Safety
    /// `memset`'s contract.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn memset(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
        naked_asm!(
            "cmp rdx, {small}",
            "ja 2f",
            "jmp {fill}",
            "2:",
            "test sil, sil",
            "jz 3f",
            "jmp {fill}",
            "3:",
            "mov rsi, rdx",
            "jmp {zero}",
            ".p2align 4",
            small = const SMALL,
            fill = sym raw::fill,
            zero = sym raw::zero,
        )
    }

    /// Negative, zero or positive by the first byte that differs.
    ///
    /// # Safety
    /// `memcmp`'s contract.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
        naked_asm!("jmp {}", ".p2align 4", sym raw::compare)
    }

    /// Zero where all bytes are equal.
    ///
    /// In glibc it is another name of `memcmp`, whose sign a program may have come to use.
    ///
    /// # Safety
    /// `memcmp`'s contract.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
        naked_asm!("jmp {}", ".p2align 4", sym raw::compare)
    }

    /// Zeroes `n` bytes.
    ///
    /// # Safety
    /// `dst` is writable for `n` bytes.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn bzero(dst: *mut u8, n: usize) {
        naked_asm!("jmp {}", ".p2align 4", sym raw::zero)
    }

    /// Zeroes `n` bytes, even where the compiler can see that nobody reads them: it cannot see
    /// through the call of an exported function.
    ///
    /// # Safety
    /// As [`bzero`].
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn explicit_bzero(dst: *mut u8, n: usize) {
        naked_asm!("jmp {}", ".p2align 4", sym raw::zero)
    }

    /// [`memcpy`] that ends the program where `n` exceeds `room`.
    ///
    /// # Safety
    /// As [`memcpy`].
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn __memcpy_chk(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        room: usize,
    ) -> *mut u8 {
        naked_asm!(
            "cmp rcx, rdx",
            "jb 2f",
            "jmp {copy}",
            "2:",
            "jmp {overflow}",
            ".p2align 4",
            copy = sym plain::memcpy,
            overflow = sym plain::overflow,
        )
    }

    /// [`memmove`] that ends the program where `n` exceeds `room`.
    ///
    /// # Safety
    /// As [`memmove`].
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn __memmove_chk(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        room: usize,
    ) -> *mut u8 {
        naked_asm!(
            "cmp rcx, rdx",
            "jb 2f",
            "jmp {move}",
            "2:",
            "jmp {overflow}",
            ".p2align 4",
            r#move = sym raw::copy,
            overflow = sym plain::overflow,
        )
    }

    /// [`mempcpy`] that ends the program where `n` exceeds `room`.
    ///
    /// # Safety
    /// As [`mempcpy`].
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn __mempcpy_chk(
        dst: *mut u8,
        src: *const u8,
        n: usize,
        room: usize,
    ) -> *mut u8 {
        naked_asm!(
            "cmp rcx, rdx",
            "jb 2f",
            "jmp {copy}",
            "2:",
            "jmp {overflow}",
            ".p2align 4",
            copy = sym plain::mempcpy,
            overflow = sym plain::overflow,
        )
    }

    /// [`memset`] that ends the program where `n` exceeds `room`.
    ///
    /// # Safety
    /// As [`memset`].
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn __memset_chk(
        dst: *mut u8,
        byte: i32,
        n: usize,
        room: usize,
    ) -> *mut u8 {
        naked_asm!(
            "cmp rcx, rdx",
            "jb 3f",
            "cmp rdx, {small}",
            "ja 2f",
            "jmp {fill}",
            "2:",
            "test sil, sil",
            "jnz 4f",
            "mov rsi, rdx",
            "jmp {zero}",
            "4:",
            "jmp {fill}",
            "3:",
            "jmp {overflow}",
            ".p2align 4",
            small = const SMALL,
            fill = sym raw::fill,
            zero = sym raw::zero,
            overflow = sym plain::overflow,
        )
    }

    /// [`explicit_bzero`] that ends the program where `n` exceeds `room`.
    ///
    /// # Safety
    /// As [`explicit_bzero`].
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn __explicit_bzero_chk(dst: *mut u8, n: usize, room: usize) {
        naked_asm!(
            "cmp rdx, rsi",
            "jb 2f",
            "jmp {zero}",
            "2:",
            "jmp {overflow}",
            ".p2align 4",
            zero = sym raw::zero,
            overflow = sym plain::overflow,
        )
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod exported {
    //! The same in Rust, without statistics.

    use super::plain;
    use cachewise::raw;

    macro_rules! forward {
        ($($name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $target:path;)*) => {$(
            /// As its namesake in the C library.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                // SAFETY: the caller's promise is the callee's.
                let _result = unsafe { $target($($argument),*) };
                $(_result as $result)?
            }
        )*};
    }

    macro_rules! checked {
        ($($name:ident($($argument:ident: $type:ty),*; $n:ident) $(-> $result:ty)? = $target:path;)*) => {$(
            /// As its namesake in the C library.
            ///
            /// # Safety
            /// As there.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type,)* room: usize) $(-> $result)? {
                if room < $n {
                    plain::overflow();
                }
                // SAFETY: the caller's promise is the callee's.
                let _result = unsafe { $target($($argument),*) };
                $(_result as $result)?
            }
        )*};
    }

    forward! {
        memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = plain::memcpy;
        memmove(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = raw::copy;
        mempcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = plain::mempcpy;
        memset(dst: *mut u8, byte: i32, n: usize) -> *mut u8 = plain::memset;
        memcmp(a: *const u8, b: *const u8, n: usize) -> i32 = raw::compare;
        bcmp(a: *const u8, b: *const u8, n: usize) -> i32 = raw::compare;
        bzero(dst: *mut u8, n: usize) = raw::zero;
        explicit_bzero(dst: *mut u8, n: usize) = raw::zero;
    }
    checked! {
        __memcpy_chk(dst: *mut u8, src: *const u8, n: usize; n) -> *mut u8 = plain::memcpy;
        __memmove_chk(dst: *mut u8, src: *const u8, n: usize; n) -> *mut u8 = raw::copy;
        __mempcpy_chk(dst: *mut u8, src: *const u8, n: usize; n) -> *mut u8 = plain::mempcpy;
        __memset_chk(dst: *mut u8, byte: i32, n: usize; n) -> *mut u8 = plain::memset;
        __explicit_bzero_chk(dst: *mut u8, n: usize; n) = raw::zero;
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use exported::*;
