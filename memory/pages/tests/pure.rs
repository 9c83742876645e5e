//! The page allocator by itself. No system call, so Miri interprets it.

mod buddy;
mod support;
