//! Version and size that are read as a profile at all.

/// The format version: the only one that is read and written.
pub const VERSION: u32 = 2;

/// The largest profile that is read.
pub const MAX_BYTES: usize = 64 * 1024;
