//! Fuzzes `copy`: see `oracle.rs`.
#![no_main]

#[macro_use]
#[path = "../oracle.rs"]
mod oracle;

fuzz_kernels!(Copy, Move, Fill, Zero, CopyPages, ZeroPages);
