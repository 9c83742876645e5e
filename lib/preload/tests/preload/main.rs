//! Programs under `libcachewise_preload.so` and the library that counts as they ship, and what their files say.
#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

mod built;
mod cases;
mod decided;
mod image;
mod programs;
mod statistics;
mod support;
