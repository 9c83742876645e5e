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
    #[cfg(feature = "lab")]
    x86_64::x87::ROWS,
    #[cfg(feature = "lab")]
    x86_64::mmx::ROWS,
    #[cfg(feature = "lab")]
    x86_64::sse::ROWS,
    #[cfg(feature = "lab")]
    x86_64::sse2_period::ROWS,
    x86_64::sse2::ROWS,
    #[cfg(feature = "lab")]
    x86_64::sse2::LAB_ROWS,
    x86_64::avx::ROWS,
    #[cfg(feature = "lab")]
    x86_64::avx::LAB_ROWS,
    x86_64::avx512::ROWS,
    #[cfg(feature = "lab")]
    x86_64::avx512::LAB_ROWS,
    x86_64::clzero::ROWS,
];
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const ROWS: &[&[Kernel]] = &[scalar::ROWS];
