//! The rows of the decision table: which operations are decided, with which hints, from what size on.

use crate::reuse::Reuse;
use cachewise_kernels::Operation;

/// The smallest size a profile decides. Smaller calls take the library's own inlined paths, or,
/// from 129 bytes on, the widest temporal kernel.
pub const FIRST_SIZE: u64 = 256;

/// The operations a profile decides, in table order.
pub const OPERATIONS: [Operation; 6] = [
    Operation::Copy,
    Operation::Move,
    Operation::Fill,
    Operation::Zero,
    Operation::Compare,
    Operation::Equal,
];

/// The hints that make a difference to an operation: one that stores nothing has no destination
/// to be used again.
#[must_use]
pub const fn hints(operation: Operation) -> &'static [Reuse] {
    match operation {
        Operation::Compare | Operation::Equal => &[Reuse::Unknown],
        _ => &Reuse::ALL,
    }
}

/// Rows of decisions: four operations with three hints, two with one.
pub(crate) const ROWS: usize = 14;

/// The row of an operation and a hint. Page operations share the row of their byte operation.
pub(crate) const fn row(operation: Operation, reuse: Reuse) -> usize {
    let first = match operation {
        Operation::Copy | Operation::CopyPages => 0,
        Operation::Move => 3,
        Operation::Fill => 6,
        Operation::Zero | Operation::ZeroPages => 9,
        Operation::Compare => return 12,
        Operation::Equal => return 13,
    };
    first + reuse as usize
}

/// Index of an operation in [`OPERATIONS`]; page operations with their byte operation.
#[must_use]
pub const fn place(operation: Operation) -> usize {
    match operation {
        Operation::Copy | Operation::CopyPages => 0,
        Operation::Move => 1,
        Operation::Fill => 2,
        Operation::Zero | Operation::ZeroPages => 3,
        Operation::Compare => 4,
        Operation::Equal => 5,
    }
}

/// The numbers of the rows for calls without a hint.
pub const COPY_ROW: usize = row(Operation::Copy, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const MOVE_ROW: usize = row(Operation::Move, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const FILL_ROW: usize = row(Operation::Fill, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const ZERO_ROW: usize = row(Operation::Zero, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const COMPARE_ROW: usize = row(Operation::Compare, Reuse::Unknown);
/// As [`COPY_ROW`].
pub const EQUAL_ROW: usize = row(Operation::Equal, Reuse::Unknown);
