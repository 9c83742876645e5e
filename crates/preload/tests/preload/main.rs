//! Programs under `libcachewise_preload.so` as it ships, and what its file says of it.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

mod behaviour;
mod image;
mod known;
mod learning;
mod libc;
mod middle;
mod programs;
mod statistics;
mod support;
