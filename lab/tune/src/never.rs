//! The referee of the hint `never`: the library with the numbers that [`hints`] found, against libc
//! beside a bystander. A number only rises: to the least size from which on the library lost nowhere.

use super::field::Field;
use super::hints::{self, Never};
use super::ranges::From;
use super::referee::{Referee, Trial, decisions};
use super::rounds::{Evidence, Purpose};
use super::seam::{Arm, Stage, TuningCell};
use super::tuning::{Refereed, Repair};
use cachewise::Reuse;
use cachewise_judge::estimate::{Estimate, Guard, Ruling};
use cachewise_judge::margin::{GUARD, LAYOUTS, LEAST_BESIDE};
use cachewise_kernels::Operation;
use cachewise_measure::LabError;

#[cfg(test)]
mod tests;

/// The sizes at which the referee looks at a number: the first, one in every octave that was not
/// measured before, and the largest.
fn points(field: &Field, from: From, random: &mut fastrand::Rng) -> Vec<usize> {
    let octaves = hints::sizes(field).into_iter().filter(|size| *size >= from.size);
    let octaves: Vec<usize> = octaves.collect();
    let between = octaves.iter().skip(1).map(|above| above / 2 + above / 8 * random.usize(1..4));
    let mut points: Vec<usize> = between.chain(octaves.last().copied()).collect();
    points.insert(0, from.size);
    points.dedup();
    points
}

/// Estimate of the referee's rounds at a size, in both states of the destination together: the library's total less libc's over libc's operation.
fn seen(field: &Field, evidence: &Evidence, size: usize, arm: usize) -> Option<Estimate> {
    let here = |cell: &TuningCell| cell.operation == field.operation && cell.size == size;
    let logs = evidence.of(Purpose::Never).filter(|(cell, _)| here(cell));
    let pairs = logs.flat_map(|(_, log)| log.pairs(&field.arms[arm].name));
    let values: Vec<f64> =
        pairs.map(|(ours, libc)| (ours.total() - libc.total()) / libc.operation).collect();
    (values.len() >= LEAST_BESIDE).then(|| Estimate::of(&values, LAYOUTS))
}

/// Ruling on an estimate; `None` for too few rounds, or where more may tell, unless this is the `last` look.
fn ruling(
    field: &Field,
    evidence: &Evidence,
    size: usize,
    arm: usize,
    last: bool,
) -> Option<Ruling> {
    Guard::to_prove(GUARD).rules(seen(field, evidence, size, arm)?, last)
}

/// The number that is left of one: the least of its points from which on the library lost at none.
fn upheld(from: From, points: &[usize], kept: impl Fn(usize) -> bool) -> Option<From> {
    let passed = points.iter().rev().take_while(|size| kept(**size));
    passed.last().map(|&size| From { size, ..from })
}

/// A cell for each size that the referee's rounds are there for, in ascending order.
fn looked_at(field: &Field, evidence: &Evidence) -> Vec<TuningCell> {
    let cells = evidence.of(Purpose::Never).map(|(cell, _)| *cell);
    let mut cells: Vec<TuningCell> =
        cells.filter(|cell| cell.operation == field.operation).collect();
    cells.dedup_by_key(|cell| cell.size);
    cells
}

/// Findings of the referee about a number, for the record and the report: one entry a size, since both states
/// of the destination are ruled on together.
fn refereed(field: &Field, evidence: &Evidence, proposed: &Never, left: &Never) -> Vec<Refereed> {
    let one = |cell: TuningCell| {
        let arm = proposed.at(cell.size)?.arm;
        let Estimate { mean, error, rounds } = seen(field, evidence, cell.size, arm)?;
        let verdict = ruling(field, evidence, cell.size, arm, true);
        Some(Refereed {
            cell,
            name: field.arms[arm].name.clone(),
            ratio: 1.0 + mean,
            error,
            rounds,
            verdict: verdict.unwrap_or(Ruling::Undecided),
            in_use: left.at(cell.size).is_some_and(|from| from.arm == arm),
        })
    };
    looked_at(field, evidence).into_iter().filter_map(one).collect()
}

/// A number that is found again, as a record's referee left it: a size that it did not look at is not
/// refused.
pub(super) fn again(field: &Field, evidence: &Evidence, from: From) -> Option<From> {
    let seen: Vec<usize> = looked_at(field, evidence).iter().map(|cell| cell.size).collect();
    let above = seen.iter().copied().filter(|size| *size > from.size);
    let sizes: Vec<usize> = std::iter::once(from.size).chain(above).collect();
    upheld(from, &sizes, |size| {
        let kept = ruling(field, evidence, size, from.arm, true) == Some(Ruling::Kept);
        kept || !seen.contains(&size)
    })
}

impl Referee<'_, '_> {
    /// The numbers under `never`, beside a bystander: what of them is upheld.
    ///
    /// # Errors
    /// Returns the first error of [`Machine::visit`](super::seam::Machine::visit).
    pub(super) fn never(
        &mut self,
        trials: &[Trial],
        stop: f64,
        repairs: &mut Vec<Repair>,
    ) -> Result<(Vec<Never>, Vec<Refereed>), LabError> {
        let propose = |trial: &Trial| Never {
            default: hints::default(&trial.field, self.visits.evidence),
            shown: hints::never(&trial.field, self.visits.evidence),
        };
        let proposed: Vec<Never> = trials.iter().map(propose).collect();
        let mut all = Vec::new();
        let mut looked_at = Vec::new();
        for (trial, never) in trials.iter().zip(&proposed) {
            // The plain call is what follows `unknown`.
            all.extend(decisions(&trial.field, &never.over(&trial.ranges()), Reuse::Unknown));
            let random = &mut self.visits.random;
            // A move is the copy's loop.
            let first = never.first().filter(|_| trial.field.operation != Operation::Move);
            looked_at.push(first.map_or(Vec::new(), |from| points(&trial.field, from, random)));
        }
        self.visits.machine.follow(&all)?;
        let begun = self.visits.machine.now();
        loop {
            let mut open = Vec::new();
            for (nth, never) in proposed.iter().enumerate() {
                let field = &trials[nth].field;
                let arms =
                    looked_at[nth].iter().filter_map(|size| Some((*size, never.at(*size)?.arm)));
                let undecided = |(size, arm): &(usize, usize)| {
                    ruling(field, self.visits.evidence, *size, *arm, false).is_none()
                };
                open.extend(arms.filter(undecided).map(|(size, arm)| (nth, size, arm)));
            }
            self.visits.random.shuffle(&mut open);
            open.sort_by_key(|(nth, size, _)| *size >= trials[*nth].bands()[1]);
            let mut bought = false;
            for (nth, size, arm) in open {
                let now = self.visits.machine.now();
                let left = (self.after - (now - begun)).max(0.0);
                self.visits.machine.progress(Stage::Referee, left.min(stop - now));
                let field = &trials[nth].field;
                let cell = hints::cell(field.operation, size, &self.facts);
                let library = [(field.arms[arm].name.clone(), (cell, Arm::Library))];
                let libc = (cell, Arm::LIBC);
                let round = self.visits.keep(Purpose::Never, libc, &library, 1, stop)?;
                bought |= round.is_some_and(|round| round.others[0].is_some());
            }
            if !bought {
                break;
            }
        }
        let (mut left, mut refereed_all) = (Vec::new(), Vec::new());
        for ((trial, proposed), points) in trials.iter().zip(&proposed).zip(&looked_at) {
            let field = &trial.field;
            let shown = proposed.shown.and_then(|from| {
                let points: Vec<usize> = points
                    .iter()
                    .copied()
                    .filter(|size| proposed.at(*size) == Some(from))
                    .collect();
                let ruling = |size| ruling(field, self.visits.evidence, size, from.arm, true);
                for &size in points.iter().filter(|size| ruling(**size) != Some(Ruling::Kept)) {
                    let (operation, kernel) = (field.operation, field.arms[from.arm].name.clone());
                    let round = usize::from(ruling(size) == Some(Ruling::Lost));
                    repairs.push(Repair { operation, reuse: Reuse::Never, kernel, size, round });
                }
                upheld(from, &points, |size| ruling(size) == Some(Ruling::Kept))
            });
            let still = Never { default: hints::default(field, self.visits.evidence), shown };
            refereed_all.extend(refereed(field, self.visits.evidence, proposed, &still));
            left.push(still);
        }
        Ok((left, refereed_all))
    }
}
