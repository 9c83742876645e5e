//! The routines, by architecture. Rows reach the outside only through [`crate::table`].

use crate::table::Kernel;

pub mod scalar;
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
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const ROWS: &[&[Kernel]] = &[scalar::ROWS];
