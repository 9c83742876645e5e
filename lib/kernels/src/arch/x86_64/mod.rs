//! x86-64, one file per technique.
//!
//! `family.rs` holds the loops that the vector files (`sse2`, `avx`, `avx512`) instantiate; the
//! others are written out, because their instruction sequence is the point of them. Their copy
//! loops come from `template.rs`, their heads and tails from `edge.rs`.
//!
//! A target whose compiler keeps off the vector registers (`x86_64-unknown-none`, as kernels are
//! built) has the integer and string kernels alone: vector code would be compiled, or its registers
//! named, behind the back of a calling convention that has none.

#[macro_use]
mod template;

#[cfg(target_feature = "sse2")]
mod comparing;
mod edge;
#[cfg(target_feature = "sse2")]
mod family;
#[cfg(target_feature = "sse2")]
#[macro_use]
mod member;
#[cfg(target_feature = "sse2")]
mod vector;

#[cfg(target_feature = "sse2")]
pub(crate) mod avx;
#[cfg(target_feature = "sse2")]
pub(crate) mod avx512;
pub(crate) mod clzero;
pub(crate) mod gpr;
#[cfg(feature = "lab")]
pub(crate) mod gpr_period;
#[cfg(all(feature = "lab", target_feature = "sse2"))]
pub(crate) mod mmx;
pub(crate) mod rep;
#[cfg(all(feature = "lab", target_feature = "sse2"))]
pub(crate) mod sse;
#[cfg(target_feature = "sse2")]
pub(crate) mod sse2;
#[cfg(all(feature = "lab", target_feature = "sse2"))]
pub(crate) mod sse2_period;
#[cfg(all(feature = "lab", target_feature = "sse2"))]
pub(crate) mod x87;
