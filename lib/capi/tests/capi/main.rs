//! The C interface as C programs see it: header, libraries, examples.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

#[path = "../../../preload/tests/preload/decided.rs"]
mod decided;
mod entries;
mod header;
mod libc;
mod programs;
mod support;

/// Libraries that the static library needs besides libc.
const NEEDED: &[&str] = &[];
