//! The tuner from beginning to end: race, decide, referee, and only then a result.

use super::field::{ALWAYS, Field};
use super::hints::{self, Never};
use super::plan;
use super::race::{Follows, Race};
use super::ranges::{From, LIBC, Range};
use super::referee::{Referee, Trial, decisions};
use super::rounds::Evidence;
use super::seam::{Facts, Machine, Stage};
use super::tuning::{Settings, Shown, Tuning};
use super::visits::Visits;
use cachewise::Reuse;
use cachewise::profile::{self, Decision, OPERATIONS};
use cachewise_judge::Ratio;
use cachewise_judge::margin::HEADLINE;
use cachewise_kernels::Operation;
use cachewise_measure::LabError;
use std::collections::BTreeMap;

/// Shares of the budget at whose end a stage stops. The last part is for what no visit can promise: a
/// call that takes longer than any before it.
const RACE_UNTIL: f64 = 0.70;
const REFEREE_UNTIL: f64 = 0.94;
const NEVER_UNTIL: f64 = 0.97;
const SCRIPTS_UNTIL: f64 = 0.985;
/// Part of a minute that the referee takes where little fails, as mostly: for the time left, until prices tell. A larger
/// budget does not make it longer, as its rounds of a cell are limited.
const REFEREE_TAKES: f64 = 0.13;
const NEVER_TAKES: f64 = 0.03;

/// Seconds of its budget that a tuning is expected to take.
#[must_use]
pub fn expected(budget: f64) -> f64 {
    RACE_UNTIL * budget + (REFEREE_TAKES + NEVER_TAKES) * budget.min(plan::MINUTE)
}

/// Tunes a machine. What was seen is in `evidence` even when this ends early.
///
/// # Errors
/// [`LabError::Interrupted`] when the user stopped it; what else the machine refuses.
pub fn run(
    machine: &mut dyn Machine,
    settings: &Settings,
    evidence: &mut Evidence,
) -> Result<Tuning, LabError> {
    let facts = machine.facts();
    let top = plan::top(&facts, settings.budget);
    let fields: Vec<Field> = OPERATIONS
        .iter()
        .map(|&operation| {
            let cells = (plan::grid(top), plan::views(operation, &facts));
            Field::new(operation, machine.arms(operation), cells, &facts, &settings.previous)
        })
        .collect();
    let budget = settings.budget;
    let mut visits = Visits::new(machine, evidence, settings.seed);
    let minute = budget.min(plan::MINUTE);
    let follows = Follows { referee: REFEREE_TAKES * minute, never: NEVER_TAKES * minute };
    let mut race = Race::new(&mut visits, facts, fields, follows);
    race.run(RACE_UNTIL * budget, (REFEREE_UNTIL - RACE_UNTIL) * budget)?;
    let Follows { referee: takes, never: after } = race.follows;
    let fields = race.fields;
    let mut trials: Vec<Trial> =
        fields.into_iter().map(|field| Trial::new(field, &facts, &mut visits.random)).collect();
    visits.machine.progress(Stage::Referee, takes + after);
    let mut referee = Referee { visits: &mut visits, facts, takes, after };
    let mut repairs = referee.run(&mut trials, REFEREE_UNTIL * budget)?;
    let (never, of_never) = referee.never(&trials, NEVER_UNTIL * budget, &mut repairs)?;
    let scripts = referee.scripts(SCRIPTS_UNTIL * budget)?;
    let seconds = visits.machine.now();
    let refereed = trials.iter().flat_map(Trial::refereed).chain(of_never).chain(scripts).collect();
    let fields: Vec<Decided> = trials
        .into_iter()
        .zip(never)
        .map(|(trial, never)| Decided { unknown: trial.ranges(), never, field: trial.field })
        .collect();
    Ok(Tuning { refereed, repairs, seconds, ..decided(&fields, facts) })
}

/// A field with its ranges where nothing is known, and what pays under `never`.
pub(super) struct Decided {
    pub field: Field,
    pub unknown: Vec<Range>,
    pub never: Never,
}

impl Decided {
    /// The best of the kernels that are shown to be faster than libc, at each size that is left to libc.
    fn passed_over(&self) -> Vec<(Operation, usize, String)> {
        let field = &self.field;
        let costs = field.costs(false);
        let left = |size: &usize| {
            let inside = |range: &&Range| (range.from..=range.to).contains(&(*size as u64));
            self.unknown.iter().find(inside).is_some_and(|range| range.arm == LIBC)
        };
        let sizes = field.sizes.iter().enumerate().filter(|(_, size)| left(size));
        let found = sizes.filter_map(|(at, size)| {
            let costs = costs.iter().enumerate().filter_map(|(arm, of)| Some((arm, of[at]?)));
            let (arm, _) = costs.min_by(|a, b| a.1.total_cmp(&b.1))?;
            // The decisions in force count as better than they are.
            (!field.is_libc(arm, *size) && field.value(arm, at).mean < 0.0)
                .then(|| (field.operation, *size, field.arms[arm].name.clone()))
        });
        found.collect()
    }
}

/// Decisions from the race; without a referee.
pub(super) fn decided(fields: &[Decided], facts: Facts) -> Tuning {
    let mut tuning = Tuning {
        decisions: all_decisions(fields),
        shown: fields.iter().flat_map(|of| shown(&of.field)).collect(),
        refereed: Vec::new(),
        repairs: Vec::new(),
        passed_over: fields.iter().flat_map(Decided::passed_over).collect(),
        facts,
        seconds: 0.0,
    };
    name_nearest(&mut tuning);
    tuning
}

/// Every operation under every hint.
fn all_decisions(fields: &[Decided]) -> Vec<Decision> {
    let copies = fields.iter().find(|of| of.field.operation == Operation::Copy);
    // A move of what does not overlap is the copy's loop.
    let twin = |of_moves: &Field, from: Option<From>| {
        let (copies, from) = (copies?, from?);
        let name = copies.field.arms[from.arm].name.replacen("copy.", "move.", 1);
        let arm = of_moves.arms.iter().position(|arm| arm.name == name)?;
        Some(From { arm, ..from })
    };
    let mut all = Vec::new();
    for Decided { field, unknown, never } in fields {
        for &reuse in profile::hints(field.operation) {
            let never = match (reuse, field.operation) {
                // `unknown` supposes a reader already, so `soon` has nothing to add.
                (Reuse::Unknown | Reuse::Soon, _) => Never::default(),
                (Reuse::Never, Operation::Move) => {
                    let Never { default, shown } =
                        copies.map_or(Never::default(), |of| of.never.clone());
                    let default = default.and_then(|default| {
                        let from = twin(field, Some(default.from))?;
                        Some(hints::Untuned { from, ..default })
                    });
                    Never { default, shown: twin(field, shown) }
                }
                (Reuse::Never, _) => never.clone(),
            };
            all.extend(decisions(field, &never.over(unknown), reuse));
        }
    }
    all
}

/// Results that were shown.
fn shown(field: &Field) -> Vec<Shown> {
    let mut found = Vec::new();
    for (arm, competitor) in field.measured() {
        for (view, size, seen) in field.visited(arm) {
            let Ratio { median: ratio, low, high, rounds } = seen.ratio(ALWAYS);
            let (cell, name) = (view.cell(field.operation, size, false), competitor.name.clone());
            if rounds > 0 {
                found.push(Shown { cell, name, ratio, low, high, rounds });
            }
        }
    }
    found
}

/// A kernel counts as level while nothing shows it to be slower than libc by more than this.
const LEVEL: f64 = 1.0 + HEADLINE;

/// Names beside every `libc` the kernel that was shown to be level over the range and was the fastest
/// of those in the mean; none where none was level. It is for programs in which no C library can be called.
pub fn name_nearest(tuning: &mut Tuning) {
    for decision in tuning.decisions.iter_mut().filter(|decision| decision.kernel == profile::LIBC)
    {
        let within = |shown: &&Shown| {
            shown.cell.operation == decision.operation
                && shown.cell.script.is_none()
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
