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

/// The largest size that the entries do by themselves on every CPU: 94 % of the calls of `memcpy` in Google's fleet, for
/// which a look-up would cost as much as the copy. Where no entries are written out every size is the table's.
pub(crate) const OWN: usize =
    if cfg!(all(target_arch = "x86_64", target_feature = "sse2")) { 128 } else { 0 };

/// The largest size that the entries do without a loop where the CPU has AVX2; no profile changes that.
pub(crate) const DIRECT_LIMIT: usize = 256;

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
