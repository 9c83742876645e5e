//! Everything that can go wrong with a pool, and notes about what the system refused.

use crate::buddy::{FreeError, Inconsistent};
use std::io;
use std::string::String;

/// Why a pool was not made, or a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// A setting is outside what is accepted.
    #[error("{setting}: expected {accepted}, found {found}")]
    Setting {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: String,
        /// The accepted values.
        accepted: String,
    },
    /// More than this process may use.
    #[error(
        "capacity: expected at most the {memory} bytes that this process may use, found {asked}"
    )]
    OverMemory {
        /// Bytes asked for.
        asked: usize,
        /// Bytes of memory: the machine's, or the control group's if that is less.
        memory: usize,
    },
    /// The system refused.
    #[error("{what}: {source}")]
    System {
        /// The call.
        what: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// No free block is that large, and the pool may not grow so far.
    #[error("no free block of {bytes} bytes in a pool of {capacity} bytes")]
    Exhausted {
        /// Bytes asked for.
        bytes: usize,
        /// The pool's capacity.
        capacity: usize,
    },
    /// The system had no memory for a block that the pool could have given.
    #[error("no memory for a block of {bytes} bytes: {source}")]
    NoMemory {
        /// Bytes asked for.
        bytes: usize,
        /// The system's answer.
        source: io::Error,
    },
    /// No block of this pool is that large.
    #[error("a block of {bytes} bytes from a pool of {capacity} bytes: larger than the pool")]
    TooLarge {
        /// Bytes asked for.
        bytes: usize,
        /// The pool's capacity.
        capacity: usize,
    },
    /// The order is higher than this pool's blocks.
    #[error("order: expected 0 to {max_order}, found {order}")]
    Order {
        /// The order asked for.
        order: u32,
        /// The pool's highest.
        max_order: u32,
    },
    /// The block was not taken back.
    #[error("free of a block of order {order} at {address:#x}: {why}")]
    Free {
        /// Its address.
        address: usize,
        /// The order given.
        order: u32,
        /// Why.
        why: FreeError,
    },
    /// The pool was closed.
    #[error("the pool is closed")]
    Closed,
    /// Called in the middle of the pool's own work by the same thread: from a signal handler.
    #[error("the pool is busy in this very thread (called from a signal handler?)")]
    Reentered,
    /// The pool was made before a fork, by the parent.
    #[error("the pool is the parent's: a child made by fork makes its own")]
    Forked,
    /// A block known to be zero was not. It is quarantined.
    #[error("a block of {bytes} bytes known to be zero holds {byte:#04x} at {address:#x}")]
    NotZero {
        /// Address of the first byte that is not zero.
        address: usize,
        /// That byte.
        byte: u8,
        /// Bytes of the block.
        bytes: usize,
    },
    /// The pool's bookkeeping is inconsistent: it was overwritten.
    #[error("the pool's bookkeeping is damaged: {0}")]
    Damaged(#[from] Inconsistent),
}

impl PoolError {
    pub(crate) fn system(what: &'static str) -> impl FnOnce(rustix::io::Errno) -> PoolError {
        move |errno| PoolError::System { what, source: errno.into() }
    }
}

/// Something that the system refused; the pool works without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Note {
    /// Explicit huge pages were refused; transparent ones are used instead.
    #[error("no hugetlb pages ({0}): transparent huge pages instead")]
    NoHugetlb(String),
    /// Advice on huge pages was refused; the system's default holds.
    #[error("advice on huge pages refused: {0}")]
    NoHugeAdvice(String),
    /// The first bytes are not resident.
    #[error("{asked} bytes are not resident: {why}")]
    Prefault {
        /// Bytes asked for.
        asked: usize,
        /// The system's answer.
        why: String,
    },
    /// There is no device that could zero: the CPU does it.
    #[error("no device to zero with ({0}): the CPU instead")]
    NoDevice(String),
    /// There was no lease: the memory is the pool's own.
    #[error("no lease ({0}): memory of its own instead")]
    NoLease(String),
    /// The scrubber's thread could not be started.
    #[error("no scrubber thread: {0}")]
    NoScrubber(String),
}
