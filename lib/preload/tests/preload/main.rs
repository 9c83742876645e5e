//! Programs under `libcachewise_preload.so` and the library that counts as they ship, and what their files say.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

mod behaviour;
mod decided;
mod image;
mod libc;
mod middle;
mod programs;
mod statistics;
mod support;
