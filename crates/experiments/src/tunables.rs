//! The decisions as glibc understands them: three thresholds of its x86 string functions.
//!
//! glibc has one non-temporal threshold for copies and, from 2.41 on, one for fills, and one size
//! each from which it uses `rep movsb` and `rep stosb`
//! (glibc manual, "Hardware Capability Tunables"). It has no notion of what happens to the data
//! next, so the `Unknown` decisions are exported, and a profile that wants more than one change of
//! technique cannot be said in full.

use cachewise::Reuse;
use cachewise::profile::Decision;
use cachewise_kernels::{Operation, StoreKind, find};

/// A threshold no buffer reaches, in the range glibc accepts (it rejects larger ones).
const NEVER: usize = 0x0fff_ffff_ffff_ffff >> 4;

/// glibc's own least values; smaller ones are ignored with a silent default. So no tunable changes
/// what a call of less than the smaller one does.
const LEAST_NON_TEMPORAL: usize = 0x4040;
pub(crate) const LEAST_REP: usize = 1024;

/// The thresholds: of which operation, from which stores on, and glibc's least value. In glibc's order.
const THRESHOLDS: [(&str, Operation, StoreKind, usize); 3] = [
    ("x86_non_temporal_threshold", Operation::Copy, StoreKind::NonTemporal, LEAST_NON_TEMPORAL),
    ("x86_rep_movsb_threshold", Operation::Copy, StoreKind::String, LEAST_REP),
    ("x86_rep_stosb_threshold", Operation::Fill, StoreKind::String, LEAST_REP),
];

/// The value of the environment variable `GLIBC_TUNABLES`. An operation that is left to libc at every size
/// has no threshold to set; where that is all of them, the value is empty.
pub fn line(decisions: &[Decision]) -> String {
    let settings = THRESHOLDS.iter().filter_map(|(name, operation, store, least)| {
        let mut kernels = decisions
            .iter()
            .filter(|d| d.operation == *operation && d.reuse == Reuse::Unknown)
            .filter_map(|d| Some((find(&d.kernel)?.store, d.from as usize)))
            .peekable();
        kernels.peek()?;
        let first = kernels.find(|(of_kernel, _)| of_kernel == store);
        let value = first.map_or(NEVER, |(_, from)| from).max(*least);
        Some(format!("glibc.cpu.{name}={value:#x}"))
    });
    settings.collect::<Vec<_>>().join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (decided, non_temporal, rep) in
            [(&changes[..], 24 << 20, 65536), (&small, LEAST_NON_TEMPORAL, LEAST_REP)]
        {
            let decisions: Vec<Decision> = decided
                .iter()
                .map(|&(operation, from, kernel)| {
                    let (reuse, to, kernel) = (Reuse::Unknown, u64::MAX, kernel.to_owned());
                    Decision { operation, reuse, from, to, kernel, nearest: None }
                })
                .collect();
            let expected = format!(
                "glibc.cpu.x86_non_temporal_threshold={non_temporal:#x}:\
                 glibc.cpu.x86_rep_movsb_threshold={rep:#x}:\
                 glibc.cpu.x86_rep_stosb_threshold={NEVER:#x}"
            );
            assert_eq!(line(&decisions), expected);
            // What is left to libc keeps libc's own threshold.
            let mut copies = decisions.clone();
            copies.retain(|d| d.operation == Operation::Copy);
            copies.push(Decision {
                kernel: "libc".to_owned(),
                ..decisions[decided.len() - 1].clone()
            });
            let (copies_alone, _) = expected.rsplit_once(':').expect("three settings");
            assert_eq!(line(&copies), copies_alone);
            let all: Vec<Decision> = decisions
                .iter()
                .map(|d| Decision { kernel: "libc".to_owned(), ..d.clone() })
                .collect();
            assert_eq!(line(&all), "");
        }
    }
}
