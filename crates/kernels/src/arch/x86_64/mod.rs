//! x86-64, one file per technique.
//!
//! `family.rs` holds the loops that the vector files (`sse2`, `avx`, `avx512`) instantiate; the
//! others are written out, because their instruction sequence is the point of them. Their copy
//! loops come from `template.rs`, their heads and tails from `edge.rs`.

#[macro_use]
mod template;

mod comparing;
mod edge;
mod family;
#[macro_use]
mod member;
mod vector;

pub(crate) mod avx;
pub(crate) mod avx512;
pub(crate) mod clzero;
pub mod direct;
pub(crate) mod gpr;
#[cfg(feature = "lab")]
pub(crate) mod gpr_period;
#[cfg(feature = "lab")]
pub(crate) mod mmx;
pub(crate) mod rep;
#[cfg(feature = "lab")]
pub(crate) mod sse;
pub(crate) mod sse2;
#[cfg(feature = "lab")]
pub(crate) mod sse2_period;
#[cfg(feature = "lab")]
pub(crate) mod x87;
