//! One operation's race as it stands: who is still in it at which size, the rounds so far, and what
//! they show. Pure.

use super::plan::{self, View};
use super::ranges::{From, LIBC, choose};
use super::rounds::{Evidence, Purpose};
use super::seam::{Class, Competitor, Destination, Facts, Layout, Sample, TuningCell};
use cachewise::profile::{Decision, OR_LIBC};
use cachewise_judge::estimate::{Estimate, Middle, Scatter, Sure, away, deviation};
use cachewise_judge::interval::paired;
use cachewise_judge::margin::{EQUAL, GUARD, HEADLINE, HOPELESS, IN_FORCE, LAYOUTS};
use cachewise_judge::race;
use cachewise_kernels::Operation;
use cachewise_measure::stats::median;
use std::cell::OnceCell;

#[cfg(test)]
pub(super) mod tests;

/// Rounds of libc as the library calls it that are taken at a size at most: twice what is plenty on a calm
/// machine. On a loud one they would take the time of the kernels.
const MOST_HANDED_OVER: usize = 16;

/// The candidate of a record's rows that is libc as the library calls it.
pub(super) const HANDED_OVER: &str = "libc.handed-over";

/// Shown at every moment of a race, where the error is that of all arms together.
pub(super) const ALWAYS: Sure = Sure::Always(Scatter::Pooled);

/// Fewer rounds show nothing.
const LEAST_ROUNDS: usize = Scatter::Pooled.least_rounds();

/// Below a page nothing is aliased, and a test of the operands is a part of the call.
const LOOKS_FROM: usize = 4096;

/// Fewer rounds of one layout show nothing of it alone. Where a visit is dear they are few: judged from
/// three on, the simulated machine of 2 GB/s gained 5.1 % over libc, from six on 7.4 %.
const LAYOUT_ROUNDS: usize = 2 * LEAST_ROUNDS;

/// The number of rounds of all candidates from which the scatter of one is pooled with theirs: they share the machine's
/// noise.
const POOLED_FROM: usize = 9;

/// With fewer it is as one round of a small operation does.
const UNKNOWN: f64 = 0.05;

/// Rounds that are hosts have each arm's own error, ten times as large for one that left the race early: from
/// so many rounds of an arm on, over the sizes up to an octave away, its scatter is its own. Not in a race:
/// what few rounds have in common by luck would count for more than it is.
const OWN: usize = 40;

/// The rounds of one arm in one view at one size, and what was worked out from them since the last one.
#[derive(Clone, Default)]
pub(super) struct CellRounds {
    /// Logarithms of time over libc's, between operands on lines' starts.
    aligned: Vec<f64>,
    /// Logarithms between operands at odd offsets.
    odd: Vec<f64>,
    /// The middles of each layout, and of all rounds.
    middles: OnceCell<[Middle; 3]>,
    /// Distances of all of them from their median.
    off: OnceCell<Vec<f64>>,
}

impl CellRounds {
    /// The rounds of a layout.
    fn of(&self, is_odd: bool) -> &[f64] {
        if is_odd { &self.odd } else { &self.aligned }
    }

    /// Adds a round; one without a logarithm is none.
    fn add(&mut self, ratio: f64, is_odd: bool) {
        let rounds = if is_odd { &mut self.odd } else { &mut self.aligned };
        rounds.extend(Some(ratio.ln()).filter(|log| log.is_finite()));
        self.middles.take();
        self.off.take();
    }

    fn off(&self) -> &[f64] {
        self.off.get_or_init(|| off_median(&[&*self.aligned, &*self.odd].concat()))
    }
}

/// One operation's race.
pub(super) struct Field {
    pub operation: Operation,
    pub arms: Vec<Competitor>,
    pub sizes: Vec<usize>,
    pub views: Vec<View>,
    /// By arm, the kernel that does what libc does not, where the operands decide between them.
    or_libc: Vec<Option<usize>>,
    /// Rounds by measured arm, view and size.
    rounds: Vec<Vec<Vec<CellRounds>>>,
    /// Results of each arm by view and size, kept until other rounds come.
    seen: Vec<Vec<OnceCell<Vec<Seen>>>>,
    /// By size: the rounds of libc as the library calls it again and again on the same operands.
    handed_over: Vec<Vec<f64>>,
    /// The non-temporal arm that is called under `never` where no profile decides, and its first size.
    pub never: Option<From>,
    /// The largest size where that is measured.
    handed_over_to: usize,
    /// The arm that a decision for libc comes to at small sizes ([`Facts::below_libc`]).
    pub(super) below_libc: Option<usize>,
    /// True for an arm that is still measured at a size.
    live: Vec<Vec<bool>>,
    /// True for an arm that the referee took out.
    pub refused: Vec<Vec<bool>>,
    /// The previous profile's arm per size.
    previous: Vec<Option<usize>>,
    /// From how many rounds on an arm's scatter is its own.
    own: Option<usize>,
}

/// Result of an arm's rounds in a view at a size.
#[derive(Clone, Copy)]
struct Seen {
    whole: Estimate,
    /// Estimate that is held against the guard: all of them, or those of one layout.
    worst: Estimate,
    /// Estimate of operands at odd offsets alone.
    odd: Estimate,
    /// Estimates of operands on lines and at odd offsets, at this size alone.
    layouts: [Estimate; 2],
}

impl Seen {
    /// Results where libc does the calls whose operands are on lines.
    fn or_libc(self, view: &View) -> Seen {
        if view.layout != Layout::Aligned {
            return self;
        }
        let odd = self.odd;
        let half = [(Estimate { rounds: odd.rounds, ..Estimate::REFERENCE }, 1.0), (odd, 1.0)];
        let whole = Estimate::mean(half.into_iter());
        let layouts = [Estimate::REFERENCE, self.layouts[1]];
        Seen { whole, worst: view.judged(odd).worse(view.judged(whole)), odd, layouts }
    }
}

/// The arms, and behind them those that leave to libc what is aligned; by arm the kernel of these.
fn with_those_that_look_at_operands(
    arms: Vec<Competitor>,
) -> (Vec<Competitor>, Vec<Option<usize>>) {
    let mut or_libc = vec![None; arms.len()];
    let mut all = arms.clone();
    for (nth, arm) in arms.into_iter().enumerate() {
        let kernel = cachewise_kernels::find(&arm.name);
        if kernel.is_some_and(cachewise::may_look_at_operands) {
            all.push(Competitor { name: arm.name + OR_LIBC, ..arm });
            or_libc.push(Some(nth));
        }
    }
    (all, or_libc)
}

impl Field {
    /// A race at these sizes, in these views.
    pub(super) fn new(
        operation: Operation,
        arms: Vec<Competitor>,
        (sizes, views): (Vec<usize>, Vec<View>),
        facts: &Facts,
        previous: &[Decision],
    ) -> Field {
        let below_libc = facts.below_libc[cachewise::entry::place(operation)];
        let measured = arms.len();
        let (arms, or_libc) = with_those_that_look_at_operands(arms);
        let competes = |arm: &Competitor, size: usize| {
            arm.class != Class::NonTemporal || plan::beyond_llc(operation, size, facts)
        };
        let live = arms
            .iter()
            .enumerate()
            .map(|(nth, arm)| {
                sizes.iter().map(|size| nth < measured && competes(arm, *size)).collect()
            })
            .collect();
        let previous = sizes.iter().map(|&size| {
            let of_it = |d: &&Decision| {
                d.operation == operation
                    && d.reuse == cachewise::Reuse::Unknown
                    && (d.from..=d.to).contains(&(size as u64))
            };
            let kernel = &previous.iter().find(of_it)?.kernel;
            arms.iter().position(|arm| arm.name == *kernel)
        });
        Field {
            rounds: vec![vec![vec![CellRounds::default(); sizes.len()]; views.len()]; measured],
            seen: vec![vec![OnceCell::new(); sizes.len()]; views.len()],
            handed_over: vec![Vec::new(); sizes.len()],
            handed_over_to: facts.l1,
            never: facts.never[cachewise::entry::place(operation)].and_then(|(name, size)| {
                let arm = arms.iter().position(|arm| arm.name == name)?;
                Some(From { size, arm })
            }),
            below_libc: arms.iter().position(|arm| below_libc == Some(&*arm.name)),
            refused: vec![vec![false; sizes.len()]; arms.len()],
            own: (facts.hosts > 1).then_some(OWN),
            live,
            or_libc,
            previous: previous.collect(),
            operation,
            arms,
            sizes,
            views,
        }
    }

    /// Adds the rounds that a record has.
    pub(super) fn remember(&mut self, evidence: &Evidence) {
        for (cell, log) in evidence.of(Purpose::Race) {
            if cell.operation != self.operation {
                continue;
            }
            for arm in 1..self.rounds.len() {
                for (ours, libc) in log.pairs(&self.arms[arm].name.clone()) {
                    self.add(arm, cell, &ours, &libc);
                }
            }
            for (ours, libc) in log.pairs(HANDED_OVER) {
                self.add_handed_over(cell, &ours, &libc);
            }
        }
    }

    /// The kernels that are measured themselves, with their numbers.
    pub(super) fn measured(&self) -> impl Iterator<Item = (usize, &Competitor)> {
        self.arms.iter().enumerate().take(self.rounds.len()).skip(1)
    }

    /// The position of a size of the grid.
    pub(super) fn at(&self, size: usize) -> Option<usize> {
        self.sizes.iter().position(|other| *other == size)
    }

    /// Adds a round of libc as the library calls it.
    pub(super) fn add_handed_over(&mut self, cell: &TuningCell, ours: &Sample, libc: &Sample) {
        let Some(size) = self.at(cell.size) else { return };
        let log = (ours.total() / libc.total()).ln();
        self.handed_over[size].extend(Some(log).filter(|log| log.is_finite()));
    }

    /// Adds an arm's round of a cell.
    pub(super) fn add(&mut self, arm: usize, cell: &TuningCell, ours: &Sample, libc: &Sample) {
        let Some(size) = self.at(cell.size) else { return };
        let is_odd = cell.layout == Layout::Misaligned;
        for nth in 0..self.views.len() {
            let view = &self.views[nth];
            let ratio = match view {
                view if view.holds(cell) => ours.total() / libc.total(),
                view if view.is_call_of(cell) => ours.operation / libc.operation,
                _ => continue,
            };
            self.rounds[arm][nth][size].add(ratio, is_odd);
            for other in 0..self.sizes.len() {
                if !view.proven || self.is_near(other, size) {
                    self.seen[nth][other].take();
                }
            }
        }
    }

    /// Returns whether a round of a view at a size has libc in it as the library calls it: of calls on the same
    /// operands in L1, beside which everything else is slower, until it is known or known to keep the guard.
    pub(super) fn wants_handed_over(&self, view: usize, size: usize) -> bool {
        let rounds = &self.handed_over[size];
        self.views[view].destination == Destination::Repeated
            && self.sizes[size] <= self.handed_over_to
            && (rounds.len() < LEAST_ROUNDS
                || rounds.len() < MOST_HANDED_OVER
                    && !self.of_handed_over(size).keeps(GUARD, Sure::Likely)
                    && !Middle::of(rounds).own(LAYOUTS).is_plenty(LAYOUTS))
    }

    fn of_handed_over(&self, size: usize) -> Estimate {
        let near = self.near(size).flat_map(|other| off_median(&self.handed_over[other]));
        let pooled = pooled(&near.collect::<Vec<_>>(), POOLED_FROM).unwrap_or(UNKNOWN);
        Middle::of(&self.handed_over[size]).pooled(pooled, LAYOUTS)
    }

    /// Proven cost of a decision for libc at a size, as a logarithm over a direct call: the library's
    /// way to it. 0 where that is within the guard.
    pub(super) fn handed_over(&self, size: usize) -> f64 {
        if self.handed_over[size].len() < LEAST_ROUNDS {
            return 0.0;
        }
        let seen = self.of_handed_over(size);
        if seen.is_above(GUARD, ALWAYS) { seen.low(Sure::Seems) } else { 0.0 }
    }

    /// Loss (logarithm) above which no profile names a kernel in a view, however much it gains in others: a headline;
    /// where calls of libc through the library were measured, what these lose, since libc would lose it as well.
    fn most_lost(view: &View, handed_over: f64) -> f64 {
        let headline = (1.0 + HEADLINE).ln();
        match view.destination {
            Destination::Repeated => headline.max(handed_over),
            _ => headline,
        }
    }

    /// Returns whether the figure that is printed of the referee's rounds of a cell is such a loss: no profile is written
    /// with one, however the rounds scatter. Of few rounds that is not their median.
    pub(super) fn is_lost(view: &View, handed_over: f64, rounds: &[f64]) -> bool {
        let ratios: Vec<f64> = rounds.iter().map(|log| log.exp()).collect();
        paired(&ratios).median.ln() > Field::most_lost(view, handed_over)
    }

    /// Returns whether an arm seems to lose more than it may in a state at a size.
    fn seems_lost(&self, arm: usize, size: usize) -> bool {
        let libc = self.handed_over(size);
        self.covering(arm, size).any(|(view, seen)| {
            let most = Field::most_lost(view, libc);
            seen.layouts.iter().any(|of| of.mean > most)
        })
    }

    /// Returns whether an arm at that many bytes is what a decision for libc comes to there anyway.
    pub(super) fn is_libc(&self, arm: usize, bytes: usize) -> bool {
        let from = cachewise::profile::libc_from(self.operation);
        arm == LIBC || self.below_libc == Some(arm) && (bytes as u64) < from
    }

    /// Returns whether an arm at that many bytes is what the library does without a profile although libc is there:
    /// loops of vectors in L1 both, of which the library's is reached sooner. It is in use as libc is, so that
    /// it is out where it is shown to lose and needs no proof that it does not. What is found in the first
    /// vectors the stub finds before either.
    pub(super) fn is_default(&self, arm: usize, bytes: usize) -> bool {
        self.below_libc == Some(arm)
            && !plan::stores(self.operation)
            && bytes <= self.handed_over_to
    }

    /// Least loss of an arm that is shown in one of the views.
    fn proven_loss(&self, arm: usize, size: usize) -> f64 {
        self.covering(arm, size).map(|(_, of)| of.whole.low(Sure::Likely)).fold(0.0, f64::max)
    }

    /// Returns whether a view's next turn at a size is of operands at odd offsets: every other one.
    pub(super) fn is_odd_turn(&self, view: usize, size: usize) -> bool {
        let turns = |is_odd: bool| {
            self.rounds.iter().map(|of_arm| of_arm[view][size].of(is_odd).len()).max()
        };
        turns(false) > turns(true)
    }

    /// Returns whether the previous profile names an arm at a size.
    pub(super) fn is_previous(&self, arm: usize, size: usize) -> bool {
        self.previous[size] == Some(arm)
    }

    /// The arms that are still measured at a size, without libc.
    pub(super) fn live(&self, size: usize) -> Vec<usize> {
        (1..self.arms.len()).filter(|arm| self.live[*arm][size]).collect()
    }

    /// Results of each arm's rounds in a view at a size.
    fn seen(&self, view: usize, size: usize) -> &[Seen] {
        self.seen[view][size].get_or_init(|| {
            let of = &self.views[view];
            // If the size does not matter, rounds at all smaller ones count, too.
            let visited = |at: &usize| of.is_visited(self.sizes[*at]);
            let from: Vec<usize> = match of.proven {
                true => vec![size],
                false => (0..=size).filter(visited).collect(),
            };
            let at = from.last().copied().unwrap_or(size);
            let near = || self.near(at);
            let all = near().flat_map(|size| {
                (0..self.rounds.len()).flat_map(move |arm| self.off(arm, view, size))
            });
            let of_all = pooled(&all.copied().collect::<Vec<_>>(), POOLED_FROM).unwrap_or(UNKNOWN);
            let of_arm = |(arm, rounds): (usize, &Vec<Vec<CellRounds>>)| {
                if arm == LIBC {
                    let libc = Estimate::REFERENCE;
                    return Seen { whole: libc, worst: libc, odd: libc, layouts: [libc; 2] };
                }
                let own = self.own.and_then(|least| {
                    let off = near().flat_map(|size| self.off(arm, view, size));
                    pooled(&off.copied().collect::<Vec<_>>(), least)
                });
                let estimate = |middle: Middle| middle.pooled(own.unwrap_or(of_all), LAYOUTS);
                let middles = || {
                    let layouts = [false, true].map(|is_odd| {
                        let rounds = from.iter().flat_map(|at| rounds[view][*at].of(is_odd));
                        rounds.copied().collect::<Vec<f64>>()
                    });
                    // One distance a round: a quarter of them may be many times as slow.
                    let middle = match of.layout {
                        Layout::Aliased => Middle::with_tail,
                        _ => Middle::of,
                    };
                    let [aligned, odd] = layouts.each_ref().map(|rounds| middle(rounds));
                    [aligned, odd, middle(&layouts.concat())]
                };
                let here = &rounds[view][size];
                let [aligned, odd, whole] = match of.proven {
                    true => *here.middles.get_or_init(middles),
                    false => middles(),
                };
                let layouts = match of.proven {
                    true => [aligned, odd],
                    false => [false, true].map(|is_odd| Middle::of(here.of(is_odd))),
                };
                let layouts = layouts.map(|middle| match middle.rounds {
                    LEAST_ROUNDS.. => estimate(middle),
                    _ => Estimate::NO_LOSS,
                });
                let whole = estimate(whole);
                let enough = [aligned, odd].into_iter().filter(|of| of.rounds >= LAYOUT_ROUNDS);
                let worst = enough.map(|middle| of.judged(estimate(middle)));
                Seen {
                    whole,
                    worst: worst.chain([of.judged(whole)]).fold(Estimate::NO_LOSS, Estimate::worse),
                    odd: estimate(odd),
                    layouts,
                }
            };
            let mut seen: Vec<Seen> = self.rounds.iter().enumerate().map(of_arm).collect();
            let further = self.or_libc.iter().flatten().map(|kernel| seen[*kernel].or_libc(of));
            seen.extend(further.collect::<Vec<_>>());
            seen
        })
    }

    /// Distances of an arm's rounds from their median, in a view at a size.
    fn off(&self, arm: usize, view: usize, size: usize) -> &[f64] {
        self.rounds[arm][view][size].off()
    }

    /// The views in which an arm is weighed at a size, and what it shows there.
    fn covering(&self, arm: usize, size: usize) -> impl Iterator<Item = (&View, Seen)> {
        let views = self.views.iter().enumerate();
        let views = views.filter(move |(_, view)| view.covers(self.sizes[size]));
        views.map(move |(nth, view)| (view, self.seen(nth, size)[arm]))
    }

    /// Estimates of whole states in which it must be shown to keep the guard.
    fn proven(&self, arm: usize, size: usize) -> impl Iterator<Item = Estimate> {
        self.covering(arm, size).filter(|(view, _)| view.proven).map(|(_, seen)| seen.whole)
    }

    /// The weighted mean over views.
    pub(super) fn value(&self, arm: usize, size: usize) -> Estimate {
        Estimate::mean(self.covering(arm, size).map(|(view, seen)| (seen.whole, view.weight)))
    }

    /// The view with the largest loss, as estimated, or one of its layouts alone.
    pub(super) fn worst(&self, arm: usize, size: usize) -> Estimate {
        self.covering(arm, size)
            .map(|(_, seen)| seen.worst)
            .fold(Estimate::NO_LOSS, Estimate::worse)
    }

    /// An arm's results where a view is visited: view, size and estimate.
    pub(super) fn visited(&self, arm: usize) -> impl Iterator<Item = (&View, usize, Estimate)> {
        let views = self.views.iter().enumerate();
        views.flat_map(move |(nth, view)| {
            let sizes = self.sizes.iter().enumerate();
            let sizes = sizes.filter(|(_, size)| view.is_visited(**size));
            sizes.map(move |(at, size)| (view, *size, self.seen(nth, at)[arm].whole))
        })
    }

    /// The sizes of the grid at most an octave away.
    fn near(&self, size: usize) -> impl Iterator<Item = usize> {
        (0..self.sizes.len()).filter(move |other| self.is_near(*other, size))
    }

    /// Returns whether two sizes are at most an octave apart.
    fn is_near(&self, one: usize, other: usize) -> bool {
        let (one, other) = (self.sizes[one], self.sizes[other]);
        one <= 2 * other && other <= 2 * one
    }

    /// Returns whether no further round can change anything at a size.
    fn settled(&self, size: usize) -> bool {
        self.live(size).iter().all(|arm| {
            // Whole states only: a layout alone, with half of the rounds, would ask for twice as many.
            let worst = self.proven(*arm, size).reduce(Estimate::worse);
            let rounds = self.value(*arm, size).rounds;
            worst.is_none_or(|worst| Estimate { rounds, ..worst }.is_plenty(LAYOUTS))
        })
    }

    /// Drops arms that are shown to be worse than another, or outside the guard, at sizes that `at`
    /// names; returns the sizes where something is left to learn. libc is never dropped, nor what is in use in
    /// its place.
    pub(super) fn eliminate(&mut self, at: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let sizes: Vec<usize> =
            (0..self.sizes.len()).filter(|size| at(self.sizes[*size])).collect();
        for &size in &sizes {
            let libc = self.handed_over(size);
            let guard = GUARD.max(libc);
            let bound = |arm: usize| {
                let (value, worst) = (self.value(arm, size), self.worst(arm, size));
                // By the fewest rounds that any state has.
                let of_all = Estimate { rounds: value.rounds, ..worst };
                let is_safe = worst.rounds >= LEAST_ROUNDS && of_all.keeps(guard, ALWAYS);
                if is_safe { value.high(ALWAYS) } else { libc }
            };
            let best = (1..self.rounds.len()).map(bound).fold(libc, f64::min);
            let [worth, allowed] = [best + EQUAL, guard].map(f64::exp);
            let is_out = |arm: usize| {
                let value = self.value(arm, size);
                if self.is_default(arm, self.sizes[size]) {
                    false
                } else if value.rounds >= LEAST_ROUNDS {
                    let [cost, loss] = [value, self.worst(arm, size)].map(|of| of.ratio(ALWAYS));
                    race::leaves(Some(&cost), worth, Some(&loss), allowed).is_some()
                } else {
                    value.rounds > 0 && value.mean > HOPELESS
                }
            };
            // A kernel may gain where operands are not aligned, though libc is faster where they are.
            let out = |arm: &usize| is_out(*arm) && self.beside_libc(*arm, size).is_none_or(is_out);
            for arm in self.live(size).into_iter().filter(out).collect::<Vec<_>>() {
                self.live[arm][size] = false;
            }
        }
        let open = |size: &usize| !self.live(*size).is_empty() && !self.settled(*size);
        sizes.into_iter().filter(open).collect()
    }

    /// The arm that leaves to libc what is aligned and has this kernel for the rest, at a size where there may be one.
    fn beside_libc(&self, kernel: usize, size: usize) -> Option<usize> {
        let arm = self.or_libc.iter().position(|other| *other == Some(kernel))?;
        (self.sizes[size] >= LOOKS_FROM).then_some(arm)
    }

    /// Cost of an arm at a size, where it is admissible: shown, and within the guard in every
    /// state by so many standard errors; or, where libc is shown to break it when the library calls it,
    /// not shown to be worse than that. In the order of preference among what is level. What was not shown to keep the
    /// guard and seems to has a cost above libc's: no range begins with it, and one that goes on behind it is one.
    pub(super) fn cost(&self, arm: usize, size: usize) -> Option<f64> {
        const PREFERENCE: f64 = 0.001;
        let bytes = self.sizes[size];
        let libc = self.handed_over(size);
        if self.is_libc(arm, bytes) {
            // If both are in use, neither need be shown to be worse.
            let default = self.below_libc.is_some_and(|arm| self.is_default(arm, bytes));
            return Some(match default {
                true if self.handed_over[size].len() < LEAST_ROUNDS => 0.0,
                true => self.of_handed_over(size).mean.max(0.0),
                false => libc,
            });
        }
        let (value, worst) = (self.value(arm, size), self.worst(arm, size));
        let kernel = self.or_libc[arm];
        let default = self.is_default(arm, bytes);
        let in_use = default || self.is_previous(arm, size);
        let guarded = worst.keeps(GUARD, Sure::Likely)
            || libc > 0.0 && !worst.is_above(libc, Sure::Seems)
            || in_use && self.proven_loss(arm, size) <= GUARD.max(libc);
        let loyalty = match self.previous[size] {
            Some(LIBC) => IN_FORCE,
            Some(previous) if previous == arm => -IN_FORCE,
            _ => 0.0,
        };
        let error = if default { 0.0 } else { value.error };
        // Of what is aligned, which is half, libc takes what it takes through the library.
        let (rank, mean) = match kernel {
            Some(kernel) => (kernel as f64 + 0.5, value.mean + libc / 2.0),
            None => (arm as f64, value.mean),
        };
        let seems_to_keep = worst.mean <= GUARD.max(libc);
        let may = kernel.is_none() || bytes >= LOOKS_FROM;
        let may = may && !self.seems_lost(arm, size) && !self.refused[arm][size];
        (may && value.rounds >= LEAST_ROUNDS && (guarded || seems_to_keep)).then(
            || if guarded { mean } else { mean.max(libc) } + error + loyalty + PREFERENCE * rank,
        )
    }

    /// That of each arm at each size; of temporal ones alone, or of all.
    pub(super) fn costs(&self, all: bool) -> Vec<Vec<Option<f64>>> {
        let of_arm = |(arm, competitor): (usize, &Competitor)| {
            let takes_part = all || competitor.class != Class::NonTemporal;
            (0..self.sizes.len()).map(|size| self.cost(arm, size).filter(|_| takes_part)).collect()
        };
        self.arms.iter().enumerate().map(of_arm).collect()
    }

    /// The temporal arm per size, in at most so many ranges.
    pub(super) fn temporal(&self, most: usize) -> Vec<usize> {
        choose(&self.costs(false), self.below_libc, &self.sizes, most)
    }
}

/// Distances of rounds from their median, where they are enough to have one.
fn off_median(rounds: &[f64]) -> Vec<f64> {
    if rounds.len() < LEAST_ROUNDS { Vec::new() } else { away(rounds, median(rounds)) }
}

/// The scatter of what lies so far off, where it is enough to tell.
fn pooled(off: &[f64], least: usize) -> Option<f64> {
    (off.len() >= least).then(|| deviation(off))
}
