//! What the library prints with `CACHEWISE_STATS`, added up over a program's processes.

use cachewise_measure::units::parse_bytes;
use std::collections::BTreeMap;

/// Calls and bytes.
type Sum = (u64, u64);

/// What a program's processes called.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Processes that printed.
    pub processes: usize,
    /// By operation and first size of the class.
    pub calls: BTreeMap<(String, u64), Sum>,
    /// Of large calls, by operation and place: the module's file, the offset and the nearest symbol.
    sites: BTreeMap<(String, String), Sum>,
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
            let sum = match (size, words.next()) {
                ("site", Some(place)) => {
                    // Without the directory: it is where this machine has the file.
                    let file = place.rsplit('/').next().unwrap_or(place);
                    let place = [Some(file), words.next()].map(Option::unwrap_or_default).join(" ");
                    let key = (operation.to_owned(), place.trim_end().to_owned());
                    counts.sites.entry(key).or_default()
                }
                ("all" | "site", _) => continue,
                (size, _) if !size.starts_with(|first: char| first.is_ascii_digit()) => continue,
                // A class, and who did it where the library says so.
                (size, _) => {
                    counts.calls.entry((operation.to_owned(), first_size(size))).or_default()
                }
            };
            *sum = (sum.0 + calls, sum.1 + bytes);
        }
        counts
    }

    /// The sites with the most bytes first: operation, place, calls and bytes.
    pub fn largest_sites(&self, most: usize) -> Vec<(&str, &str, u64, u64)> {
        let mut sites: Vec<_> = self.sites.iter().collect();
        sites.sort_by_key(|(_, (_, bytes))| std::cmp::Reverse(*bytes));
        let sites = sites.into_iter().take(most);
        sites.map(|((name, place), (calls, bytes))| (&**name, &**place, *calls, *bytes)).collect()
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
            copy 2..4 3 8 inlined\ncopy all 3 8\nzero 1M..2M 1 1048576\nzero all 1 1048576\n\
            call sites of 64K and more:\nzero site 1 1048576 /bin/x+0x10 f+0x2\n\
            copy site 2 99 /bin/x+0x20\nand 3 more\n\
            4 calls from places that the table had no room for\n\
            memcpy of buffers that overlap: 2 calls, the first from /bin/x+0x10\n";
        let counts = Counts::read(&part.repeat(2));
        let named = |(name, size): (&str, &str)| (name.to_owned(), size.to_owned());
        let calls =
            [(("copy".to_owned(), 2), (6, 16)), (("zero".to_owned(), 1 << 20), (2, 2 << 20))];
        let sites = [(("zero", "x+0x10 f+0x2"), (2, 2 << 20)), (("copy", "x+0x20"), (4, 198))];
        let sites = sites.map(|(key, sum)| (named(key), sum)).into();
        assert_eq!(counts, Counts { processes: 2, calls: calls.into(), sites });
        let largest = [("zero", "x+0x10 f+0x2", 2, 2 << 20), ("copy", "x+0x20", 4, 198)];
        assert_eq!(counts.largest_sites(9), largest);
        assert_eq!(counts.largest_sites(1), largest[..1]);
        assert_eq!(["0", "1", "64..128", "1M..2M"].map(first_size), [0, 1, 64, 1 << 20]);
    }
}
