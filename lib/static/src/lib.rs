//! `memcpy`, `memmove`, `memset`, `memcmp` and `bcmp` in the place of the C library's: for programs that are linked
//! statically, above all with musl, whose copies take 10 to 20 % of some programs.
//!
//! ```
//! use cachewise_static as _; // once, anywhere in the program
//! ```
//!
//! They are the size classes and loops of Cachewise's entries for the vectors that the program's target allows (SSE2, or AVX
//! where `target-cpu` has AVX2 and BMI2), without profile, CPUID, initialisation or any other library: less than 8 KiB of code that
//! refers to nothing which has to be relocated, so that it works before a static program has relocated itself, and with
//! `-nostdlib`. On other architectures than x86-64 the crate is empty.
#![no_std]
#![warn(missing_docs)]

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use functions::{bcmp, memcmp, memcpy, memmove, memset};

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod functions {
    use cachewise::{
        entry_compare_head, entry_compare_xmm, entry_copy_itself, entry_copy_loops,
        entry_copy_many, entry_copy_small, entry_fill_loop, entry_fill_many, entry_fill_small,
        entry_splat_byte,
    };
    use core::arch::naked_asm;

    /// Up to which place in its page a comparison may read 16 bytes: no page is smaller than 4096.
    static PAGE: i32 = 4096 - 16;

    /// Copies and fills of more than 64 bytes.
    #[cfg(not(all(target_feature = "avx2", target_feature = "bmi2")))]
    macro_rules! large {
        (copy) => {
            concat!(
                "cmp rdx, 128\nja 33f\n",
                entry_copy_many!(ends sse),
                entry_copy_many!(eight sse),
                ".p2align 5\n33:\n",
                entry_copy_itself!(),
                entry_copy_many!(ends sse),
                entry_copy_loops!(sse),
            )
        };
        (fill) => {
            concat!(
                entry_splat_byte!(sse),
                entry_fill_many!(eight sse, "rdx"),
                entry_fill_loop!(sse, "rdx"),
            )
        };
    }

    /// See above.
    #[cfg(all(target_feature = "avx2", target_feature = "bmi2"))]
    macro_rules! large {
        (copy) => {
            concat!(
                entry_copy_many!(eight_here avx),
                entry_copy_many!(ends avx),
                entry_copy_loops!(avx),
            )
        };
        (fill) => {
            concat!(
                entry_splat_byte!(avx),
                entry_fill_many!(four avx, "rdx"),
                entry_fill_many!(eight avx, "rdx"),
                entry_fill_loop!(avx, "rdx"),
            )
        };
    }

    /// Functions with `memmove`'s contract.
    macro_rules! copies {
        ($($name:ident)+) => {$(
            /// Copies `n` bytes, which may overlap; returns `dst`.
            ///
            /// # Safety
            /// `src` is readable and `dst` writable for `n` bytes.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name(dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
                naked_asm!(entry_copy_small!(whole sse2), "23:", large!(copy))
            }
        )+};
    }

    copies! { memcpy memmove }

    /// Stores the low byte of `byte` in `n` places; returns `dst`.
    ///
    /// # Safety
    /// `dst` is writable for `n` bytes.
    #[unsafe(no_mangle)]
    #[unsafe(naked)]
    pub unsafe extern "C" fn memset(dst: *mut u8, byte: i32, n: usize) -> *mut u8 {
        naked_asm!(entry_fill_small!(sse2, "rdx", "edx", entry_splat_byte), "23:", large!(fill),)
    }

    /// Functions with `memcmp`'s contract.
    macro_rules! comparisons {
        ($($name:ident)+) => {$(
            /// Negative, zero or positive by the first byte that differs.
            ///
            /// # Safety
            /// `a` and `b` are readable for `n` bytes.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name(a: *const u8, b: *const u8, n: usize) -> i32 {
                naked_asm!(
                    ".hidden {page}",
                    entry_compare_head!(
                        sse2, "", entry_compare_small, entry_compare_near, entry_compare_apart
                    ),
                    // 65 and more, the first 32 of them equal: by 32, and the last 32.
                    "28:",
                    "mov r8d, 32",
                    ".p2align 4",
                    "60:",
                    entry_compare_xmm!(sse),
                    "jnz 41b",
                    "add r8, 32",
                    "lea rcx, [r8 + 32]",
                    "cmp rcx, rdx",
                    "jb 60b",
                    "lea r8, [rdx - 32]",
                    entry_compare_xmm!(sse),
                    "jnz 41b",
                    "ret",
                    // Where a library has no place to read up to yet; here there is always one.
                    "39:",
                    "ud2",
                    page = sym PAGE,
                )
            }
        )+};
    }

    comparisons! { memcmp bcmp }
}
