//! Where a decision is `libc`: the kernel of ours that comes nearest, for programs in which no C
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
