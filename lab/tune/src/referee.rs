//! The referee: the library with the decisions against libc, at sizes that were not raced, at both edges of
//! every range, in every state, on operands on lines and at odd offsets. What fails is taken back and the rest
//! decided again, three times at most; what is undecided at the end is taken back too.

use super::field::Field;
use super::hints;
use super::plan::{self, View};
use super::ranges::{Border, LIBC, MOST_RANGES, Range, choose, most_ranges, ranges, settle};
use super::rounds::{Evidence, Purpose};
use super::seam::{Arm, Facts, Layout, Sample, Stage, TuningCell};
use super::tuning::{Refereed, Repair};
use super::visits::{Visits, between};
use cachewise::Reuse;
use cachewise::profile::Decision;
use cachewise_judge::estimate::{Estimate, Guard, Middle, Ruling, Scatter, deviation};
use cachewise_judge::margin::{GUARD, LAYOUTS};
use cachewise_measure::LabError;
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// Repairs that may bring new places to look at.
const REPAIRS: usize = 3;

/// Rounds of a cell after which a median is what it is.
const PLENTY: usize = 12;

/// Rounds of a cell at least.
const LEAST_ROUNDS: usize = Scatter::Pooled.least_rounds();

/// One arm at one size that it is decided for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    arm: usize,
    size: usize,
    /// The size of the grid that is taken back when it fails.
    grid: usize,
}

/// One operation's decision under trial.
pub(super) struct Trial {
    pub field: Field,
    /// The arm per size of the grid.
    pub chosen: Vec<usize>,
    /// Borders of kernels at neighbouring sizes.
    borders: Vec<Border>,
    /// Position of the examined size between two sizes of the grid.
    gaps: Vec<f64>,
    /// Seed of the operands' layout at a size.
    lying: u64,
    /// True if the last arm goes on above the grid.
    extends: bool,
    /// Logarithms of an arm's times over libc's in a cell.
    seen: BTreeMap<(usize, TuningCell), Vec<f64>>,
}

/// The decisions of one operation and hint.
pub(super) fn decisions(field: &Field, ranges: &[Range], reuse: Reuse) -> Vec<Decision> {
    let decision = |range: &Range| {
        let kernel = &field.arms[range.arm].name;
        Decision::new(field.operation, reuse, (range.from, range.to), kernel)
    };
    ranges.iter().map(decision).collect()
}

impl Trial {
    pub(super) fn new(field: Field, facts: &Facts, random: &mut fastrand::Rng) -> Trial {
        Trial {
            chosen: hints::chosen(&field, facts),
            borders: vec![Border::Middle; field.sizes.len()],
            gaps: field.sizes.iter().map(|_| 0.25 + 0.5 * random.f64()).collect(),
            lying: random.u64(..),
            extends: plan::extends(facts, &field.sizes),
            seen: BTreeMap::new(),
            field,
        }
    }

    pub(super) fn ranges(&self) -> Vec<Range> {
        ranges(&self.field.sizes, &self.chosen, &self.borders, self.extends)
    }

    /// Sizes from which visits are expensive, and most expensive.
    pub(super) fn bands(&self) -> [usize; 2] {
        plan::bands(self.field.sizes.last().copied().unwrap_or(0))
    }

    /// The largest size of a range that ends with a size of the grid. Nothing above it was raced, so that
    /// there it may lose nothing at all.
    fn end(&self, grid: usize) -> usize {
        *cachewise::size_class(self.field.sizes[grid] as u64).end() as usize
    }

    /// Returns whether a range ends with a size of the grid. Before libc, it does so behind the size that was raced: a
    /// cache's size is a power of two, as those are, and one byte more may be another matter.
    fn ends(&self, grid: usize) -> bool {
        self.chosen.get(grid + 1).map_or(!self.extends, |above| *above == LIBC)
    }

    /// The first size of the kernel above, where two kernels meet above a size of the grid.
    fn border(&self, grid: usize) -> usize {
        let sizes = &self.field.sizes;
        self.borders[grid].start(sizes[grid], sizes[grid + 1]) as usize
    }

    /// Lets the other kernel have what lies between two sizes of the grid where one lost at their border: a
    /// cache ends between them as often as at one of them. Once: then both sides of the gap are known.
    fn move_border(&mut self, lost: &Point) -> bool {
        let below = lost.grid.checked_sub(1).filter(|below| lost.size == self.border(*below));
        let (at, border) = match below {
            Some(below) => (below, Border::Upper),
            None if lost.grid + 1 < self.chosen.len()
                && lost.size + 1 == self.border(lost.grid) =>
            {
                (lost.grid, Border::Lower)
            }
            None => return false,
        };
        let arms = [self.chosen[at], self.chosen[at + 1]];
        let meet = arms[0] != arms[1] && !arms.contains(&LIBC);
        let moves = meet && self.borders[at] == Border::Middle;
        if moves {
            self.borders[at] = border;
        }
        moves
    }

    /// Points to examine: a size in every gap between two sizes of the grid that a kernel is
    /// decided for, both sides of every change between kernels, both ends of every range; and what was looked at for
    /// other ranges and is in one of that kernel now, since its figures are printed.
    fn points(&self) -> Vec<Point> {
        let (sizes, chosen) = (&self.field.sizes, &self.chosen);
        let mut points = Vec::new();
        let mut add = |size: usize, grid: usize| {
            let arm = chosen[grid];
            if !self.field.is_libc(arm, size) {
                points.push(Point { arm, size, grid });
            }
        };
        for grid in 0..sizes.len() {
            let differs = |other: Option<usize>| other.is_none_or(|o| chosen[o] != chosen[grid]);
            let above = (grid + 1 < sizes.len()).then_some(grid + 1);
            let ends = self.ends(grid);
            if differs(grid.checked_sub(1)) || differs(above) && !ends {
                add(sizes[grid], grid);
            }
            if ends {
                add(self.end(grid), grid);
            }
            let Some(above) = above else { continue };
            let (low, high) = (sizes[grid] as f64, sizes[above] as f64);
            if chosen[grid] == chosen[above] {
                let size = (low * (high / low).powf(self.gaps[grid])) as usize;
                add(size, if self.gaps[grid] < 0.5 { grid } else { above });
            } else if chosen[grid] != LIBC && chosen[above] != LIBC {
                let border = self.border(grid);
                add(border - 1, grid);
                add(border, above);
            }
        }
        // A border at a size of the grid.
        points.dedup();
        let ranges = self.ranges();
        let seen: BTreeSet<_> = self.seen.keys().map(|(arm, cell)| (*arm, cell.size)).collect();
        for (arm, size) in seen {
            let has = |of: &Range| of.arm == arm && (of.from..=of.to).contains(&(size as u64));
            let is_point = |point: &Point| (point.arm, point.size) == (arm, size);
            if ranges.iter().any(has) && !points.iter().any(is_point) {
                let grid = nearest(sizes, size, |grid| chosen[*grid] == arm);
                points.extend(grid.map(|grid| Point { arm, size, grid }));
            }
        }
        points
    }

    /// The cells of a point: operands lie on lines' starts at one size, at odd offsets at another.
    fn cells(&self, point: &Point) -> impl Iterator<Item = TuningCell> {
        let (operation, size) = (self.field.operation, point.size);
        let odd = fastrand::Rng::with_seed(self.lying ^ size as u64).bool();
        // Sizes that the stub serves before either need no look.
        let default = self.field.is_default(point.arm, size);
        let wanted = move |view: &&View| view.is_refereed(size) && (view.proven || !default);
        let views = self.field.views.iter().filter(wanted);
        views.map(move |view| view.cell(operation, size, odd))
    }

    /// Ruling from a cell's rounds, and from its calls alone.
    fn ruling(&self, point: &Point, cell: &TuningCell, last: bool) -> Option<Ruling> {
        let whole = self.ruling_of(point, cell, last);
        match call_of(&self.field, cell) {
            Some(call) if whole != Some(Ruling::Lost) => {
                let alone = self.ruling_of(point, &call, last)?;
                whole.map(|_| alone)
            }
            _ => whole,
        }
    }

    fn ruling_of(&self, point: &Point, cell: &TuningCell, last: bool) -> Option<Ruling> {
        let rounds = self.seen.get(&(point.arm, *cell)).map_or(&[][..], Vec::as_slice);
        let view = self.field.views.iter().find(|view| view.holds(cell))?;
        if !is_enough(rounds) {
            return (last && !view.proven).then_some(Ruling::Kept);
        }
        let default = self.field.is_default(point.arm, point.size);
        let ends = self.ends(point.grid) && point.size == self.end(point.grid);
        let least = if ends && !default { 0.0 } else { GUARD };
        let libc = self.handed_over(point);
        let guard = libc.max(least);
        // A kernel that is in use was refereed before, at other times: it is out where it is shown to lose.
        let known = self.field.is_previous(point.arm, point.grid);
        let guard = match () {
            () if known => Guard::in_force(guard),
            () if view.proven && guard <= GUARD && !default => Guard::to_prove(guard),
            () => Guard::until_shown(guard),
        };
        match guard.rules(self.estimate(cell, rounds), last) {
            Some(Ruling::Kept) if Field::is_lost(view, libc, rounds) => {
                (last || rounds.len() >= PLENTY).then_some(Ruling::Lost)
            }
            ruling => ruling,
        }
    }

    /// Loss of libc (logarithm) at that size when the library calls it; between two measured sizes, the larger of
    /// both. On Zen 4 a `memset` of 2048 bytes hides the extra jump, one of 2304 does not.
    fn handed_over(&self, point: &Point) -> f64 {
        let sizes = &self.field.sizes;
        let above = point.size > sizes[point.grid] && point.grid + 1 < sizes.len();
        let grid = point.grid..=point.grid + usize::from(above);
        grid.map(|size| self.field.handed_over(size)).fold(0.0, f64::max)
    }

    /// With the scatter of the cells in the same state up to an octave away beside its own.
    fn estimate(&self, cell: &TuningCell, rounds: &[f64]) -> Estimate {
        let near = |other: &TuningCell| {
            other.destination == cell.destination
                && other.size <= 2 * cell.size
                && cell.size <= 2 * other.size
        };
        let all = self.seen.iter().filter(|((_, other), all)| near(other) && is_enough(all));
        let all = all.flat_map(|(_, all)| Middle::of(all).away(all));
        Middle::around_mean(rounds).beside(deviation(&all.collect::<Vec<_>>()), LAYOUTS)
    }

    /// Takes back what failed or was never decided; whether there was any. Borders move where that `may` be
    /// looked at.
    fn take_back(&mut self, round: usize, may: bool, repairs: &mut Vec<Repair>) -> bool {
        let mut any = false;
        for point in self.points() {
            let rulings: Vec<_> =
                self.cells(&point).map(|cell| self.ruling(&point, &cell, true)).collect();
            if rulings.iter().all(|ruling| *ruling == Some(Ruling::Kept)) {
                continue;
            }
            any = true;
            if may && rulings.contains(&Some(Ruling::Lost)) && self.move_border(&point) {
                continue;
            }
            let lost = rulings.contains(&Some(Ruling::Lost));
            self.refuse(&point, if lost { round } else { 0 }, repairs);
        }
        any
    }

    /// Takes an arm out around a point; whether it was there.
    fn refuse(&mut self, point: &Point, round: usize, repairs: &mut Vec<Repair>) -> bool {
        let was = std::mem::replace(&mut self.field.refused[point.arm][point.grid], true);
        repairs.extend((!was).then(|| Repair {
            operation: self.field.operation,
            reuse: Reuse::Unknown,
            kernel: self.field.arms[point.arm].name.clone(),
            size: self.field.sizes[point.grid],
            round,
        }));
        !was
    }

    /// Points of the ranges with rounds that are a loss.
    fn lost(&self) -> Vec<Point> {
        let is_lost = |point: &Point| {
            self.seen.keys().any(|(arm, cell)| {
                (*arm, cell.size) == (point.arm, point.size)
                    && self.ruling(point, cell, true) == Some(Ruling::Lost)
            })
        };
        self.points().into_iter().filter(is_lost).collect()
    }

    /// Ends with ranges in which nothing that was seen is a loss: one that ends elsewhere may have what was looked at for
    /// another.
    fn close(&mut self, round: usize, repairs: &mut Vec<Repair>) {
        loop {
            self.give_up();
            let lost = self.lost();
            let refused = lost.iter().filter(|point| self.refuse(point, round, repairs)).count();
            if refused == 0 {
                return;
            }
        }
    }

    /// Decides by a record's rounds of the referee, as it did itself but for what is not in them.
    pub(super) fn again(&mut self, evidence: &Evidence, facts: &Facts) -> Vec<Repair> {
        for (cell, log) in evidence.of(Purpose::Referee) {
            if cell.operation != self.field.operation || cell.script.is_some() {
                continue;
            }
            for name in log.others.keys() {
                let Some(arm) = self.field.arms.iter().position(|of| of.name == *name) else {
                    continue;
                };
                log.pairs(name).for_each(|(library, libc)| self.see(arm, *cell, library, libc));
            }
        }
        let mut repairs = Vec::new();
        // What failed is no candidate there, whatever else is decided for.
        for (arm, cell) in self.seen.keys().copied().collect::<Vec<_>>() {
            let Some(grid) = nearest(&self.field.sizes, cell.size, |_| true) else { continue };
            let point = Point { arm, size: cell.size, grid };
            if self.ruling(&point, &cell, true) == Some(Ruling::Lost) {
                self.refuse(&point, 1, &mut repairs);
            }
        }
        self.chosen = hints::chosen(&self.field, facts);
        for round in 2.. {
            let mut taken = false;
            for point in self.lost() {
                taken |= self.move_border(&point) || self.refuse(&point, round, &mut repairs);
            }
            if !taken {
                self.close(round, &mut repairs);
                break;
            }
            self.chosen = hints::chosen(&self.field, facts);
        }
        repairs
    }

    /// Adds a round of the library with an arm beside libc.
    fn see(&mut self, arm: usize, cell: TuningCell, library: Sample, libc: Sample) {
        let mut add = |cell, log: f64| {
            let rounds = self.seen.entry((arm, cell)).or_default();
            rounds.extend(Some(log).filter(|log| log.is_finite()));
        };
        add(cell, (library.total() / libc.total()).ln());
        if let Some(call) = call_of(&self.field, &cell) {
            add(call, (library.operation / libc.operation).ln());
        }
    }

    /// Decides again among the arms that are decided for at a size or next to it, and libc.
    fn repair(&mut self) {
        let mut costs = self.field.costs(true);
        for (arm, costs) in costs.iter_mut().enumerate().filter(|(arm, _)| *arm != LIBC) {
            for (size, cost) in costs.iter_mut().enumerate() {
                let near = size.saturating_sub(1)..=(size + 1).min(self.chosen.len() - 1);
                if !near.into_iter().any(|near| self.chosen[near] == arm) {
                    *cost = None;
                }
            }
        }
        let most = most_ranges(self.extends);
        self.chosen = choose(&costs, self.field.below_libc, &self.field.sizes, most);
    }

    /// libc wherever something was taken back; and where that leaves more ranges than there may be, in
    /// place of the shortest as well.
    fn give_up(&mut self) {
        for (size, arm) in self.chosen.iter_mut().enumerate() {
            if self.field.refused[*arm][size] {
                *arm = LIBC;
            }
        }
        settle(&mut self.chosen);
        while self.ranges().len() > MOST_RANGES {
            let runs = self.chosen.chunk_by_mut(|arm, next| arm == next);
            let kernels = runs.filter(|run| run[0] != LIBC);
            let Some(shortest) = kernels.min_by_key(|run| run.len()) else { return };
            shortest.fill(LIBC);
        }
    }

    pub(super) fn refereed(&self) -> Vec<Refereed> {
        let in_use = self.points();
        let mut found = Vec::new();
        let visited = |cell: &TuningCell| {
            self.field.views.iter().any(|view| view.holds(cell) && view.is_refereed(cell.size))
        };
        for ((arm, cell), rounds) in self.seen.iter().filter(|((_, cell), _)| visited(cell)) {
            let Estimate { mean, error, rounds } = self.estimate(cell, rounds);
            let (arm, size, sizes) = (*arm, cell.size, &self.field.sizes);
            let used = in_use.iter().find(|point| (point.arm, point.size) == (arm, size));
            let Some(grid) = nearest(sizes, size, |_| true) else { continue };
            let point = used.copied().unwrap_or(Point { arm, size, grid });
            found.push(Refereed {
                cell: *cell,
                name: self.field.arms[arm].name.clone(),
                ratio: mean.exp(),
                error,
                rounds,
                verdict: self.ruling(&point, cell, true).unwrap_or(Ruling::Undecided),
                in_use: used.is_some(),
            });
        }
        found
    }
}

/// The cell whose calls are a cell's own without what comes after them, where it has none itself.
fn call_of(field: &Field, cell: &TuningCell) -> Option<TuningCell> {
    let view = field.views.iter().find(|view| view.is_call_of(cell))?;
    Some(view.cell(cell.operation, cell.size, cell.layout == Layout::Misaligned))
}

/// The position of the size of a grid that is nearest to a size, of those that may be.
fn nearest(sizes: &[usize], size: usize, may: impl Fn(&usize) -> bool) -> Option<usize> {
    let away = |grid: &usize| (sizes[*grid] as f64 / size as f64).ln().abs();
    (0..sizes.len()).filter(may).min_by(|a, b| away(a).total_cmp(&away(b)))
}

/// Fewer rounds show nothing.
pub(super) fn is_enough(rounds: &[f64]) -> bool {
    rounds.len() >= LEAST_ROUNDS
}

/// The referee of all operations.
pub(super) struct Referee<'r, 'm> {
    pub visits: &'r mut Visits<'m>,
    pub facts: Facts,
    /// Seconds that it is expected to take.
    pub takes: f64,
    /// Seconds that are expected to follow.
    pub after: f64,
}

impl Referee<'_, '_> {
    /// Looks, repairs, and ends with decisions that were looked at.
    ///
    /// # Errors
    /// Returns the first error of [`Machine::visit`](super::seam::Machine::visit).
    pub(super) fn run(&mut self, trials: &mut [Trial], stop: f64) -> Result<Vec<Repair>, LabError> {
        let begun = self.visits.machine.now();
        let mut repairs = Vec::new();
        for round in 0..=REPAIRS {
            // The first look has most of the time, every further one a part of the rest.
            let share = (0.7 + 0.1 * round as f64).min(1.0);
            self.look(trials, begun + (stop - begun) * share)?;
            let mut failed = false;
            for trial in trials.iter_mut() {
                let again = round + 1 < REPAIRS;
                let taken = trial.take_back(round + 1, again, &mut repairs);
                if taken && again {
                    trial.repair();
                } else if taken {
                    trial.give_up();
                }
                failed |= taken;
            }
            if !failed {
                break;
            }
        }
        trials.iter_mut().for_each(|trial| trial.close(REPAIRS, &mut repairs));
        self.follow(trials)?;
        Ok(repairs)
    }

    fn follow(&mut self, trials: &[Trial]) -> Result<(), LabError> {
        let of = |trial: &Trial| decisions(&trial.field, &trial.ranges(), Reuse::Unknown);
        let all: Vec<Decision> = trials.iter().flat_map(of).collect();
        self.visits.machine.follow(&all)
    }

    /// Epochs over the cells that are not decided yet.
    fn look(&mut self, trials: &mut [Trial], stop: f64) -> Result<(), LabError> {
        self.follow(trials)?;
        // Seconds of an epoch, and epochs that are still to come for sure: for the time left.
        let mut whole = self.takes / LEAST_ROUNDS as f64;
        let mut sure = LEAST_ROUNDS as f64;
        loop {
            let begun = self.visits.machine.now();
            sure = (sure - 1.0).max(0.0);
            let mut open = Vec::new();
            for (nth, trial) in trials.iter().enumerate() {
                for point in trial.points() {
                    if trial.field.refused[point.arm][point.grid] {
                        continue;
                    }
                    let undecided = |cell: &TuningCell| trial.ruling(&point, cell, false).is_none();
                    let cells = trial.cells(&point).filter(undecided);
                    open.extend(cells.map(|cell| (nth, point, cell)));
                }
            }
            // Optional proofs take no time from necessary ones.
            let must = |(nth, _, cell): &(usize, Point, TuningCell)| {
                trials[*nth].field.views.iter().any(|view| view.holds(cell) && view.proven)
            };
            if open.iter().any(must) {
                open.retain(must);
            }
            self.visits.random.shuffle(&mut open);
            // If time runs out, it does so on the expensive cells, not on all.
            open.sort_by_key(|(nth, _, cell)| trials[*nth].bands().map(|from| cell.size >= from));
            let mut bought = false;
            for (nth, point, cell) in open {
                let now = self.visits.machine.now();
                let left = (whole - (now - begun)).max(0.0) + sure * whole;
                self.visits.machine.progress(Stage::Referee, left.min(stop - now) + self.after);
                bought |= self.round(&mut trials[nth], point, cell, stop)?;
            }
            if !bought {
                return Ok(());
            }
            whole = self.visits.machine.now() - begun;
        }
    }

    /// libc, the library twice, libc.
    fn round(
        &mut self,
        trial: &mut Trial,
        point: Point,
        cell: TuningCell,
        stop: f64,
    ) -> Result<bool, LabError> {
        let samples = plan::samples(&cell, cell.size >= trial.bands()[0]);
        let twice = [(cell, Arm::Library); 2];
        let Some(round) = self.visits.round((cell, Arm::LIBC), &twice, samples, stop)? else {
            return Ok(false);
        };
        let library = round.others.into_iter().flatten().reduce(between);
        if let Some(library) = library {
            trial.see(point.arm, cell, library, round.reference);
        }
        let others = library.map(|library| (&*trial.field.arms[point.arm].name, library));
        self.visits.evidence.push(Purpose::Referee, cell, round.reference, others);
        Ok(true)
    }
}
