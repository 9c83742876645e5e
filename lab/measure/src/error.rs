//! Everything that can go wrong before a figure is obtained. Record files have their own errors
//! ([`RecordError`](crate::record::RecordError)).

use crate::level::Level;
use crate::verify::WrongBytes;

/// Why a measurement was refused or stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// An operand is larger than its share of the cache level it should sit in.
    #[error(
        "{size} bytes, alignment included, do not fit the share of {level}, which is {capacity} bytes"
    )]
    DoesNotFit {
        level: Level,
        /// Bytes one slot takes, its alignment included.
        size: usize,
        /// Bytes the operand may have of that level.
        capacity: usize,
    },
    /// A number in a request is outside what is accepted.
    #[error("{what} is {found}; accepted: {accepted}")]
    BadRequest { what: &'static str, found: String, accepted: String },
    /// The buffers would exceed the memory budget.
    #[error(
        "{wanted} bytes of buffers would exceed the memory budget ({used} of {limit} bytes in use)"
    )]
    OverBudget {
        wanted: usize,
        used: usize,
        /// The budget's limit in bytes.
        limit: usize,
    },
    /// The operating system refused to map memory.
    #[error("mapping {bytes} bytes failed: {source}")]
    Map { bytes: usize, source: std::io::Error },
    /// The run was stopped by its caller; what is finished was measured whole.
    #[error("interrupted")]
    Interrupted,
    /// A candidate produced wrong bytes; nothing it did may be timed.
    #[error("{candidate}: {wrong}")]
    WrongBytes {
        candidate: String,
        /// The wrong byte and its place.
        wrong: WrongBytes,
    },
}
