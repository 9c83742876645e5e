//! The kernels' test suite: one checked call (`support::arena`) of any operation, for every row of the table.
//!
//! `runner` picks kernels and shares them out to threads, `sweep` visits lengths, alignments, edges and overlaps,
//! `properties` draws random cases, `corpus` replays the fuzzers' seeds through the same functions, and `machine_code`
//! (x86-64) and `disassembly` (Arm, POWER) read the
//! instructions themselves. Every check is against what the contents before the call imply; the
//! scalar reference is a row as any other, so it answers to the same bodies, and is the oracle in
//! `support::cases`.
//!
//! Kernels that the CPU lacks features for are never called; their names are printed.

mod corpus;
#[cfg(any(target_arch = "aarch64", all(target_arch = "powerpc64", target_endian = "little")))]
mod disassembly;
#[cfg(target_arch = "x86_64")]
mod machine_code;
mod properties;
mod racing;
mod runner;
mod support;
mod sweep;
