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

/// The setting, as `(name, value)` without the `glibc.cpu.` prefix, in glibc's order.
pub fn of(decisions: &[Decision]) -> Vec<(&'static str, usize)> {
    let first = |operation: Operation, wanted: &dyn Fn(StoreKind) -> bool| {
        decisions
            .iter()
            .filter(|d| d.operation == operation && d.reuse == Reuse::Unknown)
            .find(|d| find(&d.kernel).is_some_and(|kernel| wanted(kernel.store)))
            .map(|d| d.from as usize)
    };
    let non_temporal = |store| store == StoreKind::NonTemporal;
    let string = |store| store == StoreKind::String;
    vec![
        (
            "x86_non_temporal_threshold",
            first(Operation::Copy, &non_temporal).unwrap_or(NEVER).max(LEAST_NON_TEMPORAL),
        ),
        (
            "x86_rep_movsb_threshold",
            first(Operation::Copy, &string).unwrap_or(NEVER).max(LEAST_REP),
        ),
        (
            "x86_rep_stosb_threshold",
            first(Operation::Fill, &string).unwrap_or(NEVER).max(LEAST_REP),
        ),
    ]
}

/// The value of the environment variable `GLIBC_TUNABLES`.
pub fn line(settings: &[(&str, usize)]) -> String {
    settings
        .iter()
        .map(|(name, value)| format!("glibc.cpu.{name}={value:#x}"))
        .collect::<Vec<_>>()
        .join(":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(operation: Operation, from: u64, kernel: &str) -> Decision {
        let (reuse, to, kernel) = (Reuse::Unknown, u64::MAX, kernel.to_owned());
        Decision { operation, reuse, from, to, kernel, nearest: None }
    }

    #[test]
    fn thresholds_are_where_the_technique_changes() {
        let settings = of(&[
            decided(Operation::Copy, 256, "copy.avx"),
            decided(Operation::Copy, 65536, "copy.rep.movsb"),
            decided(Operation::Copy, 24 << 20, "copy.avx.nt.pages4"),
            decided(Operation::Fill, 256, "fill.avx"),
        ]);
        assert_eq!(
            line(&settings),
            format!(
                "glibc.cpu.x86_non_temporal_threshold=0x1800000:\
                 glibc.cpu.x86_rep_movsb_threshold=0x10000:\
                 glibc.cpu.x86_rep_stosb_threshold={NEVER:#x}"
            )
        );
    }

    #[test]
    fn values_glibc_would_ignore_are_raised_to_its_least() {
        let settings = of(&[
            decided(Operation::Copy, 256, "copy.rep.movsb"),
            decided(Operation::Copy, 4096, "copy.avx.nt"),
        ]);
        assert_eq!(settings[0].1, LEAST_NON_TEMPORAL);
        assert_eq!(settings[1].1, LEAST_REP);
    }
}
