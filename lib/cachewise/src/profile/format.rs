//! Versions and sizes that are read as a profile at all.

/// The newest format version, which a profile with `program` lines has; this library reads it.
pub const VERSION: u32 = 3;

/// The oldest it reads.
pub(super) const OLDEST_VERSION: u32 = 1;

/// The largest profile that is read.
pub const MAX_BYTES: usize = 64 * 1024;
