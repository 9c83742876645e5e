//! Output of the library with `CACHEWISE_STATS`, added up over a program's processes.

use cachewise_measure::units::parse_bytes;
use std::collections::BTreeMap;

/// How the library calls the allocator's calls.
const BLOCKS: &str = "block";

/// Calls and bytes.
type Sum = (u64, u64);

/// Calls of a program's processes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processes that printed.
    pub processes: usize,
    /// By operation and first size of the class.
    pub calls: BTreeMap<(String, u64), Sum>,
    /// Calls of the allocator, where they were counted.
    pub blocks: Option<u64>,
    /// Bytes that they asked for.
    pub block_bytes: u64,
}

impl Counts {
    /// Adds up what the processes printed.
    pub fn read(told: &str) -> Counts {
        let mut counts = Counts {
            processes: told.matches("cachewise: calls of process ").count(),
            ..Counts::default()
        };
        for line in told.lines() {
            let mut words = line.split_whitespace();
            let (Some(operation), Some(size)) = (words.next(), words.next()) else { continue };
            let mut number = || words.next()?.parse::<u64>().ok();
            let (Some(calls), Some(bytes)) = (number(), number()) else { continue };
            if (operation, size) == (BLOCKS, "all") {
                *counts.blocks.get_or_insert(0) += calls;
                counts.block_bytes += bytes;
            }
            // A class of sizes; what else the library says is not added up.
            if !size.starts_with(|first: char| first.is_ascii_digit()) {
                continue;
            }
            let sum = counts.calls.entry((operation.to_owned(), first_size(size))).or_default();
            *sum = (sum.0 + calls, sum.1 + bytes);
        }
        counts
    }
}

/// The first size of a class as the library names it: `0`, `2..4`, `1K..2K`.
fn first_size(class: &str) -> u64 {
    parse_bytes(class.split("..").next().unwrap_or(class)).map_or(0, |bytes| bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_library_prints_is_added_up() {
        let part = "cachewise: calls of process 7 (/bin/x)\n\
            operation size calls bytes done by\n\
            copy 2..4 3 8 inlined\ncopy all 3 8\nblock all 7 900\nzero 1M..2M 1 1048576\nzero all 1 1048576\n\
            call sites of 64K and more:\nzero site 1 1048576 /bin/x+0x10 f+0x2\n\
            copy site 2 99 /bin/x+0x20\nand 3 more\n\
            4 calls from places that the table had no room for\n\
            memcpy of buffers that overlap: 2 calls, the first from /bin/x+0x10\n";
        let counts = Counts::read(&part.repeat(2));
        let named = |(name, size): (&str, u64)| (name.to_owned(), size);
        let calls =
            [(named(("copy", 2)), (6, 16)), (named(("zero", 1 << 20)), (2, 2 << 20))].into();
        assert_eq!(counts, Counts { processes: 2, calls, blocks: Some(14), block_bytes: 1800 });
        assert_eq!(["0", "1", "64..128", "1M..2M"].map(first_size), [0, 1, 64, 1 << 20]);
    }
}
