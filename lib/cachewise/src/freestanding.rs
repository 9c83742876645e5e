//! Parts that a library without the standard library has to bring itself.

/// The panic handler of a C library built on this crate, where nothing else brings one.
///
/// A shared library that is built by itself links no standard library and must say what a panic
/// does. Built together with the whole workspace, this crate has its `std` feature and the handler
/// comes from there. Only this crate knows which it is, so the choice is made here.
#[cfg(not(feature = "std"))]
#[doc(hidden)]
#[macro_export]
macro_rules! panic_handler_without_std {
    () => {
        #[cfg(panic = "abort")]
        #[panic_handler]
        fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
            $crate::os::abort()
        }

        // The precompiled core, built to unwind, names this in its unwind tables. Nothing unwinds
        // here, so nobody calls it.
        #[cfg(panic = "abort")]
        core::arch::global_asm!(
            ".weak rust_eh_personality",
            ".hidden rust_eh_personality",
            "rust_eh_personality:",
        );
    };
}

/// As above: here the standard library has one.
#[cfg(feature = "std")]
#[doc(hidden)]
#[macro_export]
macro_rules! panic_handler_without_std {
    () => {};
}
