//! One operation's race as it stands: who is still in it at which size, the rounds so far, and what
//! they show. Pure.

use super::plan::{self, View};
use super::ranges::{LIBC, Range, choose};
use super::rounds::{Evidence, Purpose};
use super::seam::{Cell, Class, Competitor, Destination, Facts, Layout, Sample};
use cachewise::profile::Decision;
use cachewise_kernels::Operation;
use cachewise_measure::stats::median;

#[cfg(test)]
pub(super) mod tests;

/// An arm may be slower than libc by this much in no state, as a logarithm: 2 %, of which 1 % is left
/// for what a minute cannot see until the promise of 3 % is broken.
pub(super) const GUARD: f64 = 0.02;

/// What no number of rounds removes: layouts and launches differ by this much (simulation page).
pub(super) const FLOOR: f64 = 0.004;

/// Rounds of libc as the library calls it that are taken at a size at most: twice what is plenty on a calm
/// machine. On a loud one they would take the time of the kernels.
const MOST_HANDED_OVER: usize = 16;

/// The candidate of a record's rows that is libc as the library calls it.
pub(super) const HANDED_OVER: &str = "libc.handed-over";

/// Fewer rounds show nothing.
const LEAST_ROUNDS: usize = 3;

/// Fewer rounds of one layout show nothing of it alone. Where a visit is dear they are few: judged from
/// three on, the simulated machine of 2 GB/s gained 5.1 % over libc, from six on 7.4 %.
const LAYOUT_ROUNDS: usize = 2 * LEAST_ROUNDS;

/// Standard errors by which an arm keeps the guard, or is shown to break it; with one it would be in one tuning
/// and out in the next too often. One that is in use is out only where it is shown to break it.
const NEW: f64 = 1.6;

/// An arm of the previous profile counts as this much better than it is shown.
const LOYALTY: f64 = 0.05;

/// Arms scatter as all of them together do, who run in the same weather, from so many rounds on.
const TOLD: usize = 9;

/// With fewer it is as one round of a small operation does.
const UNKNOWN: f64 = 0.05;

/// Rounds that are hosts have each arm's own error, ten times as large for one that left the race early: from
/// so many rounds of an arm on, over the sizes up to an octave away, its scatter is its own. Not in a race:
/// what few rounds have in common by luck would count for more than it is.
const OWN: usize = 40;

/// An estimate of a logarithm of time over libc's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub mean: f64,
    pub error: f64,
    pub rounds: usize,
}

impl Estimate {
    pub(super) const LIBC: Estimate = Estimate { mean: 0.0, error: 0.0, rounds: usize::MAX };
    const NOTHING: Estimate = Estimate { mean: 9.0, error: 9.0, rounds: 0 };

    /// What is held against the guard in a view: where nothing need be proven, the other end of the interval.
    pub(super) fn judged(self, view: &View) -> Estimate {
        let less = if view.proven { 0.0 } else { 2.0 * NEW * self.error };
        Estimate { mean: self.mean - less, ..self }
    }
}

/// How wide an interval is, in standard errors, that holds at every moment of a growing number of
/// rounds at once (a normal mixture's confidence sequence at 5 %).
pub(super) fn always(rounds: usize) -> f64 {
    let n = rounds.max(1) as f64;
    (2.0 * (1.0 + 1.0 / n) * ((n + 1.0).sqrt() / 0.05).ln()).sqrt()
}

/// Whether rounds have shown what they can: any number of further ones would take off a fifth of the
/// error at most, the rest being the floor. How many that needs is for the scatter to say, which is the
/// machine's.
pub(super) fn is_plenty(rounds: usize, error: f64, floor: f64) -> bool {
    // Their scatter is known.
    const ENOUGH: usize = 8;
    rounds >= ENOUGH && 0.8 * error <= floor
}

/// The same of a comparison of its own: its rounds as logarithms.
pub(super) fn has_plenty(log_ratios: &[f64]) -> bool {
    if log_ratios.is_empty() {
        return false;
    }
    let off = off_their_median(log_ratios);
    let error = (scatter(&off).powi(2) / log_ratios.len() as f64 + FLOOR.powi(2)).sqrt();
    is_plenty(log_ratios.len(), error, FLOOR)
}

/// Of values whose middle is known: how far they lie from it, as a standard deviation.
pub(super) fn scatter(deviations: &[f64]) -> f64 {
    let absolute: Vec<f64> = deviations.iter().map(|value| value.abs()).collect();
    // 1.48 is a normal's; medians of few values fall short of it by some 15 %.
    1.48 * 1.15 * median(&absolute)
}

/// How far values lie from their median.
fn off_their_median(values: &[f64]) -> Vec<f64> {
    let middle = median(values);
    values.iter().map(|value| value - middle).collect()
}

/// The mean of values, those far from the median moved nearer.
pub(super) fn robust_mean(values: &[f64]) -> f64 {
    let middle = median(values);
    if values.len() < 5 {
        return middle;
    }
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let most = (2.0 * 1.48 * median(&deviations)).max(0.01);
    let sum: f64 = values.iter().map(|v| v.clamp(middle - most, middle + most)).sum();
    sum / values.len() as f64
}

/// One operation's race.
pub(super) struct Field {
    pub operation: Operation,
    pub arms: Vec<Competitor>,
    pub sizes: Vec<usize>,
    pub views: Vec<View>,
    /// Rounds by arm, view and size: logarithms of time over libc's, between operands on lines' starts
    /// and between those at odd offsets.
    rounds: Vec<Vec<Vec<[Vec<f64>; 2]>>>,
    /// By size: the same of libc as the library calls it again and again on the same operands.
    handed_over: Vec<Vec<f64>>,
    /// The largest size where that is measured.
    handed_over_to: usize,
    /// The arm that a decision for libc comes to at small sizes ([`Facts::below_libc`]).
    pub(super) below_libc: Option<usize>,
    /// Whether an arm is still measured at a size.
    live: Vec<Vec<bool>>,
    /// Whether the referee took it out.
    pub refused: Vec<Vec<bool>>,
    /// The previous profile's arm per size.
    previous: Vec<Option<usize>>,
    /// What no number of rounds removes.
    pub floor: f64,
    /// From how many rounds on an arm's scatter is its own.
    own: usize,
}

/// What the rounds of a field show.
pub(super) struct Shows {
    /// By arm, view and size.
    pub views: Vec<Vec<Vec<Estimate>>>,
    /// By arm and size: the weighted mean over views.
    pub value: Vec<Vec<Estimate>>,
    /// By arm and size: the view with the largest loss, as estimated, or one of its layouts alone.
    pub worst: Vec<Vec<Estimate>>,
}

impl Field {
    pub(super) fn new(
        operation: Operation,
        arms: Vec<Competitor>,
        facts: &Facts,
        top: usize,
        previous: &[Decision],
    ) -> Field {
        let sizes = plan::grid(top);
        let views = plan::views(operation, facts);
        let below_libc = facts.below_libc[cachewise::entry::place(operation)];
        let table = |value: bool| vec![vec![value; sizes.len()]; arms.len()];
        let mut live = table(true);
        for (arm, live) in arms.iter().zip(&mut live).skip(1) {
            for (size, live) in sizes.iter().zip(live) {
                *live =
                    arm.class != Class::NonTemporal || plan::beyond_llc(operation, *size, facts);
            }
        }
        let previous = sizes
            .iter()
            .map(|&size| {
                let of_it = |d: &&Decision| {
                    d.operation == operation
                        && d.reuse == cachewise::Reuse::Unknown
                        && (d.from..=d.to).contains(&(size as u64))
                };
                let kernel = &previous.iter().find(of_it)?.kernel;
                arms.iter().position(|arm| arm.name == *kernel)
            })
            .collect();
        Field {
            rounds: vec![vec![vec![Default::default(); sizes.len()]; views.len()]; arms.len()],
            handed_over: vec![Vec::new(); sizes.len()],
            handed_over_to: facts.l1,
            below_libc: arms.iter().position(|arm| below_libc == Some(&*arm.name)),
            refused: table(false),
            floor: FLOOR,
            own: if facts.hosts > 1 { OWN } else { usize::MAX },
            live,
            previous,
            operation,
            arms,
            sizes,
            views,
        }
    }

    /// Told the entry stub that will be in use: what stands for libc at small sizes is its loop.
    pub(super) fn has_entry(&mut self, name: &str) {
        if self.below_libc.is_some() {
            let own = cachewise::entry::continued_by(self.operation, name);
            self.below_libc = self.arms.iter().position(|arm| own == Some(&*arm.name));
        }
    }

    /// Before the first round: these sizes and views alone.
    pub(super) fn only(&mut self, size: impl Fn(usize) -> bool, view: impl Fn(&View) -> bool) {
        let keep: Vec<bool> = self.sizes.iter().map(|at| size(*at)).collect();
        fn retain<T>(values: &mut Vec<T>, keep: &[bool]) {
            let mut keep = keep.iter();
            values.retain(|_| *keep.next().unwrap_or(&false));
        }
        retain(&mut self.sizes, &keep);
        retain(&mut self.previous, &keep);
        self.live.iter_mut().chain(&mut self.refused).for_each(|of_arm| retain(of_arm, &keep));
        self.views.retain(view);
        self.rounds = vec![
            vec![vec![Default::default(); self.sizes.len()]; self.views.len()];
            self.arms.len()
        ];
        self.handed_over = vec![Vec::new(); self.sizes.len()];
    }

    /// The same with the rounds that a record has.
    pub(super) fn remember(&mut self, evidence: &Evidence) {
        for (cell, log) in evidence.of(Purpose::Race) {
            if cell.operation != self.operation {
                continue;
            }
            for arm in 1..self.arms.len() {
                for (ours, libc) in log.pairs(&self.arms[arm].name.clone()) {
                    self.add(arm, cell, &ours, &libc);
                }
            }
            for (ours, libc) in log.pairs(HANDED_OVER) {
                self.add_handed_over(cell, &ours, &libc);
            }
        }
    }

    /// Adds a round of libc as the library calls it.
    pub(super) fn add_handed_over(&mut self, cell: &Cell, ours: &Sample, libc: &Sample) {
        let Some(size) = self.sizes.iter().position(|size| *size == cell.size) else { return };
        let log = (ours.total() / libc.total()).ln();
        self.handed_over[size].extend(Some(log).filter(|log| log.is_finite()));
    }

    /// Whether a round of a view at a size has libc in it as the library calls it: of calls on the same
    /// operands in L1, beside which everything else is slower, until it is known or known to keep the guard.
    pub(super) fn wants_handed_over(&self, view: usize, size: usize) -> bool {
        let rounds = &self.handed_over[size];
        self.views[view].destination == Destination::Repeated
            && self.sizes[size] <= self.handed_over_to
            && (rounds.len() < LEAST_ROUNDS || {
                let Estimate { mean, error, .. } = self.of_handed_over(size);
                rounds.len() < MOST_HANDED_OVER && mean + NEW * error > GUARD && !has_plenty(rounds)
            })
    }

    fn of_handed_over(&self, size: usize) -> Estimate {
        let enough = |rounds: &[f64]| rounds.len() >= LEAST_ROUNDS;
        let near = (0..self.sizes.len()).filter(|other| self.is_near(*other, size));
        let near = near.map(|other| &*self.handed_over[other]).filter(|rounds| enough(rounds));
        let off: Vec<f64> = near.flat_map(off_their_median).collect();
        let pooled = if off.len() >= TOLD { scatter(&off) } else { UNKNOWN };
        estimate(&self.handed_over[size], pooled, self.floor)
    }

    /// What a decision for libc is shown to cost at a size, as a logarithm over a direct call: the library's
    /// way to it. 0 where that is within the guard.
    pub(super) fn handed_over(&self, size: usize) -> f64 {
        let rounds = &self.handed_over[size];
        if rounds.len() < LEAST_ROUNDS {
            return 0.0;
        }
        let Estimate { mean, error, rounds } = self.of_handed_over(size);
        if mean - always(rounds) * error > GUARD { mean - error } else { 0.0 }
    }

    /// Whether an arm at that many bytes is what a decision for libc comes to there anyway.
    pub(super) fn is_libc(&self, arm: usize, bytes: usize) -> bool {
        let from = cachewise::profile::libc_from(self.operation);
        arm == LIBC || self.below_libc == Some(arm) && (bytes as u64) < from
    }

    /// Whether an arm at that many bytes is what the library does without a profile although libc is there:
    /// loops of vectors in L1 both, of which the library's is reached sooner. It is in use as libc is, so that
    /// it is out where it is shown to lose and needs no proof that it does not. What is found in the first
    /// vectors the stub finds before either.
    pub(super) fn is_default(&self, arm: usize, bytes: usize) -> bool {
        self.below_libc == Some(arm)
            && !plan::stores(self.operation)
            && bytes <= self.handed_over_to
    }

    /// What an arm is shown to lose at the least in one of the views where it counts.
    fn proven_loss(&self, shows: &Shows, arm: usize, size: usize) -> f64 {
        let views = shows.views[arm].iter().zip(&self.views);
        let proven = views.filter(|(_, view)| view.proven && view.covers(self.sizes[size]));
        proven.map(|(found, _)| found[size].mean - NEW * found[size].error).fold(0.0, f64::max)
    }

    /// What an arm may lose in a state at a size: the guard, or what libc itself loses there when the library
    /// calls it, since then no decision keeps the guard.
    pub(super) fn guard(&self, size: usize) -> f64 {
        GUARD.max(self.handed_over(size))
    }

    /// Adds an arm's round of a cell.
    pub(super) fn add(&mut self, arm: usize, cell: &Cell, ours: &Sample, libc: &Sample) {
        let Some(size) = self.sizes.iter().position(|size| *size == cell.size) else { return };
        let lying = usize::from(cell.layout == Layout::Misaligned);
        for (view, rounds) in self.views.iter().zip(&mut self.rounds[arm]) {
            let ratio = match view {
                view if view.holds(cell) => ours.total() / libc.total(),
                view if view.is_call_of(cell) => ours.operation / libc.operation,
                _ => continue,
            };
            rounds[size][lying].extend(Some(ratio.ln()).filter(|log| log.is_finite()));
        }
    }

    /// Whether a view's next turn at a size is of operands at odd offsets: every other one.
    pub(super) fn is_odd_turn(&self, view: usize, size: usize) -> bool {
        let turns =
            |lying: usize| self.rounds.iter().map(|of_arm| of_arm[view][size][lying].len()).max();
        turns(0) > turns(1)
    }

    /// Whether the previous profile names an arm at a size.
    pub(super) fn is_previous(&self, arm: usize, size: usize) -> bool {
        self.previous[size] == Some(arm)
    }

    /// The arms that are still measured at a size, without libc.
    pub(super) fn live(&self, size: usize) -> Vec<usize> {
        (1..self.arms.len()).filter(|arm| self.live[*arm][size]).collect()
    }

    pub(super) fn shows(&self) -> Shows {
        self.shows_at(&|_| true)
    }

    /// What the rounds show at sizes that `wanted` names; at others nothing.
    fn shows_at(&self, wanted: &dyn Fn(usize) -> bool) -> Shows {
        let (arms, sizes) = (self.arms.len(), self.sizes.len());
        let mut views = vec![vec![vec![Estimate::NOTHING; sizes]; self.views.len()]; arms];
        views[LIBC].fill(vec![Estimate::LIBC; sizes]);
        let mut worst =
            vec![vec![Estimate { mean: f64::NEG_INFINITY, ..Estimate::LIBC }; sizes]; arms];
        worst[LIBC].fill(Estimate::LIBC);
        let bound = |e: &Estimate| e.mean + e.error;
        for view in 0..self.views.len() {
            let deviations: Vec<Vec<Vec<f64>>> =
                (0..sizes).map(|size| self.deviations(view, size)).collect();
            for size in (0..sizes).filter(|size| wanted(self.sizes[*size])) {
                // Where the size has no part in it, what is seen at all smaller ones counts, too.
                let visited = |at: &usize| self.views[view].is_visited(self.sizes[*at]);
                let seen: Vec<usize> = match self.views[view].proven {
                    true => vec![size],
                    false => (0..=size).filter(visited).collect(),
                };
                let at = seen.last().copied().unwrap_or(size);
                let of_all = self.scatter_near(&deviations, at, 0..arms, TOLD);
                for (arm, estimates) in views.iter_mut().enumerate().skip(1) {
                    let rounds = [0, 1].map(|lying| {
                        let of = seen.iter().flat_map(|at| &self.rounds[arm][view][*at][lying]);
                        of.copied().collect::<Vec<f64>>()
                    });
                    let own = self.scatter_near(&deviations, at, arm..arm + 1, self.own);
                    let pooled = own.or(of_all).unwrap_or(UNKNOWN);
                    let whole = estimate(&rounds.concat(), pooled, self.floor);
                    estimates[view][size] = whole;
                    if !self.views[view].covers(self.sizes[size]) {
                        continue;
                    }
                    let layouts = rounds.iter().filter(|rounds| rounds.len() >= LAYOUT_ROUNDS);
                    let layouts = layouts.map(|rounds| estimate(rounds, pooled, self.floor));
                    let worst = &mut worst[arm][size];
                    *worst = layouts
                        .chain([whole])
                        .map(|estimate| estimate.judged(&self.views[view]))
                        .fold(*worst, |a, b| if bound(&b) >= bound(&a) { b } else { a });
                }
            }
        }
        let at = |arm: usize, size: usize| {
            let views = views[arm].iter().zip(&self.views);
            views.filter(move |(_, v)| v.covers(self.sizes[size])).map(move |(e, v)| (e[size], v))
        };
        let value = |arm: usize, size: usize| {
            if arm == LIBC {
                return Estimate::LIBC;
            }
            let weight: f64 = at(arm, size).map(|(_, view)| view.weight).sum();
            let mean: f64 = at(arm, size).map(|(e, view)| e.mean * view.weight).sum();
            let variance: f64 =
                at(arm, size).map(|(e, view)| (e.error * view.weight).powi(2)).sum();
            let rounds = at(arm, size).map(|(e, _)| e.rounds).min().unwrap_or(0);
            Estimate { mean: mean / weight, error: variance.sqrt() / weight, rounds }
        };
        let of_arm = |arm| (0..sizes).map(|size| value(arm, size)).collect();
        let value = (0..arms).map(of_arm).collect();
        Shows { views, value, worst }
    }

    /// How far the rounds of each arm lie from their own median, in a view at a size.
    fn deviations(&self, view: usize, size: usize) -> Vec<Vec<f64>> {
        let of_arm = |views: &Vec<Vec<[Vec<f64>; 2]>>| {
            let rounds = views[view][size].concat();
            if rounds.len() < LEAST_ROUNDS { Vec::new() } else { off_their_median(&rounds) }
        };
        self.rounds.iter().map(of_arm).collect()
    }

    /// How far rounds of these arms scatter over the sizes up to an octave away, where they are enough to tell.
    fn scatter_near(
        &self,
        deviations: &[Vec<Vec<f64>>],
        size: usize,
        arms: std::ops::Range<usize>,
        least: usize,
    ) -> Option<f64> {
        let of_sizes =
            deviations.iter().enumerate().filter(|(other, _)| self.is_near(*other, size));
        let near: Vec<f64> = of_sizes.flat_map(|(_, of)| of[arms.clone()].concat()).collect();
        (near.len() >= least).then(|| scatter(&near))
    }

    /// Whether two sizes are at most an octave apart.
    fn is_near(&self, one: usize, other: usize) -> bool {
        let (one, other) = (self.sizes[one], self.sizes[other]);
        one <= 2 * other && other <= 2 * one
    }

    /// Whether no further round can change anything at a size.
    fn settled(&self, shows: &Shows, size: usize) -> bool {
        self.live(size).iter().all(|arm| {
            // Of whole states: a layout alone, with half of the rounds, would ask for twice as many.
            let covering = shows.views[*arm].iter().zip(&self.views);
            let worst = covering
                .filter(|(_, view)| view.proven && view.covers(self.sizes[size]))
                .map(|(estimates, _)| estimates[size])
                .max_by(|a, b| (a.mean + a.error).total_cmp(&(b.mean + b.error)));
            worst.is_none_or(|worst| {
                is_plenty(shows.value[*arm][size].rounds, worst.error, self.floor)
            })
        })
    }

    /// Drops arms that are shown to be worse than another, or outside the guard, at sizes that `at`
    /// names; returns the sizes where something is left to learn. libc is never dropped, nor what is in use in
    /// its place.
    pub(super) fn eliminate(&mut self, at: &dyn Fn(usize) -> bool) -> Vec<usize> {
        // Kernels so near are as good as equal, and one of them may be wanted next door.
        const CLASS: f64 = 0.015;
        // One round shows this much.
        const HOPELESS: f64 = 0.4;
        let shows = self.shows_at(at);
        for size in (0..self.sizes.len()).filter(|size| at(self.sizes[*size])) {
            let (guard, libc) = (self.guard(size), self.handed_over(size));
            let bound = |arm: usize| {
                let (value, worst) = (shows.value[arm][size], shows.worst[arm][size]);
                let z = always(value.rounds);
                let safe = worst.rounds >= LEAST_ROUNDS && worst.mean + z * worst.error <= guard;
                if safe { value.mean + z * value.error } else { libc }
            };
            let best = (1..self.arms.len()).map(bound).fold(libc, f64::min);
            let bytes = self.sizes[size];
            let compete = |arm: &usize| !self.is_default(*arm, bytes);
            for arm in self.live(size).into_iter().filter(compete).collect::<Vec<_>>() {
                let (value, worst) = (shows.value[arm][size], shows.worst[arm][size]);
                let out = if value.rounds >= LEAST_ROUNDS {
                    value.mean - always(value.rounds) * value.error > best + CLASS
                        || worst.mean - always(worst.rounds) * worst.error > guard
                } else {
                    value.rounds > 0 && value.mean > HOPELESS
                };
                self.live[arm][size] &= !out;
            }
        }
        (0..self.sizes.len())
            .filter(|size| at(self.sizes[*size]))
            .filter(|size| !self.live(*size).is_empty() && !self.settled(&shows, *size))
            .collect()
    }

    /// What each arm costs at each size, where it is admissible: shown, and within the guard in every
    /// state by so many standard errors; or, where libc is shown to break it when the library calls it,
    /// not shown to be worse than that. In the order of preference among what is level.
    pub(super) fn costs(
        &self,
        shows: &Shows,
        class: &dyn Fn(Class) -> bool,
    ) -> Vec<Vec<Option<f64>>> {
        const PREFERENCE: f64 = 0.001;
        let handed_over: Vec<f64> =
            (0..self.sizes.len()).map(|size| self.handed_over(size)).collect();
        // Of two that are in use neither need be shown to be worse.
        let libc = |size: usize| match self.below_libc {
            Some(arm) if self.is_default(arm, self.sizes[size]) => {
                let known = self.handed_over[size].len() >= LEAST_ROUNDS;
                if known { self.of_handed_over(size).mean.max(0.0) } else { 0.0 }
            }
            _ => handed_over[size],
        };
        let cost = |arm: usize, size: usize| {
            if self.is_libc(arm, self.sizes[size]) {
                return Some(libc(size));
            }
            let (value, worst) = (shows.value[arm][size], shows.worst[arm][size]);
            let libc = handed_over[size];
            let default = self.is_default(arm, self.sizes[size]);
            let in_use = default || self.is_previous(arm, size);
            let guarded = worst.mean + NEW * worst.error <= GUARD
                || libc > 0.0 && worst.mean - worst.error <= libc
                || in_use && self.proven_loss(shows, arm, size) <= GUARD.max(libc);
            let admissible = class(self.arms[arm].class)
                && value.rounds >= LEAST_ROUNDS
                && guarded
                && !self.refused[arm][size];
            let loyalty = match self.previous[size] {
                Some(LIBC) => LOYALTY,
                Some(previous) if previous == arm => -LOYALTY,
                _ => 0.0,
            };
            let error = if default { 0.0 } else { value.error };
            admissible.then_some(value.mean + error + loyalty + PREFERENCE * arm as f64)
        };
        let of_arm = |arm| (0..self.sizes.len()).map(|size| cost(arm, size)).collect();
        (0..self.arms.len()).map(of_arm).collect()
    }

    /// The temporal kernel that loses least to libc over a range, where every size of it was measured.
    pub(super) fn nearest(&self, range: &Range) -> Option<String> {
        let sizes = || {
            let inside =
                |size: &usize| (range.from..=range.to).contains(&(self.sizes[*size] as u64));
            (0..self.sizes.len()).filter(inside)
        };
        let loss = |arm: &usize| -> f64 {
            let of = |(view, size): (usize, usize)| match self.rounds[*arm][view][size]
                .concat()
                .as_slice()
            {
                [] => f64::INFINITY,
                rounds => median(rounds).max(0.0),
            };
            let views = |size: usize| {
                let covers = move |view: &usize| self.views[*view].covers(self.sizes[size]);
                (0..self.views.len()).filter(covers).map(move |view| (view, size))
            };
            sizes().flat_map(views).map(of).sum()
        };
        sizes().next()?;
        (1..self.arms.len())
            .filter(|arm| self.arms[*arm].class != Class::NonTemporal)
            .map(|arm| (loss(&arm), arm))
            .filter(|(loss, _)| loss.is_finite())
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, arm)| self.arms[arm].name.clone())
    }

    /// The temporal arm per size, in at most so many ranges.
    pub(super) fn temporal(&self, shows: &Shows, most: usize) -> Vec<usize> {
        let costs = self.costs(shows, &|class| class != Class::NonTemporal);
        choose(&costs, self.below_libc, &self.sizes, most)
    }
}

fn estimate(rounds: &[f64], pooled: f64, floor: f64) -> Estimate {
    let n = rounds.len();
    if n == 0 {
        return Estimate::NOTHING;
    }
    let variance = if n >= 4 {
        0.6 * pooled.powi(2) + 0.4 * scatter(&off_their_median(rounds)).powi(2)
    } else {
        pooled.powi(2)
    };
    let error = (variance / n as f64 + floor.powi(2)).sqrt();
    Estimate { mean: robust_mean(rounds), error, rounds: n }
}
