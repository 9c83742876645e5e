//! Fuzzes `compare`: see `oracle.rs`.
#![no_main]

#[macro_use]
#[path = "../oracle.rs"]
mod oracle;

fuzz_kernels!(Compare, Equal);
