//! What is read as a profile at all.

/// The format version this library writes, and the newest it reads.
pub const VERSION: u32 = 2;

/// The oldest it reads.
pub(super) const OLDEST_VERSION: u32 = 1;

/// The largest profile that is read.
pub const MAX_BYTES: usize = 64 * 1024;
