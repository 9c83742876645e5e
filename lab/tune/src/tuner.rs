//! The tuner from beginning to end: race, decide, referee, and only then a result.

use super::field::{ALWAYS, Field};
use super::hints::{self, Never};
use super::nearest::name_nearest;
use super::plan;
use super::race::{Follows, Race};
use super::ranges::{From, LIBC, Range};
use super::referee::{Referee, Trial, decisions};
use super::rounds::{Evidence, Log, Purpose};
use super::seam::{Facts, Machine, Stage};
use super::threads;
use super::tuning::{Settings, Shown, Tuning};
use super::visits::Visits;
use cachewise::profile::{Decision, OPERATIONS};
use cachewise::{Reuse, entry};
use cachewise_experiments::LabError;
use cachewise_judge::Ratio;
use cachewise_judge::estimate::{Estimate, Scatter, Sure};
use cachewise_judge::margin::{GUARD, LAYOUTS};
use cachewise_kernels::Operation;

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
    let mut visits = Visits::new(machine, settings.seed);
    let minute = budget.min(plan::MINUTE);
    let follows = Follows { referee: REFEREE_TAKES * minute, never: NEVER_TAKES * minute };
    let mut race = Race::new(&mut visits, evidence, facts, fields, follows);
    let table = plan::has_table(budget);
    race.run(RACE_UNTIL * budget, (REFEREE_UNTIL - RACE_UNTIL) * budget, table)?;
    if table {
        race.complete(RACE_UNTIL * budget)?;
    }
    let Follows { referee: takes, never: after } = race.follows;
    let fields = race.fields;
    let entries = entries(race.evidence, &facts);
    let mut trials: Vec<Trial> = fields
        .into_iter()
        .map(|mut field| {
            field.have_entries(&entries);
            let chosen = hints::chosen(&field, &facts);
            Trial::new(field, chosen, &facts, &mut visits.random)
        })
        .collect();
    visits.machine.progress(Stage::Referee, takes + after);
    let mut referee = Referee { visits: &mut visits, evidence, facts, takes, after };
    let mut repairs = referee.run(&mut trials, REFEREE_UNTIL * budget)?;
    let (never, of_never) = referee.never(&trials, NEVER_UNTIL * budget, &mut repairs)?;
    let scripts = referee.scripts(&entries, SCRIPTS_UNTIL * budget)?;
    let seconds = visits.machine.now();
    let refereed = trials.iter().flat_map(Trial::refereed).chain(of_never).chain(scripts).collect();
    let fields: Vec<Decided> = trials
        .into_iter()
        .zip(never)
        .map(|(trial, never)| Decided { unknown: trial.ranges(), never, field: trial.field })
        .collect();
    Ok(Tuning { refereed, repairs, seconds, ..decided(&fields, entries, evidence, facts) })
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
pub(super) fn decided(
    fields: &[Decided],
    entries: Vec<(Operation, String)>,
    evidence: &Evidence,
    facts: Facts,
) -> Tuning {
    let mut tuning = Tuning {
        decisions: all_decisions(fields),
        parallel: threads::paying(evidence),
        entries,
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
        for &reuse in cachewise::profile::hints(field.operation) {
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

/// How often what a stub seems to lose beyond the guard counts.
const LOSSES: f64 = 30.0;

/// The entry stub of each operation that has a choice: the best in the mean of its scripts, of those that are
/// shown to lose in the fewest. The one in use stays unless that one is shown to be better: scripts are mostly the
/// smallest calls, and between two stubs that do those alike noise would choose.
pub(super) fn entries(evidence: &Evidence, facts: &Facts) -> Vec<(Operation, String)> {
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

/// Results that were shown.
fn shown(field: &Field) -> Vec<Shown> {
    let mut found = Vec::new();
    for (arm, competitor) in field.arms.iter().enumerate().skip(1) {
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
