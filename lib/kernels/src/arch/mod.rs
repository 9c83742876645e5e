//! The routines, by architecture. Rows reach the outside only through [`crate::table`].

use crate::kernel::Kernel;
pub(crate) use rows::{count, join};

#[macro_use]
mod rows;

#[cfg(target_arch = "aarch64")]
pub(crate) mod aarch64;
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
pub(crate) mod powerpc64;
pub mod scalar;
#[cfg(any(target_arch = "aarch64", all(target_arch = "powerpc64", target_endian = "little")))]
mod units;
#[cfg(any(target_arch = "aarch64", all(target_arch = "powerpc64", target_endian = "little")))]
mod words;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;

/// Every file's rows, in the order `list kernels` prints them.
#[cfg(target_arch = "x86_64")]
pub(crate) const ROWS: &[&[Kernel]] = &[
    scalar::ROWS,
    x86_64::rep::ROWS,
    #[cfg(feature = "lab")]
    x86_64::rep::LAB_ROWS,
    x86_64::gpr::ROWS,
    #[cfg(feature = "lab")]
    x86_64::gpr_period::ROWS,
    #[cfg(all(feature = "lab", target_feature = "sse2"))]
    x86_64::x87::ROWS,
    #[cfg(all(feature = "lab", target_feature = "sse2"))]
    x86_64::mmx::ROWS,
    #[cfg(all(feature = "lab", target_feature = "sse2"))]
    x86_64::sse::ROWS,
    #[cfg(all(feature = "lab", target_feature = "sse2"))]
    x86_64::sse2_period::ROWS,
    #[cfg(target_feature = "sse2")]
    x86_64::sse2::ROWS,
    #[cfg(all(feature = "lab", target_feature = "sse2"))]
    x86_64::sse2::LAB_ROWS,
    #[cfg(target_feature = "sse2")]
    x86_64::avx::ROWS,
    #[cfg(all(feature = "lab", target_feature = "sse2"))]
    x86_64::avx::LAB_ROWS,
    #[cfg(target_feature = "sse2")]
    x86_64::avx512::ROWS,
    #[cfg(all(feature = "lab", target_feature = "sse2"))]
    x86_64::avx512::LAB_ROWS,
    x86_64::clzero::ROWS,
];
#[cfg(target_arch = "aarch64")]
pub(crate) const ROWS: &[&[Kernel]] = &[
    scalar::ROWS,
    aarch64::gpr::ROWS,
    aarch64::neon::ROWS,
    #[cfg(feature = "lab")]
    aarch64::neon::LAB_ROWS,
    aarch64::zva::ROWS,
];
#[cfg(all(target_arch = "powerpc64", target_endian = "little"))]
pub(crate) const ROWS: &[&[Kernel]] = &[
    scalar::ROWS,
    powerpc64::gpr::ROWS,
    #[cfg(feature = "lab")]
    powerpc64::gpr::LAB_ROWS,
    powerpc64::vmx::ROWS,
    #[cfg(feature = "lab")]
    powerpc64::vmx::LAB_ROWS,
    powerpc64::vsx::ROWS,
    #[cfg(feature = "lab")]
    powerpc64::vsx::LAB_ROWS,
    powerpc64::dcbz::ROWS,
];
/// Elsewhere the reference is all there is.
#[cfg(not(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    all(target_arch = "powerpc64", target_endian = "little")
)))]
pub(crate) const ROWS: &[&[Kernel]] = &[scalar::ROWS];
