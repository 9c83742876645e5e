//! Costs of the classes of sizes, as data: `assembly.rs` disassembles the exported functions and compares.
//!
//! Loads and stores are those of the operands; jumps are the taken ones from the exported function's first instruction to its
//! return, which cost two cycles each on some CPUs whatever the vectors are; lines are those of the code, 64 bytes each.

use cachewise::entry::{AVX2, AVX512VL, SSE2, variants};
use cachewise_kernels::Operation::{self, Compare, Copy, Equal, Fill, Move, Zero};

/// One class of sizes of some operations, of operands that are equal where they are compared, and end at no page's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Operations that have it.
    pub operations: &'static [Operation],
    /// Number of the entry; `None` where all are the same, or all but `avx512vl` if that has small classes of its own.
    pub entry: Option<u8>,
    /// The smallest size.
    pub first: usize,
    /// The largest size.
    pub last: usize,
    /// Loads of the operands.
    pub loads: usize,
    /// Stores.
    pub stores: usize,
    /// Taken jumps.
    pub jumps: usize,
    /// Lines of code.
    pub lines: usize,
}

const COPIES: &[Operation] = &[Copy, Move];
const FILLS: &[Operation] = &[Fill, Zero];
const COMPARISONS: &[Operation] = &[Compare, Equal];

/// Sizes, loads and stores, jumps and lines.
const fn class(
    operations: &'static [Operation],
    entry: Option<u8>,
    (first, last): (usize, usize),
    [loads, stores, jumps, lines]: [usize; 4],
) -> Class {
    Class { operations, entry, first, last, loads, stores, jumps, lines }
}

/// All classes without a loop.
pub static CLASSES: &[Class] = &[
    class(COPIES, None, (0, 0), [0, 0, 2, 2]),
    class(COPIES, None, (1, 1), [1, 1, 1, 2]),
    class(COPIES, None, (2, 3), [2, 2, 2, 3]),
    class(COPIES, None, (4, 7), [2, 2, 2, 3]),
    class(COPIES, None, (8, 15), [2, 2, 2, 2]),
    class(COPIES, None, (16, 32), [2, 2, 0, 1]),
    class(COPIES, None, (33, 64), [4, 4, 1, 2]),
    class(COPIES, Some(SSE2), (65, 128), [8, 8, 4, 6]),
    class(COPIES, Some(AVX2), (65, 128), [4, 4, 1, 3]),
    class(COPIES, Some(AVX2), (129, 256), [8, 8, 2, 4]),
    class(COPIES, Some(AVX512VL), (65, 128), [2, 2, 2, 3]),
    class(COPIES, Some(AVX512VL), (129, 256), [4, 4, 3, 5]),
    class(COPIES, Some(AVX512VL), (257, 512), [8, 8, 4, 7]),
    class(FILLS, None, (0, 0), [0, 0, 2, 2]),
    class(FILLS, None, (1, 1), [0, 1, 1, 2]),
    class(FILLS, None, (2, 3), [0, 2, 2, 3]),
    class(&[Fill], None, (4, 15), [0, 2, 2, 3]),
    class(&[Zero], None, (4, 15), [0, 2, 2, 2]),
    class(FILLS, None, (16, 32), [0, 2, 0, 1]),
    class(FILLS, None, (33, 64), [0, 4, 1, 2]),
    class(&[Fill], Some(SSE2), (65, 128), [0, 8, 3, 5]),
    class(&[Zero], Some(SSE2), (65, 128), [0, 8, 3, 4]),
    class(FILLS, Some(AVX2), (65, 128), [0, 4, 1, 2]),
    class(FILLS, Some(AVX2), (129, 256), [0, 8, 2, 3]),
    class(FILLS, Some(AVX512VL), (0, 63), [0, 1, 1, 2]),
    class(FILLS, Some(AVX512VL), (64, 128), [0, 2, 2, 3]),
    class(FILLS, Some(AVX512VL), (129, 256), [0, 4, 3, 4]),
    class(FILLS, Some(AVX512VL), (257, 512), [0, 8, 4, 6]),
    class(COMPARISONS, None, (0, 0), [0, 0, 2, 2]),
    class(COMPARISONS, None, (1, 1), [2, 0, 1, 2]),
    class(COMPARISONS, None, (2, 32), [4, 0, 0, 2]),
    class(COMPARISONS, None, (33, 64), [8, 0, 1, 3]),
    class(COMPARISONS, Some(SSE2), (65, 128), [20, 0, 5, 9]),
    class(COMPARISONS, Some(AVX2), (65, 128), [10, 0, 2, 4]),
    class(COMPARISONS, Some(AVX2), (129, 256), [18, 0, 3, 6]),
    class(COMPARISONS, Some(AVX512VL), (0, 32), [2, 0, 1, 2]),
    class(COMPARISONS, Some(AVX512VL), (33, 64), [4, 0, 2, 3]),
    class(COMPARISONS, Some(AVX512VL), (65, 128), [6, 0, 3, 5]),
    class(COMPARISONS, Some(AVX512VL), (129, 256), [10, 0, 4, 6]),
];

/// Classes of an operation by one of its entries, from the smallest size on.
pub fn classes(operation: Operation, entry: &str) -> impl Iterator<Item = &'static Class> {
    let number =
        (0..).zip(variants(operation)).find(|(_, of)| of.name == entry).map(|(number, _)| number);
    let own_small = number == Some(AVX512VL) && !COPIES.contains(&operation);
    CLASSES.iter().filter(move |class| {
        let is_entrys = class.entry == number || class.entry.is_none() && !own_small;
        class.operations.contains(&operation) && is_entrys
    })
}
