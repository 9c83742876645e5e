//! The tuner: a grid of cells, decisions from their rows, narrowed crossovers, and a second look at
//! sizes the decisions were not made from.
//!
//! Measuring and deciding are apart: [`Tuner`] produces rows, [`Evidence`] reads rows and says what
//! they imply. So a record can be decided from again, and several launches can be decided from
//! together.

pub mod again;
mod field;
pub mod hardware;
mod hints;
mod plan;
mod race;
mod ranges;
mod referee;
pub mod rounds;
pub mod seam;
mod threads;
pub mod tuner;
pub mod tuning;
mod visits;

use crate::LabError;
use crate::bench::{Bench, Cell, Task};
use crate::decide;
use crate::recorder::Progress;
use crate::routines::{LIBC, Routine, libc_reference};
use crate::select::{NON_TEMPORAL_FROM, candidates};
use cachewise::profile::{FIRST_SIZE, hints};
use cachewise_kernels::{Kernel, Operation};
use cachewise_measure::{Figure, FigureKind, Plan, Row, State};
use std::collections::BTreeMap;

pub use crate::evidence::{Decided, Evidence, Regret, chosen, gains};
pub use crate::experiments::parallel::paying;

/// The name under which its rows stand in records.
pub const EXPERIMENT: &str = "tune";
/// The name of the rows that re-measure decisions.
pub const REGRET: &str = "tune-regret";
/// The name of the rows that compare the library, following the new profile, with libc.
pub const LIBRARY: &str = "tune-library";

/// The name of the rows that compare numbers of threads.
pub const PARALLEL: &str = "tune-parallel";

/// How a tuning's rows are drawn.
#[must_use]
pub fn figures() -> Vec<Figure> {
    let figure = |title, value, state: State| {
        Figure::new(title, FigureKind::Curve, "size", value).of(&state)
    };
    let bars = |title, state: State| {
        Figure::new(title, FigureKind::Bars, "candidate", "cost").by(&["size"]).of(&state)
    };
    vec![
        figure("Speed by size, warm buffers", "gbps", State::Warm),
        figure("The library following these decisions", "ratio", State::Warm)
            .among([LIBC, crate::routines::LIBRARY]),
        figure("Operation and the reader after it", "total_ratio", State::Read),
        figure("Operation and the bystander beside it", "total_ratio", State::Beside),
        figure("Operands off alignment", "ratio", State::Misaligned),
        figure("Operands alike in their low bits", "ratio", State::Aliased),
        figure("Destination never touched before", "ratio", State::Fresh),
        bars("Operation and reader, in time", State::Read),
        bars("Operation and bystander, in time", State::Beside),
    ]
}

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// One size per octave, 15 rounds.
    Quick,
    /// Two sizes per octave up to twice the quick tuning's largest, 15 rounds.
    Standard,
    /// As standard, 21 rounds, in three fresh processes.
    Thorough,
}

impl Effort {
    /// The word in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Effort::Quick => "quick",
            Effort::Standard => "standard",
            Effort::Thorough => "thorough",
        }
    }

    /// Fresh processes whose rows are decided from together.
    #[must_use]
    pub const fn launches(self) -> usize {
        match self {
            Effort::Quick | Effort::Standard => 1,
            Effort::Thorough => 3,
        }
    }

    fn rounds(self) -> usize {
        match self {
            Effort::Quick | Effort::Standard => 15,
            Effort::Thorough => 21,
        }
    }

    /// The largest operation measured: both operands of a copy are then two or four times the
    /// last-level cache.
    fn largest(self, llc_bytes: usize) -> usize {
        let llc = llc_bytes.max(32 << 20).next_power_of_two();
        match self {
            Effort::Quick => llc,
            Effort::Standard | Effort::Thorough => 2 * llc,
        }
    }

    fn per_octave(self) -> usize {
        match self {
            Effort::Quick => 1,
            Effort::Standard | Effort::Thorough => 2,
        }
    }

    /// The sizes decided from, up to `most` bytes.
    #[must_use]
    pub fn grid(self, most: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        let mut octave = FIRST_SIZE as usize;
        while octave <= most {
            sizes.push(octave);
            let half = octave + octave / 2;
            if self.per_octave() == 2 && half <= most {
                sizes.push(half);
            }
            octave *= 2;
        }
        sizes
    }
}

/// From here on blocks are given back when freed, so that a program often writes to pages that it
/// has never touched. Below, kernels around the cache are out of place anyway.
const FRESH_FROM: usize = 4 << 20;

/// The states in which an operation of that size is measured.
fn states(bench: &Bench, effort: Effort, operation: Operation, size: usize) -> Vec<State> {
    let mut states = vec![State::Warm];
    if operation == Operation::Move {
        states.push(State::Overlap);
        return states;
    }
    if size <= bench.machine.caches.llc.bytes / 4 {
        states.push(State::Misaligned);
    }
    let stores = !matches!(operation, Operation::Compare | Operation::Equal);
    if stores && size >= NON_TEMPORAL_FROM {
        if operation == Operation::Copy {
            states.push(State::Aliased);
        }
        states.push(State::Read);
        states.push(State::Beside);
        // A minute and more of page faults: not in a quick tuning.
        if effort != Effort::Quick && size >= FRESH_FROM && size.is_power_of_two() {
            states.push(State::Fresh);
        }
    }
    states
}

/// The work of a cell in bytes moved or so, for the time left.
fn work(operation: Operation, size: usize, state: &State, candidates: usize) -> f64 {
    let touches = match operation {
        Operation::Copy | Operation::Move => 2.0,
        _ => 1.0,
    };
    let after = match state {
        State::Read => 1.0,
        State::Beside => 3.0,
        // The faults, and the call that is not counted.
        State::Fresh => 10.0,
        _ => 0.0,
    };
    // Samples of small cells are as long as the clock demands, whatever their size.
    const SHORTEST: f64 = 2e6;
    (size as f64 * (touches + after)).max(SHORTEST) * candidates as f64
}

/// Where rows go as they are finished.
pub type Sink<'s> = dyn FnMut(&Row) -> Result<(), LabError> + 's;

/// Measures what decisions need.
pub struct Tuner<'t> {
    /// The machine.
    pub bench: &'t mut Bench,
    /// How much is measured.
    pub effort: Effort,
    /// The largest operation measured, where the effort's own is not wanted.
    pub largest: Option<usize>,
    /// Told of progress, asked whether to stop.
    pub observer: &'t mut dyn Progress,
    /// Given every row.
    pub sink: &'t mut Sink<'t>,
}

/// What stopped a stage before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing did.
    Done,
    /// The user did.
    Interrupted,
}

impl Tuner<'_> {
    /// The largest operation that may be measured.
    fn most(&self) -> usize {
        let possible = self.bench.largest_size();
        let wanted = self.effort.largest(self.bench.machine.caches.llc.bytes);
        self.largest.unwrap_or(wanted).clamp(FIRST_SIZE as usize, possible)
    }

    fn plan(&self) -> Plan {
        Plan {
            rounds: self.effort.rounds(),
            screening_rounds: 3,
            drop_ratio: 1.3,
            ..Plan::default()
        }
    }

    fn ask(
        &mut self,
        experiment: &str,
        (operation, size, state): (Operation, usize, State),
        routines: &[Routine],
        rows: &mut Vec<Row>,
    ) -> Result<Stage, LabError> {
        let mut plan = self.plan();
        // Through the cache all write alike to pages that the operating system has just zeroed there.
        let around: Vec<Routine> = routines
            .iter()
            .enumerate()
            .filter(|(index, routine)| {
                *index == 0
                    || cachewise_kernels::find(&routine.name).is_some_and(Kernel::is_non_temporal)
            })
            .map(|(_, routine)| routine.clone())
            .collect();
        let routines = if state == State::Fresh { &around } else { routines };
        // Outside the first state every candidate counts at every size.
        if state != State::Warm || routines.len() <= MOST_FINALISTS {
            plan.screening_rounds = 0;
        }
        let check = matches!(state, State::Warm | State::Overlap);
        let cell = match state {
            State::Misaligned => Cell::misaligned(),
            State::Overlap => Cell::overlapping(),
            State::Aliased => Cell::aliased(),
            State::Fresh => Cell::fresh(),
            State::Read => Cell::read(),
            State::Beside => Cell::beside(self.bench.bystander_bytes(size)),
            _ => Cell::warm(),
        };
        let task = Task { experiment, operation, size, cell, plan };
        let stop = || self.observer.cancelled();
        let answered = match self.bench.routines(&task, routines, check, &stop) {
            Err(LabError::Interrupted) => return Ok(Stage::Interrupted),
            found => found?.rows(),
        };
        for row in &answered {
            (self.sink)(row)?;
        }
        rows.extend(answered);
        self.observer.advance(
            &format!("{operation} {}", cachewise_measure::units::bytes(size as u64)),
            work(operation, size, &state, routines.len()),
        );
        Ok(Stage::Done)
    }

    /// Measures the whole grid; rows that are finished when the user stops it stay.
    ///
    /// # Errors
    /// Wrong bytes, refused memory, a sink that fails.
    pub fn grid(&mut self, rows: &mut Vec<Row>) -> Result<Stage, LabError> {
        let sizes = self.effort.grid(self.most());
        let (_, stage) = self.cells("measuring", EXPERIMENT, &sizes, None, rows)?;
        Ok(stage)
    }

    /// Every operation at every size: the whole field warm at all sizes, then the operation's
    /// finalists in the other states, the same at every size, so that neighbouring sizes can be
    /// compared kernel by kernel.
    fn cells(
        &mut self,
        what: &str,
        experiment: &str,
        sizes: &[usize],
        given: Option<&Finalists>,
        rows: &mut Vec<Row>,
    ) -> Result<(Finalists, Stage), LabError> {
        let mut total = 0.0;
        for operation in cachewise::profile::OPERATIONS {
            for &size in sizes {
                let field = field(operation, size, self.bench).len();
                for state in states(self.bench, self.effort, operation, size) {
                    let candidates = match state {
                        State::Warm if given.is_none() => field,
                        _ => field.min(MOST_FINALISTS),
                    };
                    total += work(operation, size, &state, candidates);
                }
            }
        }
        self.observer.begin(what, total);
        let mut finalists = given.cloned().unwrap_or_default();
        for operation in cachewise::profile::OPERATIONS {
            let begun = rows.len();
            // A move apart is its copy's loop: the copy's finalists are the move's field.
            let mut known = match operation {
                Operation::Move => finalists.get(&Operation::Copy).cloned(),
                _ => finalists.get(&operation).cloned(),
            };
            for warm in [true, false] {
                for &size in sizes {
                    let mut routines = field(operation, size, self.bench);
                    if let Some(known) = &known {
                        keep(&mut routines, known);
                    }
                    for state in states(self.bench, self.effort, operation, size) {
                        if (state == State::Warm) != warm {
                            continue;
                        }
                        let cell = (operation, size, state);
                        if self.ask(experiment, cell, &routines, rows)? == Stage::Interrupted {
                            return Ok((finalists, Stage::Interrupted));
                        }
                    }
                }
                if known.is_none() {
                    let best = finalists_of(&rows[begun..]);
                    finalists.insert(operation, best.clone());
                    known = Some(best);
                }
            }
        }
        Ok((finalists, Stage::Done))
    }

    /// Narrows every crossover of `evidence` to a quarter of an octave by measuring the two kernels
    /// in between, and returns the decisions.
    ///
    /// # Errors
    /// As [`grid`](Tuner::grid).
    pub fn decisions(
        &mut self,
        evidence: &Evidence,
        rows: &mut Vec<Row>,
    ) -> Result<(Vec<Decided>, Stage), LabError> {
        let mut chosen = Vec::new();
        let mut crossings = 0.0;
        for operation in cachewise::profile::OPERATIONS {
            for &reuse in hints(operation) {
                let choices = evidence.choices(operation, reuse);
                for (below, _) in decide::crossovers(&choices) {
                    crossings += 2.0 * 3.0 * below.max(1 << 20) as f64 * 8.0;
                }
                chosen.push((operation, reuse, choices));
            }
        }
        self.observer.begin("narrowing crossovers", crossings);
        let mut known: BTreeMap<(Operation, usize, String, String), Vec<Row>> = BTreeMap::new();
        let mut decided = Vec::new();
        for (operation, reuse, choices) in chosen {
            let mut stage = Stage::Done;
            let mut failure = None;
            let ranges = decide::ranges(&choices, FIRST_SIZE as usize, |below, above| {
                let names = |size: usize| {
                    choices.iter().find(|(s, _)| *s == size).map(|(_, name)| name.clone())
                };
                let (Some(lower), Some(upper)) = (names(below), names(above)) else {
                    return above;
                };
                let (mut low, mut high) = (below, above);
                for _ in 0..2 {
                    let middle = low.midpoint(high);
                    if stage == Stage::Interrupted || failure.is_some() || middle - low < 32 {
                        break;
                    }
                    let key = (operation, middle, lower.clone(), upper.clone());
                    let answered = match known.get(&key) {
                        Some(answered) => answered.clone(),
                        None => match self.between(operation, middle, &[&lower, &upper]) {
                            Ok((answered, Stage::Done)) => {
                                rows.extend(answered.iter().cloned());
                                known.insert(key, answered.clone());
                                answered
                            }
                            Ok((_, Stage::Interrupted)) => {
                                stage = Stage::Interrupted;
                                break;
                            }
                            Err(error) => {
                                failure = Some(error);
                                break;
                            }
                        },
                    };
                    let here = Evidence::new(&answered).on(&self.bench.machine.caches);
                    let here = here.at(operation, reuse, middle);
                    match here.best() {
                        Some(best) if best.kernel == upper => high = middle,
                        _ => low = middle,
                    }
                }
                class_start(low.midpoint(high))
            });
            if let Some(error) = failure {
                return Err(error);
            }
            decided.extend(
                ranges
                    .into_iter()
                    .map(|range| Decided { operation, reuse, range })
                    .collect::<Vec<_>>(),
            );
            if stage == Stage::Interrupted {
                return Ok((decided, stage));
            }
        }
        Ok((decided, Stage::Done))
    }

    /// Two kernels against libc, in every state.
    fn between(
        &mut self,
        operation: Operation,
        size: usize,
        names: &[&str],
    ) -> Result<(Vec<Row>, Stage), LabError> {
        let mut rows = Vec::new();
        // What a move costs the reader and the bystander, its copy tells (see `Evidence`).
        let mut asked = vec![(operation, names.iter().map(|name| (*name).to_owned()).collect())];
        if operation == Operation::Move && size >= NON_TEMPORAL_FROM {
            let copies: Vec<String> =
                names.iter().map(|name| name.replacen("move.", "copy.", 1)).collect();
            asked.push((Operation::Copy, copies));
        }
        for (operation, names) in asked {
            let mut routines = vec![libc_reference(operation)];
            let kernels = names.iter().filter_map(|name| cachewise_kernels::find(name));
            routines.extend(kernels.map(Routine::from));
            for state in states(self.bench, self.effort, operation, size) {
                let stage = self.ask(EXPERIMENT, (operation, size, state), &routines, &mut rows)?;
                if stage == Stage::Interrupted {
                    return Ok((rows, stage));
                }
            }
        }
        Ok((rows, Stage::Done))
    }

    /// Measures the grid's finalists and every kernel decided for at sizes the grid did not have,
    /// and says, within the guards of `decide`, how much slower the
    /// chosen kernel was there than the best.
    ///
    /// # Errors
    /// As [`grid`](Tuner::grid).
    pub fn regrets(
        &mut self,
        decided: &[Decided],
        rows: &mut Vec<Row>,
    ) -> Result<(Vec<Regret>, Stage), LabError> {
        let sizes = unseen(self.bench.seed, self.effort, self.most());
        let mut fresh = Vec::new();
        let what = "checking the decisions at other sizes";
        // The kernels decided for, and the finalists they were decided from.
        let grid: Vec<Row> =
            rows.iter().filter(|row| row.experiment == EXPERIMENT).cloned().collect();
        let mut field = Finalists::new();
        for operation in cachewise::profile::OPERATIONS {
            let of_it: Vec<Row> =
                grid.iter().filter(|row| row.cell.operation == operation.name()).cloned().collect();
            let mut techniques = finalists_of(&of_it);
            let chosen = decided.iter().filter(|d| d.operation == operation);
            techniques.extend(
                chosen
                    .filter_map(|d| cachewise_kernels::find(&d.range.kernel))
                    .map(Kernel::technique),
            );
            techniques.sort_unstable();
            techniques.dedup();
            field.insert(operation, techniques);
        }
        // A move is weighed with its copy's rows, so the copy has to know the move's kernels.
        let of_move = field.get(&Operation::Move).cloned().unwrap_or_default();
        let of_copy = field.entry(Operation::Copy).or_default();
        of_copy.extend(of_move);
        of_copy.sort_unstable();
        of_copy.dedup();
        let (_, stage) = self.cells(what, REGRET, &sizes, Some(&field), &mut fresh)?;
        if stage == Stage::Interrupted {
            rows.extend(fresh);
            return Ok((Vec::new(), stage));
        }
        let evidence = Evidence::new(&fresh).on(&self.bench.machine.caches);
        let mut regrets = Vec::new();
        for operation in cachewise::profile::OPERATIONS {
            for &reuse in hints(operation) {
                for &size in &sizes {
                    regrets.extend(evidence.regret(decided, operation, reuse, size));
                }
            }
        }
        rows.extend(fresh);
        Ok((regrets, Stage::Done))
    }

    /// The library itself, following the profile just installed, against libc.
    ///
    /// # Errors
    /// As [`grid`](Tuner::grid).
    pub fn library(&mut self, rows: &mut Vec<Row>) -> Result<Stage, LabError> {
        let sizes = self.effort.grid(self.most());
        let operations = cachewise::profile::OPERATIONS;
        let total = sizes.iter().map(|&size| work(Operation::Copy, size, &State::Warm, 2));
        self.observer
            .begin("the library against libc", total.sum::<f64>() * operations.len() as f64);
        for operation in operations {
            let routines = [libc_reference(operation), crate::routines::library(operation)];
            for &size in &sizes {
                let stage = self.ask(LIBRARY, (operation, size, State::Warm), &routines, rows)?;
                if stage == Stage::Interrupted {
                    return Ok(stage);
                }
            }
        }
        Ok(Stage::Done)
    }

    /// The library by one thread and by more, following the profile just installed.
    ///
    /// # Errors
    /// As [`grid`](Tuner::grid).
    pub fn parallel(&mut self, rows: &mut Vec<Row>) -> Result<Stage, LabError> {
        let plan = Plan { screening_rounds: 0, ..self.plan() };
        let most = self.most();
        let found = crate::experiments::parallel::tune(
            PARALLEL,
            self.bench,
            &plan,
            most,
            self.observer,
            self.sink,
        );
        match found {
            Err(LabError::Interrupted) => return Ok(Stage::Interrupted),
            found => rows.extend(found?),
        }
        Ok(Stage::Done)
    }
}

/// Per operation, the techniques that are measured in every state.
type Finalists = BTreeMap<Operation, Vec<&'static str>>;

/// Temporal kernels (string instructions among them) that go on to the other states.
const TEMPORAL_FINALISTS: usize = 4;
/// Non-temporal kernels that do.
const NON_TEMPORAL_FINALISTS: usize = 2;
/// All of them with libc.
const MOST_FINALISTS: usize = 1 + TEMPORAL_FINALISTS + NON_TEMPORAL_FINALISTS;

/// Techniques that between them come nearest to the fastest at every size of an operation's warm
/// rows: each further one is the one that lowers the sum of log ratios most.
fn finalists_of(rows: &[Row]) -> Vec<&'static str> {
    /// What a kernel that was not measured at a size counts as there.
    const ABSENT: f64 = 1.0;
    let mut sizes: BTreeMap<u64, BTreeMap<&'static str, f64>> = BTreeMap::new();
    let mut kernels: Vec<&'static Kernel> = Vec::new();
    for row in rows.iter().filter(|row| row.cell.state == State::Warm) {
        let (Some(ratio), Some(kernel)) = (row.ratio, cachewise_kernels::find(&row.candidate))
        else {
            continue;
        };
        sizes.entry(row.cell.size).or_default().insert(kernel.technique(), ratio.median.ln());
        if !kernels.iter().any(|known| known.name == kernel.name) {
            kernels.push(kernel);
        }
    }
    let mut chosen: Vec<&'static str> = Vec::new();
    for (non_temporal, count) in [(false, TEMPORAL_FINALISTS), (true, NON_TEMPORAL_FINALISTS)] {
        let mut of_kind: Vec<&'static str> = Vec::new();
        // Around the cache pays where it pays; below, every such kernel is equally out of place.
        let from = if non_temporal { 1 << 20 } else { 0 };
        for _ in 0..count {
            let total = |candidate: &'static str| -> f64 {
                sizes
                    .range(from..)
                    .map(|(_, at)| {
                        of_kind
                            .iter()
                            .chain(std::iter::once(&candidate))
                            .map(|technique| at.get(technique).copied().unwrap_or(ABSENT))
                            .fold(f64::MAX, f64::min)
                    })
                    .sum()
            };
            let best = kernels
                .iter()
                .filter(|kernel| kernel.is_non_temporal() == non_temporal)
                .map(|kernel| kernel.technique())
                .filter(|technique| !of_kind.contains(technique))
                .min_by(|a, b| total(a).total_cmp(&total(b)));
            of_kind.extend(best);
        }
        chosen.extend(of_kind);
    }
    chosen
}

/// Leaves the reference and the kernels of those techniques.
fn keep(routines: &mut Vec<Routine>, techniques: &[&str]) {
    routines.retain(|routine| {
        cachewise_kernels::find(&routine.name)
            .is_none_or(|kernel| techniques.contains(&kernel.technique()))
    });
}

/// Who competes: libc first, then the candidates.
fn field(operation: Operation, size: usize, bench: &Bench) -> Vec<Routine> {
    let mut routines = vec![libc_reference(operation)];
    routines.extend(candidates(operation, size, bench.features).into_iter().map(Routine::from));
    routines
}

/// Sizes that are on no grid, drawn from the seed: one per two octaves or so, some odd.
fn unseen(seed: u64, effort: Effort, most: usize) -> Vec<usize> {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x5EED);
    let most = most.max(2 * FIRST_SIZE as usize) as f64 * 0.9;
    let first = (FIRST_SIZE as f64).ln();
    let count = match effort {
        Effort::Quick => 6,
        Effort::Standard => 10,
        Effort::Thorough => 14,
    };
    let step = (most.ln() - first) / count as f64;
    (0..count)
        .map(|index| {
            let size = (first + step * (index as f64 + random.f64())).exp() as usize;
            let size = if random.bool() { size } else { size & !63 };
            size.max(FIRST_SIZE as usize)
        })
        .collect()
}

/// The start of the library's size class that is nearest to `size` from below.
fn class_start(size: usize) -> usize {
    *cachewise::size_class(size as u64).start() as usize
}
