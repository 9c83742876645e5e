//! The tools and the options of an experiment.

use crate::backing::Backing;
use crate::bench::{Bench, Call, Cell, CellOutcome, Task, each};
use crate::error::LabError;
use crate::recorder::Recorder;
use crate::routines::Routine;
use cachewise_kernels::Operation;
use cachewise_measure::{
    Caches, Candidate, CellKey, Clock, Level, MeasureError, MemoryBudget, PairedRatio, Plan, Row,
    turns,
};

/// The result of an experiment beside its record.
pub(super) type Result<T = (), E = LabError> = std::result::Result<T, E>;

/// The user's options; empty means the experiment's own choice.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Kernels by regular expression over names and aliases.
    pub kernels: Option<String>,
    pub sizes: Vec<usize>,
    /// Residency of source and destination.
    pub placements: Vec<(Level, Level)>,
    pub quick: bool,
    /// The source document's own parameters.
    pub classic: bool,
    pub rounds: Option<u32>,
    pub operations: Vec<Operation>,
    /// Libraries to compare with, beside those built in.
    pub peers: Vec<crate::libraries::Peer>,
    /// Sizes and alignments to call with, or first differences, in place of those built in.
    pub distribution: Option<std::path::PathBuf>,
    /// Other C libraries that `peers` calls in processes of the `helper`.
    pub libcs: Vec<crate::other_libc::OtherLibc>,
    /// The C library of this build: `peers` calls it too, as far away from the caller as libc is.
    pub shared: Option<std::path::PathBuf>,
    /// The number of this launch of several, which decides the loops that call the candidates.
    pub launch: Option<u32>,
    /// The program that serves [`crate::helper`]'s requests; without one, experiments leave out what
    /// takes a process of its own, and say so.
    pub helper: Option<std::path::PathBuf>,
}

/// The tools and the options of an experiment.
pub struct Setting<'s, 'r> {
    pub bench: &'s mut Bench,
    pub options: &'s Options,
    /// Takes down what is found.
    pub out: &'s mut Recorder<'r>,
}

/// Takes a sample.
type Take<'t> = Box<dyn FnMut(&Clock) -> Result<f64> + 't>;

/// A candidate that times itself, in memory of its own.
pub(super) struct Timed<'t> {
    pub(super) cell: CellKey,
    pub(super) name: String,
    /// Place of the candidate that it is compared with.
    pub(super) reference: usize,
    pub(super) calls: usize,
    /// Takes a sample: nanoseconds of a call.
    pub(super) take: Take<'t>,
}

impl Setting<'_, '_> {
    /// One sample of each in every round, in turns, on memory that the host backs where that is asked for; a row
    /// each.
    pub(super) fn contest(
        &self,
        mut candidates: Vec<Timed<'_>>,
        mut backing: Option<&mut Backing>,
    ) -> Result<Vec<Row>> {
        let mut times = vec![Vec::new(); candidates.len()];
        let clock = &self.bench.clock;
        self.in_turns(candidates.len(), 0, |turn| {
            let mut take = || (candidates[turn].take)(clock);
            times[turn].push(match &mut backing {
                Some(backing) => backing.sample(take)?,
                None => take()?,
            });
            Ok(())
        })?;
        let row = |(one, own): (&Timed<'_>, &Vec<f64>)| {
            let other = (&*candidates[one.reference].name, &times[one.reference][..]);
            let row = self.compared(one.cell.clone(), (&one.name, own), other);
            Row { calls: u32::try_from(one.calls).unwrap_or(u32::MAX), ..row }
        };
        Ok(candidates.iter().zip(&times).map(row).collect())
    }

    /// The work ahead, in arbitrary units.
    pub(super) fn begin(&mut self, units: f64) {
        self.out.begin(self.bench.experiment, units);
    }

    /// Refuses to go on where the user wants to stop.
    pub(super) fn go_on(&self) -> Result {
        if self.out.stopped() { Err(LabError::Interrupted) } else { Ok(()) }
    }

    /// A cell of an operation, sampled as it was asked for.
    pub(super) fn task(&self, operation: Operation, size: usize, cell: Cell) -> Task {
        Task { operation, size, cell, plan: self.plan(false) }
    }

    /// Measures candidates in a cell; nothing, and a remark, where it does not fit this machine.
    pub(super) fn measure(
        &mut self,
        task: &Task,
        candidates: &mut [&mut dyn Candidate],
    ) -> Result<Option<CellOutcome>> {
        match self.bench.measure(task, candidates, &|| self.out.stopped()) {
            Err(LabError::Measure(
                error @ (MeasureError::DoesNotFit { .. } | MeasureError::OverBudget { .. }),
            )) => {
                let (operation, label) = (task.operation, &task.cell.label);
                self.out.note(format!("skipped {operation} {label}: {error}"))?;
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// Takes down the rows of routines in a cell, their bytes checked, with further coordinates.
    pub(super) fn record(
        &mut self,
        task: &Task,
        routines: &[Routine],
        axes: &[(&str, f64)],
    ) -> Result {
        let calls = Call::of_all(routines, true).into_iter();
        self.calls(task, calls.map(|call| call.told(|row| at(row, axes))).collect())
    }

    /// Measures candidates in a cell; their rows, as each of them tells its own. None where it does not fit.
    pub(super) fn told(
        &mut self,
        task: &Task,
        mut calls: Vec<Call<'_>>,
    ) -> Result<Option<(CellOutcome, Vec<Row>)>> {
        let found = self.measure(task, &mut each(&mut calls))?;
        Ok(found.map(|found| {
            let rows = found.told(&calls);
            (found, rows)
        }))
    }

    pub(super) fn calls(&mut self, task: &Task, calls: Vec<Call<'_>>) -> Result {
        let rows = self.told(task, calls)?.map_or(Vec::new(), |(_, rows)| rows);
        self.out.rows(rows)
    }

    /// Goes through cells: `weight` is the work in one, in arbitrary units, and `one` says what was done.
    pub(super) fn through<T>(
        &mut self,
        cells: Vec<T>,
        weight: impl Fn(&T) -> f64,
        mut one: impl FnMut(&mut Self, T) -> Result<String>,
    ) -> Result {
        self.begin(cells.iter().map(&weight).sum());
        for cell in cells {
            let units = weight(&cell);
            let done = one(self, cell)?;
            self.out.advance(&done, units);
        }
        Ok(())
    }

    /// Gives each of so many candidates its turn in every round; `cell` draws other orders for each.
    pub(super) fn in_turns(
        &self,
        candidates: usize,
        cell: usize,
        mut take: impl FnMut(usize) -> Result,
    ) -> Result {
        let (rounds, seed) = (self.plan(false).rounds, self.bench.seed ^ cell as u64);
        turns::orders(candidates, rounds, seed).concat().into_iter().try_for_each(|turn| {
            self.go_on()?;
            take(turn)
        })
    }

    /// A row of times that the bench did not take, compared with another's of the same rounds.
    pub(super) fn compared(
        &self,
        cell: CellKey,
        (candidate, ours): (&str, &[f64]),
        (reference, theirs): (&str, &[f64]),
    ) -> Row {
        let ratio = PairedRatio::paired(ours, theirs);
        Row::new(self.bench.experiment, cell, candidate, reference, ours.to_vec()).with_ratio(ratio)
    }

    /// Refuses sizes that are no multiples of that many bytes.
    pub(super) fn whole(&self, units: &str, unit: usize) -> Result {
        let odd = self.options.sizes.iter().find(|size| !size.is_multiple_of(unit));
        let accepted = format!("whole {units} of {unit} bytes");
        odd.map_or(Ok(()), |size| Err(LabError::unsuited("--size", size, &accepted)))
    }

    pub(super) fn check_sizes(&self) -> Result {
        let (most, budget) = (self.bench.largest_size(), MemoryBudget::process().limit());
        let odd = self.options.sizes.iter().find(|size| **size == 0 || **size > most);
        odd.map_or(Ok(()), |&found| Err(LabError::TooLarge { found, most, budget }))
    }

    /// The sizes that were asked for, or else the experiment's own.
    pub(super) fn sizes_or(&self, own: impl IntoIterator<Item = usize>) -> Vec<usize> {
        let asked = &self.options.sizes;
        if asked.is_empty() { own.into_iter().collect() } else { asked.clone() }
    }

    /// The residencies that were asked for, of source and destination, or else these.
    pub(super) fn placements_or(
        &self,
        own: impl IntoIterator<Item = Level>,
    ) -> Vec<(Level, Level)> {
        let asked = &self.options.placements;
        let own = own.into_iter().map(|level| (level, level));
        if asked.is_empty() { own.collect() } else { asked.clone() }
    }

    /// Operations of these that were asked for, or else all.
    pub(super) fn operations_of(&self, own: &[Operation]) -> Vec<Operation> {
        let asked = &self.options.operations;
        own.iter().copied().filter(|one| asked.is_empty() || asked.contains(one)).collect()
    }

    pub(super) fn plan(&self, screening: bool) -> Plan {
        let usual = Plan::default();
        let screening_rounds = if screening { usual.screening_rounds } else { 0 };
        Plan {
            rounds: self.options.rounds.map_or(usual.rounds, |rounds| rounds as usize),
            screening_rounds,
            ..usual
        }
    }

    /// The levels to place operands at, and the sizes at each.
    pub(super) fn cells(&self) -> Vec<(Level, Level, usize)> {
        let mut cells = Vec::new();
        for (source, destination) in self.placements_or(Level::ALL) {
            let (level, caches) = (source.min(destination), &self.bench.machine.caches);
            let sizes = self.sizes_or(default_sizes(level, self.options.quick, caches));
            cells.extend(sizes.into_iter().map(|size| (source, destination, size)));
        }
        cells
    }
}

/// Sizes that say something about a level and of which two operands fit it. What a guest has of the
/// last level varies, so sizes there are parts of what was found.
pub(super) fn default_sizes(level: Level, quick: bool, caches: &Caches) -> Vec<usize> {
    let usable = caches.usable();
    // An operand has half of half the level; half of that again leaves it two slots.
    let in_llc = (usable / 8).clamp(64 << 10, 1 << 20).next_power_of_two();
    let sizes: &[usize] = match (level, quick) {
        (Level::L1, true) => &[4 << 10],
        (Level::L1, false) => &[256, 1 << 10, 4 << 10],
        (Level::L2, true) => &[64 << 10],
        (Level::L2, false) => &[16 << 10, 64 << 10],
        (Level::Llc, true) => &[in_llc],
        (Level::Llc, false) => &[in_llc / 4, in_llc],
        (Level::Dram, true) => &[16 << 20],
        (Level::Dram, false) => &[4 << 10, 256 << 10, 16 << 20],
    };
    sizes.to_vec()
}

/// The weight of cells that take about as long as each other.
pub(super) fn alike<T>(_: &T) -> f64 {
    1.0
}

/// A row at further coordinates.
pub(super) fn at(row: Row, axes: &[(&str, f64)]) -> Row {
    Row { cell: row.cell.clone().with(axes), ..row }
}
