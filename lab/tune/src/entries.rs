//! The entry stubs: the cells in which they are raced, the best of them, and the check of the library with it.

use super::plan;
use super::referee::{Referee, is_enough};
use super::rounds::{Evidence, Log, Purpose};
use super::seam::{Arm, Contents, Destination, Facts, Script, TuningCell};
use super::tuning::{Refereed, Ruling};
use cachewise::entry;
use cachewise::profile::OPERATIONS;
use cachewise_experiments::LabError;
use cachewise_judge::estimate::{Estimate, Scatter, Sure};
use cachewise_judge::margin::{GUARD, LAYOUTS};
use cachewise_kernels::Operation;

/// The cells of an operation's scripts: hot and cold, their calls spread over bytes well inside L1 and far
/// beyond L2; of comparisons with operands that are equal, and with such that differ.
pub(super) fn scripts(operation: Operation, facts: &Facts) -> Vec<TuningCell> {
    let contents = [Contents::Equal, Contents::Unequal];
    let contents = if plan::stores(operation) { &contents[..1] } else { &contents };
    let spans = [(true, facts.l1 / 2), (false, plan::TOP.min(facts.largest))];
    let cells = spans.into_iter().flat_map(|(hot, span)| {
        let cell = TuningCell::new(operation, span, Destination::Cached);
        contents.iter().map(move |&contents| TuningCell {
            contents,
            script: Some(Script { hot }),
            ..cell
        })
    });
    cells.collect()
}

/// How often what a stub seems to lose beyond the guard counts.
const LOSSES: f64 = 30.0;

/// The entry stub of each operation that has a choice: the best in the mean of its scripts, of those that are
/// shown to lose in the fewest. The one in use stays unless that one is shown to be better: scripts are mostly the
/// smallest calls, and between two stubs that do those alike noise would choose.
pub(super) fn best(evidence: &Evidence, facts: &Facts) -> Vec<(Operation, String)> {
    let mut found = Vec::new();
    for operation in OPERATIONS {
        let logs: Vec<_> = evidence
            .of(Purpose::Entries)
            .filter(|(cell, _)| cell.operation == operation)
            .map(|(_, log)| log)
            .collect();
        // Hot and cold at least.
        let [first, _, ..] = logs[..] else { continue };
        let score = |name: &String| -> Option<f64> {
            let mut sum = 0.0;
            for log in &logs {
                let ratios = log.log_ratios(name);
                if ratios.len() < Scatter::Pooled.least_rounds() {
                    return None;
                }
                let seen = Estimate::of(&ratios, LAYOUTS);
                // A loss that is shown in one script is made up for by nothing; an apparent loss counts for more than an apparent gain.
                let is_lost = seen.is_above(GUARD, Sure::Seems);
                sum +=
                    seen.mean + if is_lost { 10.0 } else { LOSSES * (seen.mean - GUARD).max(0.0) };
            }
            Some(sum)
        };
        let scored = first.others.keys().filter_map(|name| Some((score(name)?, name)));
        let Some((_, best)) = scored.min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        let in_use = facts.entries[entry::place(operation)].map(str::to_owned);
        let stays = in_use
            .filter(|in_use| first.others.contains_key(in_use) && !is_better(&logs, best, in_use));
        found.push((operation, stays.unwrap_or_else(|| best.clone())));
    }
    found
}

/// Returns whether a stub is shown to be better than another in the mean over the scripts, by more than the guard.
fn is_better(logs: &[&Log], stub: &str, other: &str) -> bool {
    let seen = Estimate::mean(
        logs.iter().map(|log| (Estimate::of(&log.log_ratios_over(stub, other), LAYOUTS), 1.0)),
    );
    seen.rounds >= Scatter::Pooled.least_rounds() && seen.high(Sure::Shown) < -GUARD
}

impl Referee<'_, '_> {
    /// The library's small calls as programs make them, against libc.
    ///
    /// # Errors
    /// Those of the machine.
    pub(super) fn scripts(
        &mut self,
        entries: &[(Operation, String)],
        stop: f64,
    ) -> Result<Vec<Refereed>, LabError> {
        let mut found = Vec::new();
        for operation in OPERATIONS {
            let chosen = entries.iter().find(|(of, _)| *of == operation);
            let known = self.visits.machine.entries(operation);
            let entry = chosen.and_then(|(_, name)| known.iter().position(|known| known == name));
            let arm = entry.map_or(Arm::Library, Arm::Entry);
            for cell in scripts(operation, &self.facts) {
                const LIBRARY: &str = "library";
                let libc = (cell, Arm::LIBC);
                let mut ratios = Vec::new();
                for _ in 0..5 {
                    let Some(round) = self.visits.round(libc, &[(cell, arm)], 3, stop)? else {
                        break;
                    };
                    let Some(ours) = round.others[0] else { continue };
                    ratios.push((ours.total() / round.reference.total()).ln());
                    let library = [(LIBRARY, ours)];
                    self.visits.evidence.push(Purpose::Referee, cell, round.reference, library);
                }
                if !is_enough(&ratios) {
                    continue;
                }
                let seen = Estimate::of(&ratios, 0.0);
                let kept = seen.keeps(GUARD, Sure::Seems);
                let Estimate { mean, error, rounds } = seen;
                found.push(Refereed {
                    cell,
                    name: LIBRARY.to_owned(),
                    ratio: mean.exp(),
                    error,
                    rounds,
                    verdict: if kept { Ruling::Kept } else { Ruling::Lost },
                    in_use: true,
                });
            }
        }
        Ok(found)
    }
}
