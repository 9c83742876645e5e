//! The page allocator by itself. No system call, so Miri interprets it.

mod buddy;
#[path = "../examples/kernel_frames.rs"]
mod kernel_frames;
mod support;
