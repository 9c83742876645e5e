//! The hints: from what size on non-temporal stores pay, one number each. Pure.
//!
//! Compared is a difference of totals (operation and reader, or operation and bystander)
//! over the time of libc's operation: a ratio would have a denominator that a bystander's noise can
//! bring near 0.

use super::field::Field;
use super::plan::{self, weights};
use super::ranges::{From, MOST_RANGES, Range, SWITCH, most_ranges, ranges};
use super::rounds::{Evidence, Purpose};
use super::seam::{After, Class, Destination, Facts, Sample, TuningCell};
use cachewise_judge::estimate::{Estimate, Middle, Scatter, Sure};
use cachewise_judge::margin::{GUARD, LAYOUTS, LEAST_BESIDE};
use cachewise_kernels::Operation;
use cachewise_measure::stats::median;

#[cfg(test)]
mod tests;

/// Default under `never` without a profile, less the sizes at which it is shown to lose to libc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Untuned {
    pub from: From,
    /// The first and the last of the sizes that it lost, up to half an octave above.
    pub lost: Vec<(usize, usize)>,
}

impl Untuned {
    fn has(&self, size: usize) -> bool {
        let is_lost = self.lost.iter().any(|(first, last)| (*first..=*last).contains(&size));
        size >= self.from.size && !is_lost
    }

    /// The ranges that it has.
    fn parts(&self) -> Vec<(u64, u64)> {
        let (mut parts, mut from) = (Vec::new(), self.from.size);
        for &(first, last) in &self.lost {
            if first > from {
                parts.push((from as u64, first as u64 - 1));
            }
            from = last.saturating_add(1);
        }
        if from < usize::MAX {
            parts.push((from as u64, u64::MAX));
        }
        parts
    }
}

/// The non-temporal kernels of an operation under `never`: what is done without a profile, as far as it was not shown to
/// lose, and what was shown to gain over libc. That was not compared with the default, which therefore stands before it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Never {
    pub default: Option<Untuned>,
    pub shown: Option<From>,
}

impl Never {
    /// The non-temporal arm at a size.
    pub(super) fn at(&self, size: usize) -> Option<From> {
        let default = self.default.as_ref().filter(|default| default.has(size));
        default.map(|default| default.from).or(self.shown.filter(|from| from.size <= size))
    }

    /// The first size that is done by a non-temporal arm.
    pub(super) fn first(&self) -> Option<From> {
        let default = self.default.as_ref().map(|default| default.from);
        [default, self.shown].into_iter().flatten().min_by_key(|from| from.size)
    }

    /// The ranges of `unknown` with these kernels.
    pub(super) fn over(&self, unknown: &[Range]) -> Vec<Range> {
        let mut ranges = with_tail(unknown, self.shown);
        if let Some(default) = &self.default {
            for (from, to) in default.parts() {
                ranges = laid_over(&ranges, Range { from, to, arm: default.from.arm });
            }
        }
        ranges
    }
}

/// The ranges with one laid over them.
fn laid_over(ranges: &[Range], over: Range) -> Vec<Range> {
    let below = ranges.iter().filter(|range| range.from < over.from);
    let below =
        below.map(|range| Range { to: range.to.min(over.from.saturating_sub(1)), ..*range });
    let above = ranges.iter().filter(|range| range.to > over.to);
    let above =
        above.map(|range| Range { from: range.from.max(over.to.saturating_add(1)), ..*range });
    below.chain([over]).chain(above).collect()
}

/// The non-temporal arms of a field.
pub(super) fn non_temporal(field: &Field) -> Vec<usize> {
    (1..field.arms.len()).filter(|arm| field.arms[*arm].class == Class::NonTemporal).collect()
}

/// The arm per size where nothing is known about reuse: temporal ranges, and one non-temporal arm from
/// some size on where that is shown to pay.
pub(super) fn chosen(field: &Field, facts: &Facts) -> Vec<usize> {
    let extends = plan::extends(facts, &field.sizes);
    let mut most = most_ranges(extends);
    loop {
        let mut chosen = field.temporal(most);
        if let Some(from) = soon(field, &chosen) {
            for (arm, size) in chosen.iter_mut().zip(&field.sizes) {
                if *size >= from.size {
                    *arm = from.arm;
                }
            }
        }
        if most == 1 || ranges(&field.sizes, &chosen, &[], extends).len() <= MOST_RANGES {
            return chosen;
        }
        most -= 1;
    }
}

/// The sizes of bystander cells, ascending: octaves, and every other one down from the largest where
/// the race's own sizes lie wider apart.
pub(super) fn sizes(field: &Field) -> Vec<usize> {
    let octaves = field.sizes.iter().copied().filter(|size| size.is_power_of_two());
    let mut sizes: Vec<usize> = octaves.filter(|size| *size >= plan::NON_TEMPORAL_FROM).collect();
    let (top, half_octaves_to) =
        (sizes.last().map_or(0, |top| top.ilog2()), half_octaves_to(field));
    sizes.retain(|size| *size <= half_octaves_to || (top - size.ilog2()).is_multiple_of(2));
    sizes
}

fn half_octaves_to(field: &Field) -> usize {
    plan::half_octaves_to(field.sizes.last().copied().unwrap_or(0))
}

/// A bystander's cell, as the promise of `never` has it: source and destination are in memory, and half of the cache is
/// somebody else's working set.
pub(super) fn cell(operation: Operation, size: usize, facts: &Facts) -> TuningCell {
    let destination = Destination::Evicted;
    let after = After::Bystander(facts.cache() / 2);
    TuningCell { after, ..TuningCell::new(operation, size, destination) }
}

/// The rounds of an arm beside a bystander at a size: its total less that of the best temporal one that took part,
/// and less libc's, over libc's operation.
fn rounds(field: &Field, evidence: &Evidence, size: usize, arm: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut to_temporal, mut to_libc) = (Vec::new(), Vec::new());
    for (cell, log) in evidence.of(Purpose::Hints) {
        if cell.operation != field.operation || cell.size != size {
            continue;
        }
        let Some(ours) = log.others.get(&field.arms[arm].name) else { continue };
        let temporal = field.arms.iter().filter(|arm| arm.class != Class::NonTemporal);
        let temporal: Vec<_> = temporal.filter_map(|arm| log.others.get(&arm.name)).collect();
        for (round, (ours, libc)) in ours.iter().zip(&log.reference).enumerate() {
            let Some(ours) = ours else { continue };
            let theirs = temporal.iter().filter_map(|other| other.get(round).copied().flatten());
            let theirs = theirs.map(|other| other.total()).fold(libc.total(), f64::min);
            to_libc.push((ours.total() - libc.total()) / libc.operation);
            to_temporal.push((ours.total() - theirs) / libc.operation);
        }
    }
    (to_temporal, to_libc)
}

/// Estimates of the rounds; `None` for too few.
fn beside(field: &Field, evidence: &Evidence, size: usize, arm: usize) -> Option<[Estimate; 2]> {
    let rounds: [Vec<f64>; 2] = rounds(field, evidence, size, arm).into();
    (rounds[0].len() >= LEAST_BESIDE).then(|| rounds.map(|values| Estimate::of(&values, LAYOUTS)))
}

/// The cut with the least sum of gains above it: a non-temporal arm and the first size from which on it is
/// shown to gain in all, and to lose to libc nowhere. `gain(arm, size)` is a bound over libc's
/// operation, negative where it gains; `None` where it loses to libc or was not shown.
fn cut(
    arms: &[usize],
    sizes: &[usize],
    gain: impl Fn(usize, usize) -> Option<f64>,
) -> Option<From> {
    let mut best = (-SWITCH, None);
    let weights = if sizes.is_empty() { Vec::new() } else { weights(sizes) };
    for &arm in arms {
        let mut sum = 0.0;
        for (at, &size) in sizes.iter().enumerate().rev() {
            let Some(here) = gain(arm, size) else { break };
            sum += here * weights[at];
            if here < 0.0 && sum < best.0 {
                best = (sum, Some(From { size, arm }));
            }
        }
    }
    best.1
}

/// Under `soon`, and where nothing is known: operation and reader, in the race's own cells.
pub(super) fn soon(field: &Field, temporal: &[usize]) -> Option<From> {
    cut(&non_temporal(field), &field.sizes, |arm, size| {
        let size = field.at(size)?;
        field.cost(arm, size).map(|cost| cost - field.value(temporal[size], size).mean)
    })
}

/// Under `never`: operation and bystander.
pub(super) fn never(field: &Field, evidence: &Evidence) -> Option<From> {
    cut(&non_temporal(field), &sizes(field), |arm, size| {
        let [to_temporal, to_libc] = beside(field, evidence, size, arm)?;
        to_libc.keeps(GUARD, Sure::Seems).then_some(to_temporal.high(Sure::Shown))
    })
}

/// Default under `never` without a profile, less its proven losses: what is not shown leaves it as it is.
pub(super) fn default(field: &Field, evidence: &Evidence) -> Option<Untuned> {
    let from = field.never?;
    let seen =
        [Purpose::Hints, Purpose::Never].into_iter().flat_map(|purpose| evidence.of(purpose));
    let seen = seen.filter(|(cell, _)| cell.operation == field.operation);
    let mut all: Vec<usize> = seen.map(|(cell, _)| cell.size).chain(sizes(field)).collect();
    all.retain(|size| *size >= from.size);
    all.sort_unstable();
    all.dedup();
    let is_lost = |size: &usize| loses(field, evidence, *size, from.arm);
    let runs = all.chunk_by(|one, other| is_lost(one) == is_lost(other));
    let lost = runs.filter(|run| is_lost(&run[0])).map(|run| {
        let last = run[run.len() - 1];
        let next = all.iter().find(|size| **size > last);
        // Not half an octave beyond: that was not shown.
        (run[0], next.map_or(usize::MAX, |next| (next - 1).min(last + last / 2 - 1)))
    });
    Some(Untuned { from, lost: lost.collect() })
}

/// Returns whether an arm is shown to lose to libc beside a bystander, in the race and under the referee, however often that was
/// asked.
fn loses(field: &Field, evidence: &Evidence, size: usize, arm: usize) -> bool {
    let name = &field.arms[arm].name;
    let logs =
        [Purpose::Hints, Purpose::Never].into_iter().flat_map(|purpose| evidence.of(purpose));
    let here = logs.filter(|(cell, _)| cell.operation == field.operation && cell.size == size);
    let over = |(ours, libc): (Sample, Sample)| (ours.total() - libc.total()) / libc.operation;
    let values: Vec<f64> = here.flat_map(|(_, log)| log.pairs(name).map(over)).collect();
    let seen = Estimate::of(&values, LAYOUTS);
    // The larger of two errors: few values can lie near each other by chance, but for one of them.
    let error = seen.error.max(Middle::with_tail(&values).own(LAYOUTS).error);
    let seen = Estimate { error, ..seen };
    seen.rounds >= LEAST_BESIDE && seen.is_above(GUARD, Sure::Always(Scatter::Own))
}

/// The ranges up to a size, and one arm from there on, where there is one.
pub(super) fn with_tail(below: &[Range], from: Option<From>) -> Vec<Range> {
    let Some(from) = from else { return below.to_vec() };
    let size = from.size as u64;
    let mut ranges: Vec<Range> = below.iter().copied().filter(|range| range.from < size).collect();
    if let Some(last) = ranges.last_mut() {
        last.to = size - 1;
    }
    ranges.push(Range { from: size, to: u64::MAX, arm: from.arm });
    ranges
}

/// Rounds after which a difference is as known as it will be.
const MOST_ROUNDS: usize = 8;
/// Rounds of all non-temporal arms at one size; the best goes on alone.
const HEATS: usize = 2;

/// Rounds after which a default that seems to lose stays all the same.
const MOST_OF_DEFAULT: usize = 16;

/// Next measurement beside a bystander: a size, and the non-temporal arms. What may gain first, then what may be lost
/// by what is done without a profile.
pub(super) fn next(field: &Field, evidence: &Evidence) -> Option<(usize, Vec<usize>)> {
    gaining(field, evidence).or_else(|| losing(field, evidence))
}

/// A size at which it is open whether the default loses.
fn losing(field: &Field, evidence: &Evidence) -> Option<(usize, Vec<usize>)> {
    let default = field.never?;
    let is_open = |size: &usize| match beside(field, evidence, *size, default.arm) {
        None => true,
        Some([_, to_libc]) => {
            to_libc.rounds < MOST_OF_DEFAULT
                && to_libc.is_above(GUARD, Sure::Seems)
                && !loses(field, evidence, *size, default.arm)
        }
    };
    let size = sizes(field).into_iter().filter(|size| *size >= default.size).find(is_open)?;
    Some((size, vec![default.arm]))
}

/// Next measurement where a gain is open: first all non-temporal arms at one
/// size; then the best from the largest size downwards, as far as it does not lose. A number holds for
/// every size above it, so that a size says nothing while one above it is open.
fn gaining(field: &Field, evidence: &Evidence) -> Option<(usize, Vec<usize>)> {
    let sizes = sizes(field);
    let pivot = *sizes.iter().rfind(|size| **size <= half_octaves_to(field))?;
    let arms = non_temporal(field);
    let best = match arms[..] {
        [] => return None,
        [only] => only,
        _ => match best(field, evidence, &arms, pivot) {
            Some(best) => best,
            None => return Some((pivot, arms)),
        },
    };
    for &size in sizes.iter().rev() {
        let Some([to_temporal, to_libc]) = beside(field, evidence, size, best) else {
            return Some((size, vec![best]));
        };
        let worse = to_temporal.is_above(0.0, Sure::Shown) || to_libc.is_above(GUARD, Sure::Shown);
        let better = to_temporal.high(Sure::Shown) < 0.0 && to_libc.keeps(GUARD, Sure::Seems);
        if !worse && !better && to_libc.rounds < MOST_ROUNDS {
            return Some((size, vec![best]));
        }
        if !better {
            return None;
        }
    }
    None
}

/// The non-temporal arm that did best at a size; `None` until all had their rounds there.
fn best(field: &Field, evidence: &Evidence, arms: &[usize], size: usize) -> Option<usize> {
    let score = |arm: usize| {
        let (_, to_libc) = rounds(field, evidence, size, arm);
        (to_libc.len() >= HEATS).then(|| median(&to_libc))
    };
    let scores: Option<Vec<(f64, usize)>> =
        arms.iter().map(|&arm| Some((score(arm)?, arm))).collect();
    scores?.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, arm)| arm)
}
