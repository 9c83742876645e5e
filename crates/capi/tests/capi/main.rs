//! The C interface as C programs see it: header, libraries, examples.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

mod entries;
mod header;
mod libc;
mod programs;
mod support;
