//! The decisions as glibc understands them: thresholds of its x86 string functions.
//!
//! glibc has one non-temporal threshold for copies, from 2.40 on one for fills, and one size each from which it
//! uses `rep movsb` and `rep stosb` (glibc manual, "Hardware Capability Tunables"; `ld.so --list-tunables` prints
//! those in force). It has no notion of what happens to the data next, so the `Unknown` decisions are exported,
//! and a profile that wants more than one change of technique cannot be said in full.

use cachewise::Reuse;
use cachewise::profile::Decision;
use cachewise_kernels::{Operation, StoreKind, find};

/// A threshold no buffer reaches, in the range glibc accepts (it rejects larger ones).
const NEVER: usize = 0x0fff_ffff_ffff_ffff >> 4;

/// glibc ignores a non-temporal threshold of 0x4040 or less, and a `rep` threshold below its least value: the next
/// multiple of a line is accepted from 2.36 to 2.43. No tunable changes what a smaller call does.
const LEAST_NON_TEMPORAL: usize = 0x4080;
const LEAST_REP: usize = 1024;

/// The glibc from which on fills have a non-temporal threshold of their own.
const FILLS_SINCE: (u32, u32) = (2, 40);

/// The value of the environment variable `GLIBC_TUNABLES` for a version of glibc. An operation that is left to libc at every size
/// has no threshold to set; where that is all of them, the value is empty.
pub fn line(decisions: &[Decision], glibc: (u32, u32)) -> String {
    let mut all = Vec::new();
    let mut set = |name: &str, value: usize| all.push(format!("glibc.cpu.x86_{name}={value:#x}"));
    if let Some(first) = Firsts::of(decisions, Operation::Copy) {
        set("non_temporal_threshold", first.non_temporal(LEAST_NON_TEMPORAL));
        set("rep_movsb_threshold", first.string(LEAST_REP));
    }
    if let Some(first) = Firsts::of(decisions, Operation::Fill) {
        let (non_temporal, string) =
            (first.non_temporal(LEAST_NON_TEMPORAL), first.string(LEAST_REP));
        if glibc < FILLS_SINCE {
            set("rep_stosb_threshold", string);
        } else {
            // Its non-temporal fill lies behind the `rep stosb` threshold: without that it is never met.
            set("memset_non_temporal_threshold", non_temporal);
            set("rep_stosb_threshold", string.min(non_temporal));
        }
    }
    all.join(":")
}

/// From which sizes on an operation is done otherwise than by temporal stores.
#[derive(Default)]
struct Firsts {
    non_temporal: Option<usize>,
    string: Option<usize>,
}

impl Firsts {
    /// `None` where libc does it at every size.
    fn of(decisions: &[Decision], operation: Operation) -> Option<Firsts> {
        let mut kernels = decisions
            .iter()
            .filter(|line| line.operation == operation && line.reuse == Reuse::Unknown)
            .filter_map(|line| Some((find(&line.kernel)?.store, line.from as usize)))
            .peekable();
        kernels.peek()?;
        let mut firsts = Firsts::default();
        for (store, from) in kernels {
            let first = match store {
                StoreKind::NonTemporal => &mut firsts.non_temporal,
                StoreKind::String => &mut firsts.string,
                _ => continue,
            };
            first.get_or_insert(from);
        }
        Some(firsts)
    }

    fn non_temporal(&self, least: usize) -> usize {
        self.non_temporal.unwrap_or(NEVER).max(least)
    }

    fn string(&self, least: usize) -> usize {
        self.string.unwrap_or(NEVER).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(decisions: &[(Operation, u64, &str)]) -> Vec<Decision> {
        let line = |&(operation, from, kernel): &(Operation, u64, &str)| {
            Decision::new(operation, Reuse::Unknown, (from, u64::MAX), kernel)
        };
        decisions.iter().map(line).collect()
    }

    #[test]
    fn thresholds_are_where_the_technique_changes_and_none_that_glibc_would_ignore() {
        let copied = |from, kernel| (Operation::Copy, from, kernel);
        let changes = [
            copied(256, "copy.avx"),
            copied(65536, "copy.rep.movsb"),
            copied(24 << 20, "copy.avx.nt.pages4"),
            (Operation::Fill, 256, "fill.avx"),
        ];
        let small = [
            copied(256, "copy.rep.movsb"),
            copied(4096, "copy.avx.nt"),
            (Operation::Fill, 256, "fill.avx"),
        ];
        for (lines, non_temporal, rep) in
            [(&changes[..], 24 << 20, 65536), (&small, LEAST_NON_TEMPORAL, LEAST_REP)]
        {
            let expected = format!(
                "glibc.cpu.x86_non_temporal_threshold={non_temporal:#x}:glibc.cpu.x86_rep_movsb_threshold={rep:#x}:\
                 glibc.cpu.x86_rep_stosb_threshold={NEVER:#x}"
            );
            assert_eq!(line(&decided(lines), (2, 36)), expected);
        }
        // Sizes that are left to libc keep libc's own threshold.
        let libc = [copied(256, "libc"), (Operation::Fill, 256, "libc")];
        assert_eq!(line(&decided(&libc), (2, 36)), "");
        assert_eq!(line(&decided(&libc[..1]), (2, 43)), "");
    }

    #[test]
    fn fills_have_a_threshold_of_their_own_from_2_40_on_which_rep_stosb_must_not_hide() {
        let fills = |lines: &[(u64, &str)], glibc| {
            let lines: Vec<_> =
                lines.iter().map(|(from, kernel)| (Operation::Fill, *from, *kernel)).collect();
            line(&decided(&lines), glibc)
        };
        let both = |non_temporal: usize, string: usize| {
            format!(
                "glibc.cpu.x86_memset_non_temporal_threshold={non_temporal:#x}:\
                 glibc.cpu.x86_rep_stosb_threshold={string:#x}"
            )
        };
        let non_temporal = [(256, "fill.avx"), (1 << 20, "fill.avx.nt")];
        let string = [(256, "fill.avx"), (1 << 16, "fill.rep.stosb")];
        assert_eq!(
            fills(&non_temporal, (2, 39)),
            format!("glibc.cpu.x86_rep_stosb_threshold={NEVER:#x}")
        );
        assert_eq!(fills(&non_temporal, (2, 40)), both(1 << 20, 1 << 20));
        assert_eq!(fills(&string, (2, 43)), both(NEVER, 1 << 16));
        assert_eq!(fills(&[(256, "fill.avx")], (2, 44)), both(NEVER, NEVER));
    }
}
