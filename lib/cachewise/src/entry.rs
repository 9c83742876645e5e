//! The entries on x86-64: `memcpy`, `memmove`, `memset`, zeroing, `memcmp` and the test for
//! equality, from the first instruction to the jump into the table, as machine code that no
//! compiler rearranges.
//!
//! An operation has several, for CPUs that differ:
//! `sse2`, `avx2`, and `avx512vl`, which needs no `vzeroupper`. They are written from one description: vectors and groups of them in
//! `grammar.rs`, size classes in
//! `storing.rs`, `filling.rs`, `comparing.rs` and `differing.rs`. [`variants()`] names them, so that each can be called, measured
//! and tested by itself; `ways.rs` holds them.
//!
//! In a build for x86-64-v3 or -v4 the widest is the exported function. In the plain build one number per
//! operation says which is in use ([`CHOSEN`], in `choice.rs`): the exported function jumps by it, or not at all, since `avx2` follows
//! in it. Up to 64 bytes are the same for every CPU, but that fills and comparisons jump to `avx512vl` first of all. `defaults.rs` has the rule, by CPUID's features, which is asked when
//! the table is filled: by the first call that has a choice.
//!
//! The macros are not for use by programs: `raw.rs` makes its functions of them, and so do the C
//! library and the preload library, whose exported functions then *are* the operation rather than a
//! jump to it.
//!
//! The first two decisions beyond what an entry does by itself are one jump each, to a kernel or to the C
//! library's routine ([`NEXT`]); larger sizes find theirs in the table.
//!
//! *Direct* is what is done without the table, up to the row's limit ([`DIRECT`]): for as long as
//! the decisions say the plain loop of the vectors that the entry has.

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod comparing;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod differing;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod filling;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod grammar;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod storing;
mod variants;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub mod ways;

#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use crate::choice::HALVES;
pub use crate::choice::{AVX2, AVX512VL, CHOSEN, Chosen, Entry, SSE2, choose, variant};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use crate::dispatch::{COMPARE, COPY, EQUAL, FILL, MOVE, ZERO, boots};
pub use crate::rows::{COMPARE_ROW, COPY_ROW, EQUAL_ROW, FILL_ROW, MOVE_ROW, ZERO_ROW, place};
pub use crate::table::{DIRECT, ROWS};
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
pub use crate::table::{NARROW, NEXT, NEXT_BYTES, PAGE, ROW_BYTES};
pub use cachewise_kernels::Operation;
pub use variants::{chosen, variants};
