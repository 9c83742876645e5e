//! How much of a run could be gained at most: by page faults that do not happen, and by copies, fills
//! and comparisons that are done by the fastest routine.

use crate::counts::Counts;

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
}

impl Seen {
    /// A run by its CPU time and the system's part of it.
    #[must_use]
    pub fn of(seconds: f64, cpu: f64, system: f64, faults: f64, idle_faults: f64) -> Seen {
        let system = (cpu >= ACCOUNTED_FROM).then_some(system);
        Seen { seconds, system, faults, idle_faults }
    }
}

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
        let faults = (seen.faults - seen.idle_faults).max(0.0) * costs.fault;
        let faults =
            2.0 * (faults + mapped * costs.mapping).min(seen.system.unwrap_or(f64::INFINITY));
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

    /// Returns whether it is shown that nothing is worth a setting.
    pub fn is_nothing(&self) -> bool {
        self.copies.is_some() && self.blocks.is_some() && self.total() < WORTH
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
        let seen = Seen { seconds: 1.0, system: Some(0.5), faults: 100_100.0, idle_faults: 100.0 };
        let found = bound(seen, Some(&counts(Some(1_000_000))));
        assert!((found.faults - 0.2 - 0.016_384).abs() < 1e-9, "{found:?}");
        assert!((found.copies.expect("counted") - 0.010_485_76).abs() < 1e-9, "{found:?}");
        assert!((found.blocks.expect("counted") - 0.02).abs() < 1e-9, "{found:?}");
        assert!(!found.is_nothing());
        assert!((bound(seen, None).faults - 0.2).abs() < 1e-9);
        // Never more than twice the system's time, nor than the run.
        assert!((bound(Seen { system: Some(0.05), ..seen }, None).faults - 0.1).abs() < 1e-9);
        assert!(bound(Seen { seconds: 0.05, ..seen }, Some(&counts(None))).total() <= 1.0);
    }

    #[test]
    fn a_run_of_a_few_ticks_is_not_bounded_by_what_the_kernel_counted() {
        // 5 ms with 3,000 faults: the ticks say that the system had nothing to do.
        let short = Seen::of(0.005, 0.005, 0.0, 3100.0, 100.0);
        assert_eq!(short.system, None);
        let counted = Counts { block_bytes: 0, calls: [].into(), ..counts(Some(0)) };
        let found = bound(short, Some(&counted));
        assert!(found.faults > 0.5 && !found.is_nothing(), "{found:?}");
        assert!(bound(Seen { system: Some(0.0), ..short }, Some(&counted)).is_nothing());
        assert_eq!(Seen::of(1.0, 1.0, 0.3, 0.0, 0.0).system, Some(0.3));
    }

    #[test]
    fn nothing_is_said_to_be_shown_where_something_was_not_counted() {
        let idle = Seen { seconds: 100.0, ..Seen::default() };
        assert!(bound(idle, Some(&counts(Some(10)))).is_nothing());
        assert!(!bound(idle, Some(&counts(None))).is_nothing());
        assert!(!bound(idle, None).is_nothing());
    }
}
