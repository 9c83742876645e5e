//! The exported functions, with the contracts of the C library's.
//!
//! On x86-64 each is the operation itself, from its first instruction on. Elsewhere they are the
//! functions of [`plain`].
//!
//! Two things a caller relies on without the C standard's leave are kept:
//! - `memcpy` of buffers that overlap is a `memmove`, as it is in glibc on x86-64, where both have
//!   been one function for years and programs have come to depend on it.
//! - the `__*_chk` forms end the program as glibc's do, by glibc's own function.
//!
//! `memset` of zeros is the operation zero: whole lines of zeros have ways of their own.

/// Largest size of which the library loads everything before it stores anything, whatever the operation.
const SMALL: usize = if cfg!(target_arch = "x86_64") { 128 } else { 0 };

/// Bodies of the functions, for entries that are not a jump into `cachewise::raw`.
pub(crate) mod plain {
    use super::SMALL;
    use cachewise::raw;

    /// Returns whether two buffers of `n` bytes share any.
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
}

mod exported {
    //! On x86-64 by the macros of `cachewise::entry`: small sizes, an entry for larger ones, and a jump to the others.
    //!
    //! `rdi`, `rsi`, `rdx`, `rcx` hold the arguments (System V ABI); a tail jump leaves the stack
    //! as the callee expects it.

    use super::plain;
    #[cfg(target_arch = "x86_64")]
    use cachewise::entry::ways::copy;
    #[cfg(not(target_arch = "x86_64"))]
    use cachewise::raw;

    /// Functions that are an entry of `cachewise::entry`, or elsewhere a function in Rust.
    macro_rules! operations {
        ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)? = $entry:ident, $plain:path;)*) => {$(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            #[cfg_attr(target_arch = "x86_64", unsafe(naked))]
            pub unsafe extern "C" fn $name($($argument: $type),*) $(-> $result)? {
                #[cfg(target_arch = "x86_64")]
                cachewise::$entry!();
                #[cfg(not(target_arch = "x86_64"))]
                {
                    // SAFETY: the caller's promise is the callee's.
                    let _result = unsafe { $plain($($argument),*) };
                    $(_result as $result)?
                }
            }
        )*};
    }

    operations! {
        /// Copies `n` bytes; returns `dst`.
        ///
        /// # Safety
        /// `memmove`'s contract: more than C asks for, see above.
        memcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = entry_copy, plain::memcpy;
        /// Copies `n` bytes, overlap allowed; returns `dst`.
        ///
        /// # Safety
        /// `memmove`'s contract.
        memmove(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 = entry_move, raw::copy;
        /// Stores the low byte of `byte` in `n` places; returns `dst`.
        ///
        /// # Safety
        /// `memset`'s contract.
        memset(dst: *mut u8, byte: i32, n: usize) -> *mut u8 = entry_fill, plain::memset;
        /// Negative, zero or positive by the first byte that differs.
        ///
        /// # Safety
        /// `memcmp`'s contract.
        memcmp(a: *const u8, b: *const u8, n: usize) -> i32 = entry_compare, raw::compare;
        /// Zero where all bytes are equal.
        ///
        /// In glibc it is another name of `memcmp`, whose sign a program may have come to use.
        ///
        /// # Safety
        /// `memcmp`'s contract.
        bcmp(a: *const u8, b: *const u8, n: usize) -> i32 = entry_compare, raw::compare;
        /// Zeroes `n` bytes.
        ///
        /// # Safety
        /// `dst` is writable for `n` bytes.
        bzero(dst: *mut u8, n: usize) = entry_zero, raw::zero;
        /// Zeroes `n` bytes, even where the compiler can see that nobody reads them: it cannot see
        /// through the call of an exported function.
        ///
        /// # Safety
        /// As [`bzero`].
        explicit_bzero(dst: *mut u8, n: usize) = entry_zero, raw::zero;
        /// [`memset`], even where the compiler can see that nobody reads what it stores (C23; glibc has it from
        /// 2.43 on).
        ///
        /// # Safety
        /// As [`memset`].
        memset_explicit(dst: *mut u8, byte: i32, n: usize) -> *mut u8 = entry_fill, plain::memset;
    }

    /// Copies `n` bytes; returns the end of the destination.
    ///
    /// # Safety
    /// As [`memcpy`].
    #[unsafe(no_mangle)]
    #[cfg_attr(target_arch = "x86_64", unsafe(naked))]
    pub unsafe extern "C" fn mempcpy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        // The table's kernels return dst; up to here, where all entries are the same, none goes there. The first
        // instruction, of three bytes, is what returns dst.
        #[cfg(target_arch = "x86_64")]
        core::arch::naked_asm!(
            "lea rax, [rdi + rdx]",
            "cmp rdx, 64",
            "ja {elsewhere}",
            "jmp {copy} + 3",
            ".p2align 4", // as in `checked`
            copy = sym copy::sse2,
            elsewhere = sym plain::mempcpy,
        );
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: the caller's promise.
        unsafe {
            plain::mempcpy(dst, src, n)
        }
    }

    /// Functions that end the program where the size exceeds `room`, and are another otherwise; with the registers of
    /// both.
    macro_rules! checked {
        ($($name:ident($($argument:ident: $type:ty),*; $n:ident in $size:literal, $room:literal) $(-> $result:ty)? = $function:ident;)*) => {$(
            #[doc = concat!("[`", stringify!($function), "`] that ends the program where `n` exceeds `room`.")]
            ///
            /// # Safety
            #[doc = concat!("As [`", stringify!($function), "`].")]
            #[unsafe(no_mangle)]
            #[cfg_attr(target_arch = "x86_64", unsafe(naked))]
            pub unsafe extern "C" fn $name($($argument: $type,)* room: usize) $(-> $result)? {
                #[cfg(target_arch = "x86_64")]
                core::arch::naked_asm!(
                    concat!("cmp ", $room, ", ", $size),
                    "jb 2f",
                    "jmp {target}",
                    "2:",
                    "jmp {overflow}",
                    ".p2align 4", // the section's alignment, and so the first instruction's
                    target = sym $function,
                    overflow = sym cachewise::overflow,
                );
                #[cfg(not(target_arch = "x86_64"))]
                {
                    if room < $n {
                        cachewise::overflow();
                    }
                    // SAFETY: the caller's promise is the callee's.
                    unsafe { $function($($argument),*) }
                }
            }
        )*};
    }

    checked! {
        __memcpy_chk(dst: *mut u8, src: *const u8, n: usize; n in "rdx", "rcx") -> *mut u8 = memcpy;
        __memmove_chk(dst: *mut u8, src: *const u8, n: usize; n in "rdx", "rcx") -> *mut u8 = memmove;
        __mempcpy_chk(dst: *mut u8, src: *const u8, n: usize; n in "rdx", "rcx") -> *mut u8 = mempcpy;
        __memset_chk(dst: *mut u8, byte: i32, n: usize; n in "rdx", "rcx") -> *mut u8 = memset;
        __explicit_bzero_chk(dst: *mut u8, n: usize; n in "rsi", "rdx") = explicit_bzero;
        __memset_explicit_chk(dst: *mut u8, byte: i32, n: usize; n in "rdx", "rcx") -> *mut u8 = memset_explicit;
    }
}
