//! Why a block is not taken back, and where the bookkeeping disagrees.

/// Why a block was not taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeError {
    /// No frame of this allocator.
    Foreign,
    /// A block of this order cannot start there.
    Misaligned,
    /// Not handed out: freed before.
    DoubleFree,
    /// Inside a block that starts elsewhere.
    Interior,
    /// The block has another order.
    WrongOrder {
        /// The order it has.
        actual: u32,
    },
}

impl core::fmt::Display for FreeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            FreeError::Foreign => f.write_str("not an address of this pool"),
            FreeError::Misaligned => f.write_str("no block of this order can start there"),
            FreeError::DoubleFree => f.write_str("the block is free already (freed twice?)"),
            FreeError::Interior => f.write_str("inside a block that starts elsewhere"),
            FreeError::WrongOrder { actual } => write!(f, "the block there has order {actual}"),
        }
    }
}

impl core::error::Error for FreeError {}

/// A disagreement of tags, lists and counts: an error of this module, or memory overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inconsistent {
    /// The frame at which it showed.
    pub frame: u32,
    /// The rule that does not hold.
    pub what: &'static str,
}

impl core::fmt::Display for Inconsistent {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "frame {}: {}", self.frame, self.what)
    }
}

impl core::error::Error for Inconsistent {}
