//! The tuner: a grid of cells, decisions from their rows, narrowed crossovers, and a second look at
//! sizes the decisions were not made from.
//!
//! Measuring and deciding are apart: [`Tuner`] produces rows, [`Evidence`] reads rows and says what
//! they imply. So a record can be decided from again, and several launches can be decided from
//! together.

use crate::LabError;
use crate::bench::{Answer, Bench, Question, State};
use crate::contestants::{LIBC, Routine, libc_reference};
use crate::decide::{self, AtSize, Cost, Range};
use crate::select::{NON_TEMPORAL_FROM, candidates};
use crate::watch::Observer;
use cachewise::Reuse;
use cachewise::profile::{FIRST_SIZE, hints};
use cachewise_kernels::{Kernel, Operation};
use cachewise_measure::{PairedRatio, Plan, Row};
use std::collections::BTreeMap;

/// The name under which its rows stand in records.
pub const EXPERIMENT: &str = "tune";
/// The name of the rows that re-measure decisions.
pub const REGRET: &str = "tune-regret";
/// The name of the rows that compare the library, following the new profile, with libc.
pub const LIBRARY: &str = "tune-library";

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// One size per octave up to 64 MiB, 15 rounds.
    Quick,
    /// Two sizes per octave up to 128 MiB, 21 rounds.
    Standard,
    /// As standard, 31 rounds and up to 256 MiB, in several launches.
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
            Effort::Quick => 15,
            Effort::Standard => 21,
            Effort::Thorough => 31,
        }
    }

    fn largest(self) -> usize {
        match self {
            Effort::Quick => 64 << 20,
            Effort::Standard => 128 << 20,
            Effort::Thorough => 256 << 20,
        }
    }

    fn per_octave(self) -> usize {
        match self {
            Effort::Quick => 1,
            Effort::Standard | Effort::Thorough => 2,
        }
    }

    /// The sizes decided from, as far as `most` bytes per operation allow.
    #[must_use]
    pub fn grid(self, most: usize) -> Vec<usize> {
        let mut sizes = Vec::new();
        let mut octave = FIRST_SIZE as usize;
        while octave <= self.largest().min(most) {
            sizes.push(octave);
            let half = octave + octave / 2;
            if self.per_octave() == 2 && half <= self.largest().min(most) {
                sizes.push(half);
            }
            octave *= 2;
        }
        sizes
    }
}

/// The states in which an operation of that size is measured.
fn states(bench: &Bench, operation: Operation, size: usize) -> Vec<State> {
    let mut states = vec![State::Warm];
    if operation == Operation::Move {
        states.push(State::Overlap);
        return states;
    }
    if size <= bench.machine.caches.llc.bytes / 4 {
        states.push(State::Askew);
    }
    let stores = !matches!(operation, Operation::Compare | Operation::Equal);
    if stores && size >= NON_TEMPORAL_FROM {
        states.push(State::Read);
        states.push(State::Beside { bystander: bench.bystander_bytes(size) });
    }
    states
}

/// The work of a cell in bytes moved or so, for the time left.
fn work(operation: Operation, size: usize, state: State, contestants: usize) -> f64 {
    let touches = match operation {
        Operation::Copy | Operation::Move => 2.0,
        _ => 1.0,
    };
    let after = match state {
        State::Read => 1.0,
        State::Beside { .. } => 3.0,
        _ => 0.0,
    };
    // Samples of small cells are as long as the clock demands, whatever their size.
    const SHORTEST: f64 = 2e6;
    (size as f64 * (touches + after)).max(SHORTEST) * contestants as f64
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
    pub observer: &'t mut dyn Observer,
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
        self.largest.unwrap_or(possible).clamp(FIRST_SIZE as usize, possible)
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
        if routines.len() <= 3 {
            plan.screening_rounds = 0;
        }
        let question = Question {
            experiment,
            operation,
            size,
            state,
            routines,
            plan,
            verify: matches!(state, State::Warm | State::Overlap),
        };
        let Answer { rows: answered, interrupted, .. } =
            self.bench.ask(&question, self.observer)?;
        if interrupted {
            return Ok(Stage::Interrupted);
        }
        for row in &answered {
            (self.sink)(row)?;
        }
        rows.extend(answered);
        self.observer.advance(
            &format!("{operation} {}", crate::experiments::short_bytes(size)),
            work(operation, size, state, routines.len()),
        );
        Ok(Stage::Done)
    }

    /// Measures the whole grid; rows that are finished when the user stops it stay.
    ///
    /// # Errors
    /// Wrong bytes, refused memory, a sink that fails.
    pub fn grid(&mut self, rows: &mut Vec<Row>) -> Result<Stage, LabError> {
        let sizes = self.effort.grid(self.most());
        self.cells("measuring", EXPERIMENT, &sizes, rows)
    }

    /// Every operation at every size: the whole field warm, then the finalists in the other states.
    fn cells(
        &mut self,
        what: &str,
        experiment: &str,
        sizes: &[usize],
        rows: &mut Vec<Row>,
    ) -> Result<Stage, LabError> {
        let mut total = 0.0;
        for operation in cachewise::profile::OPERATIONS {
            for &size in sizes {
                let field = field(operation, size, self.bench).len();
                for state in states(self.bench, operation, size) {
                    let contestants = match state {
                        State::Warm if operation != Operation::Move => field,
                        _ => field.min(MOST_FINALISTS),
                    };
                    total += work(operation, size, state, contestants);
                }
            }
        }
        self.observer.begin(what, total);
        let mut finalists: BTreeMap<(Operation, usize), Vec<&'static str>> = BTreeMap::new();
        for operation in cachewise::profile::OPERATIONS {
            for &size in sizes {
                let mut routines = field(operation, size, self.bench);
                // A move apart is its copy's loop: the copy's finalists are the move's field.
                if let Some(of_copy) = finalists.get(&(Operation::Copy, size))
                    && operation == Operation::Move
                {
                    keep(&mut routines, of_copy);
                }
                for state in states(self.bench, operation, size) {
                    let before = rows.len();
                    let stage = self.ask(experiment, (operation, size, state), &routines, rows)?;
                    if stage == Stage::Interrupted {
                        return Ok(stage);
                    }
                    if state == State::Warm && operation != Operation::Move {
                        let best = finalists_of(&rows[before..]);
                        keep(&mut routines, &best);
                        finalists.insert((operation, size), best);
                    }
                }
            }
        }
        Ok(Stage::Done)
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
                    let here = Evidence::new(&answered).at(operation, reuse, middle);
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
            for state in states(self.bench, operation, size) {
                let stage = self.ask(EXPERIMENT, (operation, size, state), &routines, &mut rows)?;
                if stage == Stage::Interrupted {
                    return Ok((rows, stage));
                }
            }
        }
        Ok((rows, Stage::Done))
    }

    /// Measures every candidate again at sizes the grid did not have, and says how much slower the
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
        let stage = self.cells(what, REGRET, &sizes, &mut fresh)?;
        if stage == Stage::Interrupted {
            rows.extend(fresh);
            return Ok((Vec::new(), stage));
        }
        let evidence = Evidence::new(&fresh);
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
        let total = sizes.iter().map(|&size| work(Operation::Copy, size, State::Warm, 2));
        self.observer
            .begin("the library against libc", total.sum::<f64>() * operations.len() as f64);
        for operation in operations {
            let routines = [libc_reference(operation), crate::contestants::library(operation)];
            for &size in &sizes {
                let stage = self.ask(LIBRARY, (operation, size, State::Warm), &routines, rows)?;
                if stage == Stage::Interrupted {
                    return Ok(stage);
                }
            }
        }
        Ok(Stage::Done)
    }
}

/// Most contestants that go on to the states after the first, libc included.
const MOST_FINALISTS: usize = 6;

/// Techniques of the three fastest temporal and the two fastest non-temporal kernels among a warm
/// cell's rows; those that store by a string instruction count as temporal.
fn finalists_of(rows: &[Row]) -> Vec<&'static str> {
    let mut ranked: Vec<(f64, &Kernel)> = rows
        .iter()
        .filter_map(|row| Some((row.ratio?.median, cachewise_kernels::find(&row.contestant)?)))
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let first = |non_temporal: bool, count: usize| {
        ranked
            .iter()
            .filter(move |(_, kernel)| kernel.is_non_temporal() == non_temporal)
            .take(count)
            .map(|(_, kernel)| kernel.technique())
    };
    first(false, MOST_FINALISTS - 3).chain(first(true, 2)).collect()
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
    let most = effort.largest().min(most).max(2 * FIRST_SIZE as usize) as f64 * 0.9;
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

/// A decision: one operation, one hint, one range of sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// What is done.
    pub operation: Operation,
    /// The caller's hint.
    pub reuse: Reuse,
    /// Sizes and kernel.
    pub range: Range,
}

impl Decided {
    fn covers(&self, operation: Operation, reuse: Reuse, size: usize) -> bool {
        self.operation == operation
            && self.reuse == reuse
            && self.range.from <= size
            && self.range.to.is_none_or(|to| size <= to)
    }
}

/// How a decision fared at a size it was not made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Regret {
    /// What is done.
    pub operation: Operation,
    /// The caller's hint.
    pub reuse: Reuse,
    /// Bytes.
    pub size: usize,
    /// The kernel the profile names.
    pub chosen: String,
    /// The kernel that was best.
    pub best: String,
    /// Cost of the chosen over the cost of the best, less 1: 0.02 is 2 %.
    pub regret: f64,
}

/// Rows, and what they imply.
pub struct Evidence {
    /// (operation, size, state) -> kernel -> ratio to libc of the state's sum, one per launch.
    ratios: BTreeMap<(String, u64, String), BTreeMap<String, Vec<f64>>>,
    /// The same, with the samples behind them.
    pairs: BTreeMap<(String, u64, String), BTreeMap<String, PairedRatio>>,
}

impl Evidence {
    /// From the rows of one or several launches; rows of dropped contestants do not count.
    #[must_use]
    pub fn new(rows: &[Row]) -> Evidence {
        let mut evidence = Evidence { ratios: BTreeMap::new(), pairs: BTreeMap::new() };
        for row in rows.iter().filter(|row| !row.dropped) {
            let Some(ratio) = row.total_ratio.or(row.ratio) else { continue };
            if !ratio.median.is_finite() {
                continue;
            }
            let key = (row.cell.operation.clone(), row.cell.size, row.cell.state.clone());
            evidence
                .ratios
                .entry(key.clone())
                .or_default()
                .entry(row.contestant.clone())
                .or_default()
                .push(ratio.median);
            evidence.pairs.entry(key).or_default().insert(row.contestant.clone(), ratio);
        }
        evidence
    }

    /// A kernel's ratio to libc in one state, the median over launches.
    #[must_use]
    pub fn ratio(
        &self,
        operation: Operation,
        size: usize,
        state: &str,
        kernel: &str,
    ) -> Option<f64> {
        let key = (operation.name().to_owned(), size as u64, state.to_owned());
        self.ratios.get(&key)?.get(kernel).map(|ratios| cachewise_measure::stats::median(ratios))
    }

    /// The same with its interval, of the last launch.
    #[must_use]
    pub fn pair(
        &self,
        operation: Operation,
        size: usize,
        state: &str,
        kernel: &str,
    ) -> Option<PairedRatio> {
        let key = (operation.name().to_owned(), size as u64, state.to_owned());
        self.pairs.get(&key)?.get(kernel).copied()
    }

    /// Largest over smallest ratio of the same kernel in the same cell between launches: median
    /// over cells, and the worst. `None` for one launch.
    #[must_use]
    pub fn spread_between_launches(&self) -> Option<(f64, f64)> {
        let spreads: Vec<f64> = self
            .ratios
            .values()
            .flat_map(BTreeMap::values)
            .filter(|ratios| ratios.len() > 1)
            .map(|ratios| {
                let most = ratios.iter().copied().fold(f64::MIN, f64::max);
                let least = ratios.iter().copied().fold(f64::MAX, f64::min);
                most / least - 1.0
            })
            .collect();
        let worst = spreads.iter().copied().reduce(f64::max)?;
        Some((cachewise_measure::stats::median(&spreads), worst))
    }

    /// Sizes at which an operation was measured warm.
    #[must_use]
    pub fn sizes(&self, operation: Operation) -> Vec<usize> {
        self.ratios
            .keys()
            .filter(|(name, _, state)| name == operation.name() && state == State::Warm.label())
            .map(|(_, size, _)| *size as usize)
            .collect()
    }

    /// Every kernel's cost at a size under a hint, as METHODOLOGY.md weighs it.
    #[must_use]
    pub fn at(&self, operation: Operation, reuse: Reuse, size: usize) -> AtSize {
        let warm = (operation.name().to_owned(), size as u64, State::Warm.label().to_owned());
        let kernels = self.ratios.get(&warm).into_iter().flat_map(BTreeMap::keys);
        let costs = kernels
            .filter(|kernel| kernel.as_str() != LIBC)
            .filter_map(|kernel| self.cost(operation, reuse, size, kernel))
            .collect();
        AtSize { size, costs }
    }

    fn cost(&self, operation: Operation, reuse: Reuse, size: usize, kernel: &str) -> Option<Cost> {
        let measured = |state: &str| {
            let key = (operation.name().to_owned(), size as u64, state.to_owned());
            self.ratios.contains_key(&key)
        };
        let ratio = |state: &str| self.ratio(operation, size, state, kernel);
        // A state that was measured and where the kernel was dropped disqualifies it.
        let mut plain = vec![ratio("warm")?];
        for state in ["askew", "overlap"] {
            if measured(state) {
                plain.push(ratio(state)?);
            }
        }
        let mean = |values: &[f64]| {
            (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp()
        };
        // A move apart is the same loop as the copy of its technique, so reader and bystander are
        // measured behind the copy.
        let (afterwards, twin) = if operation == Operation::Move {
            (Operation::Copy, kernel.replacen("move.", "copy.", 1))
        } else {
            (operation, kernel.to_owned())
        };
        let after = |state: &str| self.ratio(afterwards, size, state, &twin);
        let after_measured = |state: &str| {
            let key = (afterwards.name().to_owned(), size as u64, state.to_owned());
            self.ratios.contains_key(&key)
        };
        let worst_plain = plain.iter().copied().fold(f64::MIN, f64::max);
        let plain = mean(&plain);
        let (ratio, worst) = match reuse {
            Reuse::Soon if after_measured("read") => (after("read")?, after("read")?),
            Reuse::Never if after_measured("beside") => (after("beside")?, after("beside")?),
            Reuse::Unknown if after_measured("read") && after_measured("beside") => {
                let (read, beside) = (after("read")?, after("beside")?);
                (plain.powf(0.5) * read.powf(0.25) * beside.powf(0.25), worst_plain)
            }
            _ => (plain, worst_plain),
        };
        Some(Cost { kernel: kernel.to_owned(), ratio, worst })
    }

    /// The kernel per size under a hint.
    #[must_use]
    pub fn choices(&self, operation: Operation, reuse: Reuse) -> Vec<(usize, String)> {
        let grid: Vec<AtSize> =
            self.sizes(operation).into_iter().map(|size| self.at(operation, reuse, size)).collect();
        decide::sequence(&grid)
    }

    fn regret(
        &self,
        decided: &[Decided],
        operation: Operation,
        reuse: Reuse,
        size: usize,
    ) -> Option<Regret> {
        let at = self.at(operation, reuse, size);
        let chosen = &decided.iter().find(|d| d.covers(operation, reuse, size))?.range.kernel;
        let best = at.costs.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        // A chosen kernel that was dropped in screening has no cost; its regret is what screening
        // drops at, at least.
        let regret = at
            .costs
            .iter()
            .find(|cost| cost.kernel == *chosen)
            .map_or(0.3, |cost| cost.ratio / best.ratio - 1.0);
        Some(Regret {
            operation,
            reuse,
            size,
            chosen: chosen.clone(),
            best: best.kernel.clone(),
            regret,
        })
    }
}

/// The kernel decided for a size under a hint.
#[must_use]
pub fn chosen(
    decided: &[Decided],
    operation: Operation,
    reuse: Reuse,
    size: usize,
) -> Option<&'static Kernel> {
    let decision = decided.iter().find(|d| d.covers(operation, reuse, size))?;
    cachewise_kernels::find(&decision.range.kernel)
}

/// Time over libc's of a decision's kernel in one state, over all rounds of all grid sizes in its
/// range; `None` where that was not measured.
#[must_use]
pub fn gains(rows: &[Row], decision: &Decided, state: &str) -> Option<PairedRatio> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut reference: Option<&Row> = None;
    for row in rows.iter().filter(|row| row.experiment == EXPERIMENT && row.cell.state == state) {
        let size = usize::try_from(row.cell.size).ok()?;
        if row.cell.operation != decision.operation.name()
            || !decision.covers(decision.operation, decision.reuse, size)
        {
            continue;
        }
        if row.contestant == LIBC {
            reference = Some(row);
        } else if row.contestant == decision.range.kernel
            && !row.dropped
            && let Some(libc) = reference.filter(|libc| libc.cell == row.cell)
        {
            let rounds = row.operation_ns.len().min(libc.operation_ns.len());
            ours.extend(whole(row).into_iter().take(rounds));
            theirs.extend(whole(libc).into_iter().take(rounds));
        }
    }
    (!ours.is_empty()).then(|| PairedRatio::new(&ours, &theirs, 0))
}

/// Operation, reader and bystander together, by round.
fn whole(row: &Row) -> Vec<f64> {
    let part = |times: &[f64], round: usize| times.get(round).copied().unwrap_or(0.0);
    row.operation_ns
        .iter()
        .enumerate()
        .map(|(round, time)| time + part(&row.reader_ns, round) + part(&row.bystander_ns, round))
        .collect()
}
