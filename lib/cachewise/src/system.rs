//! The process's own C library: its `memcpy`, `memmove`, `memset` and `memcmp`, for the sizes that
//! a profile leaves to it (`libc` in a `decide` line).
//!
//! They are looked up once, by this object's constructor, as the next definition behind this library in the
//! order in which the dynamic linker looks names up. So a library whose own `memcpy` ends here (the preload library)
//! never finds itself, and two such libraries never find each other in turn. Until then, and in a program that is linked
//! statically, nothing is found, and the profile's next best stands. Nobody looks later: the linker's lock may be
//! held by a thread that a forked process no longer has, and no call can be under way in another thread before.

#[cfg(all(feature = "os", target_os = "linux"))]
pub(crate) use routines::{compare, copy, equal, fill, found, look, looked, r#move, zero};

#[cfg(any(
    all(feature = "os", target_os = "linux"),
    all(target_arch = "x86_64", target_feature = "sse2")
))]
use core::{ptr::null_mut, sync::atomic::AtomicPtr};

/// `memcpy`, `memmove`, `memset` and `memcmp`, all null or all found; nothing but `look` writes
/// them.
#[cfg(any(
    all(feature = "os", target_os = "linux"),
    all(target_arch = "x86_64", target_feature = "sse2")
))]
pub(crate) static ROUTINES: [AtomicPtr<()>; 4] = [const { AtomicPtr::new(null_mut()) }; 4];

/// Returns whether the C library's `memcpy` is its `memmove`, as glibc's is on x86-64.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub(crate) fn copy_is_move() -> bool {
    use core::sync::atomic::Ordering;
    let [memcpy, memmove, ..] = &ROUTINES;
    memcpy.load(Ordering::Acquire) == memmove.load(Ordering::Acquire)
}

/// Without an operating system there is no C library.
#[cfg(not(all(feature = "os", target_os = "linux")))]
pub(crate) fn found() -> bool {
    false
}

#[cfg(all(feature = "os", target_os = "linux"))]
mod routines {
    use super::ROUTINES;
    use crate::os::next_definition;
    use cachewise_kernels::kernel::{CompareFn, CopyFn, FillFn};
    use core::mem::transmute;
    use core::sync::atomic::{AtomicBool, Ordering};

    /// True if the constructor has looked.
    static LOOKED: AtomicBool = AtomicBool::new(false);

    /// Returns whether the constructor has looked.
    pub(crate) fn looked() -> bool {
        LOOKED.load(Ordering::Acquire)
    }

    /// For this object's constructor.
    pub(crate) fn look() {
        // Miri has no dynamic linker.
        if !cfg!(miri) {
            let found = [c"memcpy", c"memmove", c"memset", c"memcmp"].map(next_definition);
            if found.iter().all(|routine| !routine.is_null()) {
                for (place, routine) in ROUTINES.iter().zip(found) {
                    place.store(routine.cast(), Ordering::Release);
                }
            }
        }
        LOOKED.store(true, Ordering::Release);
    }

    /// Returns whether [`copy`] and the others may be called.
    pub(crate) fn found() -> bool {
        ROUTINES.iter().all(|routine| !routine.load(Ordering::Acquire).is_null())
    }

    macro_rules! routine {
        ($at:literal, $type:ty) => {{
            // The decision table led here, and it does so only after `found` has said yes.
            let routine = ROUTINES[$at].load(Ordering::Relaxed);
            // SAFETY: `look` stored the address of the C library's function of that name, whose
            // C type this is.
            unsafe { transmute::<*mut (), $type>(routine) }
        }};
    }

    /// # Safety
    /// `memcpy`'s contract, after [`found`] said yes. So all below, with their own contracts.
    pub(crate) unsafe extern "C" fn copy(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        let memcpy = routine!(0, CopyFn);
        // SAFETY: the caller's promise.
        unsafe { memcpy(dst, src, n) }
    }

    /// # Safety
    /// `memmove`'s contract.
    pub(crate) unsafe extern "C" fn r#move(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        let memmove = routine!(1, CopyFn);
        // SAFETY: the caller's promise.
        unsafe { memmove(dst, src, n) }
    }

    /// # Safety
    /// `memset`'s contract.
    pub(crate) unsafe extern "C" fn fill(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
        let memset = routine!(2, FillFn);
        // SAFETY: the caller's promise.
        unsafe { memset(dst, byte, n) }
    }

    /// # Safety
    /// `dst` is writable for `n` bytes.
    pub(crate) unsafe extern "C" fn zero(dst: *mut u8, n: usize) -> *mut u8 {
        let memset = routine!(2, FillFn);
        // SAFETY: the caller's promise.
        unsafe { memset(dst, 0, n) }
    }

    /// # Safety
    /// `memcmp`'s contract.
    pub(crate) unsafe extern "C" fn compare(a: *const u8, b: *const u8, n: usize) -> i32 {
        let memcmp = routine!(3, CompareFn);
        // SAFETY: the caller's promise.
        unsafe { memcmp(a, b, n) }
    }

    /// 1 or 0.
    ///
    /// # Safety
    /// `memcmp`'s contract, after `found` said yes.
    pub(crate) unsafe extern "C" fn equal(a: *const u8, b: *const u8, n: usize) -> i32 {
        // SAFETY: the caller's promise.
        i32::from(unsafe { compare(a, b, n) } == 0)
    }
}
