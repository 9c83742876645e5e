//! Every named way to copy, move, fill, zero and compare memory, in one [table](TABLE).
//!
//! Read [`table`] first: it says what a kernel is and what its columns mean. The routines
//! themselves live under `arch`, one file per technique; `arch/scalar.rs` holds the reference
//! semantics that every other routine is tested against. Choosing between kernels is not this
//! crate's business: the `cachewise` crate does that from a measured profile.
//!
//! No standard library, no dependency, no allocation, no global state. `no_builtins` keeps the
//! compiler from turning a loop here into a call of the very function it implements.
//!
//! ```
//! use cachewise_kernels::{Features, Function, find};
//!
//! let kernel = find("copy.bytes").expect("the reference copy");
//! let Function::Copy(copy) = kernel.function else { unreachable!() };
//! if kernel.requires.missing_from(Features::detect()).is_empty() {
//!     let source = [1u8, 2, 3];
//!     let mut destination = [0u8; 3];
//!     // SAFETY: both arrays are three bytes long and distinct, and the CPU has what it needs.
//!     unsafe { copy(destination.as_mut_ptr(), source.as_ptr(), 3) };
//!     assert_eq!(destination, source);
//! }
//! ```
#![no_std]
#![no_builtins]
#![warn(missing_docs)]

mod arch;
mod isa;
pub mod kernel;
pub mod table;

pub use arch::scalar;
pub use isa::Features;
#[cfg(target_arch = "x86_64")]
pub use isa::Leaves;
pub use kernel::{Function, Kernel, Operation, Prefetch, RegisterClass, StoreKind};
pub use table::{TABLE, find, resolve, resolve_pair};

/// Bytes of a base page as the page operations understand it (`4096 << order` bytes a block).
pub const PAGE_SIZE: usize = 4096;

/// Bytes of a cache line on every CPU family this crate has kernels for.
pub const CACHE_LINE: usize = 64;
