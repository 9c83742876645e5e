//! Bound on the part of a run that could be gained: by page faults that do not happen, and by copies, fills
//! and comparisons that are done by the fastest routine.

use crate::gathered::Counts;

/// Below this share of a run nothing is worth a setting.
pub const WORTH: f64 = cachewise_judge::margin::SETTING;

/// Bytes from which on glibc maps a block by itself, to begin with (mallopt(3)).
const MAPPED_FROM: u64 = 128 << 10;

/// Relates what was counted to what it costs here.
pub struct Costs<'a> {
    /// Seconds of a page fault on this machine: mapped, written, given back.
    pub fault: f64,
    /// Seconds of taking memory from the system and giving it back, untouched.
    pub mapping: f64,
    /// Seconds of a call to the C library's allocator and back.
    pub block: f64,
    /// Nanoseconds by which the fastest routine beats libc in one call, by operation and bytes.
    pub saved: &'a dyn Fn(&str, u64) -> f64,
}

/// Seconds of CPU below which the kernel's account of a run says nothing about its parts: it counts in ticks of up to 10 ms
/// (`CONFIG_HZ`), and of some twenty the system's share is known.
pub const ACCOUNTED_FROM: f64 = 0.2;

/// One run, as it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Seconds that the run takes at the least: of several runs the fastest, and on a busy machine the CPU time. Time that a
    /// run waited for others is no part of what can be gained or not.
    pub seconds: f64,
    /// Seconds of CPU in the system; `None` where the run is too short for the kernel's account ([`ACCOUNTED_FROM`]).
    pub system: Option<f64>,
    /// Page faults that read nothing from a disk.
    pub faults: f64,
    /// Page faults of a program that does nothing.
    pub idle_faults: f64,
    /// True if a fault may be of a huge page.
    pub has_huge_pages: bool,
}

/// Base pages in a huge one.
const HUGE: f64 = 512.0;

/// Parts of a run, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    /// Page faults, and the system's work for memory.
    pub faults: f64,
    /// Copies, fills and comparisons; `None` where nothing could be counted.
    pub copies: Option<f64>,
    /// Calls of the allocator; `None` where nothing could be counted.
    pub blocks: Option<f64>,
}

impl Bound {
    /// Computes the bound of a run, with the library's counts of a run like it.
    pub fn of(seen: &Seen, counts: Option<&Counts>, costs: &Costs<'_>) -> Bound {
        let share = |seconds: f64| (seconds / seen.seconds.max(1e-6)).clamp(0.0, 1.0);
        // The greatest number of blocks that reach `M_MMAP_THRESHOLD`: each of them is mapped by itself.
        let mapped = counts.map_or(0, |counts| counts.block_bytes / MAPPED_FROM) as f64;
        // The system's work costs its caller more than its own time: tables that are walked again, lines that
        // zeroing pushed out. So it counts twice.
        // Bytes are what costs: a fault of a huge page zeroes 2 MiB. What the system did at all is the least that it could be.
        let pages = (seen.faults - seen.idle_faults).max(0.0)
            * if seen.has_huge_pages { HUGE } else { 1.0 };
        let faults = 2.0 * (pages * costs.fault + mapped * costs.mapping);
        let faults = seen.system.map_or(faults, |system| faults.clamp(system, 2.0 * system));
        let of_calls = |counts: &Counts| -> f64 {
            let calls = counts.calls.iter();
            let saved = calls.map(|((operation, size), (calls, bytes))| {
                let mean = bytes.checked_div(*calls).unwrap_or(*size);
                *calls as f64 * (costs.saved)(operation, mean).max(0.0) * 1e-9
            });
            saved.sum()
        };
        Bound {
            faults: share(faults),
            copies: counts.map(|counts| share(of_calls(counts))),
            blocks: counts.and_then(|counts| counts.blocks).map(|n| share(n as f64 * costs.block)),
        }
    }

    /// The sum of all parts, at most 1.
    pub fn total(&self) -> f64 {
        let all = self.faults + self.copies.unwrap_or(0.0) + self.blocks.unwrap_or(0.0);
        all.min(1.0)
    }

    /// Returns whether it is shown that nothing which is counted is worth a setting. Where blocks lie is not counted: it
    /// matters to programs that take many, and of those nothing is shown.
    pub fn is_nothing(&self) -> bool {
        let few = |blocks: f64| blocks < WORTH / 10.0;
        self.copies.is_some() && self.blocks.is_some_and(few) && self.total() < WORTH
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(blocks: Option<u64>) -> Counts {
        let key = ("copy".to_owned(), 1 << 20);
        Counts { calls: [(key, (100, 100 << 20))].into(), blocks, block_bytes: 1 << 30 }
    }

    fn bound(seen: Seen, counts: Option<&Counts>) -> Bound {
        let saved = |operation: &str, size: u64| match operation {
            "copy" => size as f64 / 10.0,
            _ => 1e12,
        };
        Bound::of(&seen, counts, &Costs { fault: 1e-6, mapping: 1e-6, block: 2e-8, saved: &saved })
    }

    #[test]
    fn a_bound_is_the_sum_of_its_parts() {
        let seen = Seen {
            seconds: 1.0,
            system: Some(0.15),
            faults: 100_100.0,
            idle_faults: 100.0,
            has_huge_pages: false,
        };
        let found = bound(seen, Some(&counts(Some(1_000_000))));
        assert!((found.faults - 0.2 - 0.016_384).abs() < 1e-9, "{found:?}");
        assert!((found.copies.expect("counted") - 0.010_485_76).abs() < 1e-9, "{found:?}");
        assert!((found.blocks.expect("counted") - 0.02).abs() < 1e-9, "{found:?}");
        assert!(!found.is_nothing());
        // From all of the system's time to twice that, and never more than the run.
        for (system, huge, part) in [
            (Some(0.05), false, 0.1),
            (Some(0.5), false, 0.5),
            (None, false, 0.2),
            (None, true, 1.0),
            (Some(0.3), true, 0.6),
        ] {
            let found = bound(Seen { system, has_huge_pages: huge, ..seen }, None).faults;
            assert!((found - part).abs() < 1e-9, "{system:?} {huge}: {found}");
        }
        assert!(bound(Seen { seconds: 0.05, ..seen }, Some(&counts(None))).total() <= 1.0);
    }

    #[test]
    fn nothing_is_said_to_be_shown_where_something_was_not_counted() {
        let idle = Seen { seconds: 100.0, ..Seen::default() };
        for (blocks, is_nothing) in [(Some(10), true), (Some(20_000_000), false), (None, false)] {
            assert_eq!(bound(idle, Some(&counts(blocks))).is_nothing(), is_nothing, "{blocks:?}");
        }
        assert!(!bound(idle, None).is_nothing());
    }
}
