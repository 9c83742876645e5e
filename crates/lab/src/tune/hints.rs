//! The hints: from what size on non-temporal stores pay, one number each. Pure but for the rounds.
//!
//! What is compared is a difference of totals (operation and reader, or operation and bystander)
//! over the time of libc's operation: a ratio would have a denominator that a bystander's noise can
//! bring near 0.

use super::field::{Estimate, Field, GUARD, Shows, robust_mean, scatter};
use super::plan::{self, weights};
use super::ranges::Range;
use super::rounds::{Evidence, Purpose};
use super::seam::{After, Cell, Class, Destination, Facts};
use cachewise_kernels::Operation;

/// A non-temporal kernel, and from what size of the grid on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct From {
    pub size: usize,
    pub arm: usize,
}

/// The non-temporal arms of a field.
pub(super) fn non_temporal(field: &Field) -> Vec<usize> {
    (1..field.arms.len()).filter(|arm| field.arms[*arm].class == Class::NonTemporal).collect()
}

/// The sizes of bystander cells: octaves.
pub(super) fn sizes(field: &Field) -> Vec<usize> {
    let octaves = field.sizes.iter().copied().filter(|size| size.is_power_of_two());
    octaves.filter(|size| *size >= plan::NON_TEMPORAL_FROM).collect()
}

/// A bystander's cell: half of the cache is somebody else's working set. The destination is cached in
/// every other round.
pub(super) fn cell(operation: Operation, size: usize, facts: &Facts, odd: bool) -> Cell {
    let destination = if odd { Destination::Cached } else { Destination::Evicted };
    let after = After::Bystander(facts.cache() / 2);
    Cell { after, ..Cell::new(operation, size, destination) }
}

/// Of one size: total of the arm less another's, over libc's operation.
struct Difference {
    to_temporal: Estimate,
    to_libc: Estimate,
}

fn estimate(values: &[f64]) -> Estimate {
    let mean = robust_mean(values);
    let deviations: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let error = (scatter(&deviations).powi(2) / values.len() as f64 + 0.004f64.powi(2)).sqrt();
    Estimate { mean, error, rounds: values.len() }
}

/// What the rounds beside a bystander say of an arm at a size, against libc and against the best temporal
/// one that took part; `None` for too few.
fn beside(evidence: &Evidence, field: &Field, size: usize, arm: usize) -> Option<Difference> {
    let (mut to_temporal, mut to_libc) = (Vec::new(), Vec::new());
    for (cell, log) in evidence.of(Purpose::Hints) {
        if cell.operation != field.operation || cell.size != size {
            continue;
        }
        let temporal: Vec<&String> = field
            .arms
            .iter()
            .filter(|arm| !matches!(arm.class, Class::Libc | Class::NonTemporal))
            .map(|arm| &arm.name)
            .collect();
        for (round, libc) in log.reference.iter().enumerate() {
            let at = |name: &String| log.others.get(name)?.get(round).copied().flatten();
            let Some(ours) = at(&field.arms[arm].name) else { continue };
            let totals = temporal.iter().filter_map(|name| Some(at(name)?.total()));
            let theirs = totals.fold(libc.total(), f64::min);
            to_libc.push((ours.total() - libc.total()) / libc.operation);
            to_temporal.push((ours.total() - theirs) / libc.operation);
        }
    }
    const LEAST: usize = 4;
    (to_temporal.len() >= LEAST)
        .then(|| Difference { to_temporal: estimate(&to_temporal), to_libc: estimate(&to_libc) })
}

/// The cut with the least sum of gains above it: a non-temporal arm and the first size from which on it is
/// shown to gain in all, and to lose to libc nowhere. `gain(arm, size)` is a bound over libc's
/// operation, negative where it gains; `None` where it loses to libc or was not shown.
fn cut(
    arms: &[usize],
    sizes: &[usize],
    gain: impl Fn(usize, usize) -> Option<f64>,
) -> Option<From> {
    // As much as any change of arm has to gain.
    let mut best = (-0.06, None);
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
pub(super) fn soon(field: &Field, shows: &Shows, temporal: &[usize]) -> Option<From> {
    let costs = field.costs(shows, &|class| class == Class::NonTemporal);
    cut(&non_temporal(field), &field.sizes, |arm, size| {
        let size = field.sizes.iter().position(|other| *other == size)?;
        let temporal = shows.value[temporal[size]][size].mean;
        costs[arm][size].map(|cost| cost - temporal)
    })
}

/// Under `never`: operation and bystander.
pub(super) fn never(field: &Field, evidence: &Evidence) -> Option<From> {
    cut(&non_temporal(field), &sizes(field), |arm, size| {
        let Difference { to_temporal, to_libc } = beside(evidence, field, size, arm)?;
        (to_libc.mean + to_libc.error <= GUARD)
            .then_some(to_temporal.mean + 2.0 * to_temporal.error)
    })
}

/// The ranges up to a size, and one arm from there on.
pub(super) fn with_tail(below: &[Range], from: From) -> Vec<Range> {
    let size = from.size as u64;
    let mut ranges: Vec<Range> = below.iter().copied().filter(|range| range.from < size).collect();
    if let Some(last) = ranges.last_mut() {
        last.to = size - 1;
    }
    ranges.push(Range { from: size, to: u64::MAX, arm: from.arm });
    ranges
}

/// The two non-temporal arms that did best beside a bystander so far.
pub(super) fn finalists(field: &Field, evidence: &Evidence) -> Vec<usize> {
    let mut scored: Vec<(f64, usize)> = non_temporal(field)
        .into_iter()
        .map(|arm| {
            let mut sum = (0.0, 0.0);
            for (cell, log) in evidence.of(Purpose::Hints) {
                if cell.operation == field.operation {
                    for (ours, libc) in log.pairs(&field.arms[arm].name) {
                        // Where they are out of place they are so all alike.
                        let over = (ours.total() - libc.total()) / libc.operation;
                        sum = (sum.0 + over.clamp(-1.0, 0.2), sum.1 + 1.0);
                    }
                }
            }
            (if sum.1 > 0.0 { sum.0 / sum.1 } else { 9.0 }, arm)
        })
        .collect();
    scored.sort_by(|a, b| a.0.total_cmp(&b.0));
    scored.into_iter().take(2).map(|(_, arm)| arm).collect()
}
