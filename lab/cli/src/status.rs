//! Exit statuses, as `--help` lists them.

/// All went well.
pub const OK: u8 = 0;
/// Something failed.
pub const ERROR: u8 = 1;
/// The command line was wrong.
pub const USAGE: u8 = 2;
/// `compare` found something slower.
pub const REGRESSION: u8 = 3;
/// The answer cannot be told from noise, or was not measured; `export glibc`: there is nothing to set.
pub const INCONCLUSIVE: u8 = 4;
/// A routine produced wrong bytes.
pub const WRONG_BYTES: u8 = 5;
/// The user stopped it; finished rows were kept.
pub const INTERRUPTED: u8 = 130;
