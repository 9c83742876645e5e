//! Calls of a program's processes, as [`Gathered`](crate::gathered::Gathered) has them.

use std::collections::BTreeMap;

/// Calls and bytes.
type Sum = (u64, u64);

/// Calls of a program's processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By operation and first size of the class: 0, and one for each octave.
    pub calls: BTreeMap<(String, u64), Sum>,
    /// Calls of the allocator, where they were counted.
    pub blocks: Option<u64>,
    /// Bytes that they asked for.
    pub block_bytes: u64,
}
