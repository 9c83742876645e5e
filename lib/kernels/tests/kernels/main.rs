//! The kernels' test suite: one body per operation, run for every row of the table.
//!
//! `runner` picks kernels and shares them out to threads, `lengths` says what the sweeps visit,
//! `support` holds guarded memory and the checked calls. The sweeps are `copying`, `filling`,
//! `comparing` and `paging`; `properties` draws random cases, `corpus` replays the fuzzers' seeds
//! through the same functions, and `machine_code` (x86-64) and `disassembly` (Arm, POWER) read the
//! instructions themselves. Every check is against what the contents before the call imply; the
//! scalar reference is a row as any other, so it answers to the same bodies, and is the oracle in
//! `support::cases`.
//!
//! Kernels that the CPU lacks features for are never called; their names are printed.

mod comparing;
mod copying;
mod corpus;
#[cfg(any(target_arch = "aarch64", all(target_arch = "powerpc64", target_endian = "little")))]
mod disassembly;
mod filling;
mod lengths;
#[cfg(target_arch = "x86_64")]
mod machine_code;
mod paging;
mod properties;
mod racing;
mod runner;
mod support;
