//! The kernel of ours nearest to a decision for `libc`, for programs in which no C
//! library can be called.

use super::tuning::{Shown, Tuning};
use cachewise::profile::LIBC;
use std::collections::BTreeMap;

/// A kernel counts as level while nothing shows it to be slower than libc by more than this.
const LEVEL: f64 = 1.03;

/// Names beside every `libc` the kernel that was shown to be level over the range and was the fastest
/// of those in the mean; none where none was level.
pub fn name_nearest(tuning: &mut Tuning) {
    for decision in tuning.decisions.iter_mut().filter(|decision| decision.kernel == LIBC) {
        let within = |shown: &&Shown| {
            shown.cell.operation == decision.operation
                && shown.cell.script.is_none()
                && shown.cell.threads.count == 1
                && (decision.from..=decision.to).contains(&(shown.cell.size as u64))
        };
        // Sum of logarithms, number of cells, and whether it is level in all of them.
        let mut kernels: BTreeMap<&str, (f64, usize, bool)> = BTreeMap::new();
        for shown in tuning.shown.iter().filter(within) {
            let known = kernels.entry(&shown.name).or_insert((0.0, 0, true));
            known.0 += shown.ratio.ln();
            known.1 += 1;
            known.2 &= shown.low <= LEVEL;
        }
        let most = kernels.values().map(|(_, cells, _)| *cells).max().unwrap_or(0);
        let level = kernels.iter().filter(|(_, (_, cells, level))| *level && *cells == most);
        let best = level.min_by(|a, b| a.1.0.total_cmp(&b.1.0));
        decision.nearest = best.map(|(name, _)| (*name).to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::tests::{decision, facts};
    use crate::seam::{Destination, TuningCell};
    use cachewise_kernels::Operation;

    #[test]
    fn beside_libc_is_the_fastest_kernel_that_is_level_over_the_whole_range() {
        let shown = |size, name: &str, ratio, low| Shown {
            cell: TuningCell::new(Operation::Zero, size, Destination::Cached),
            name: name.to_owned(),
            ratio,
            low,
            high: 2.0,
            rounds: 9,
        };
        let at = |size| {
            let level = [shown(size, "zero.level", 1.02, 1.0), shown(size, "zero.slow", 1.2, 1.03)];
            level.into_iter().chain([shown(size, "zero.shown", 0.9 + size as f64 / 2e4, 1.04)])
        };
        let (facts, kernel) = (facts(), decision("zero.first", 1024, 2047));
        let mut tuning = Tuning {
            decisions: vec![
                decision("libc", 256, 1023),
                kernel,
                decision("libc", 2048, 4096),
                decision("libc", 4097, 9999),
            ],
            parallel: Vec::new(),
            entries: Vec::new(),
            shown: [300, 2048, 4096].into_iter().flat_map(at).collect(),
            refereed: Vec::new(),
            repairs: Vec::new(),
            passed_over: Vec::new(),
            facts,
            seconds: 0.0,
        };
        // The fastest anywhere, but not measured over a whole range.
        tuning.shown.push(shown(4096, "zero.once", 0.5, 0.4));
        name_nearest(&mut tuning);
        let named: Vec<_> = tuning.decisions.iter().map(|d| d.nearest.as_deref()).collect();
        assert_eq!(named, [Some("zero.level"), None, Some("zero.level"), None]);
        // None is level.
        tuning.shown.iter_mut().for_each(|shown| shown.low = 1.04);
        name_nearest(&mut tuning);
        assert!(tuning.decisions.iter().all(|decision| decision.nearest.is_none()));
    }
}
