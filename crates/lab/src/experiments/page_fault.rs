//! `page-fault`: what a page costs that is zero when it is first touched (seed 003.11 to .15).
//!
//! Every arm hands out the same pages and touches so many lines of each: the kernel's own fault with
//! 4 KiB pages and with huge ones, populating ahead, `calloc`, and the page pool in three states:
//! nothing zeroed (it zeroes at hand-out), all zeroed before, and drained ten times over while its
//! scrubber works. All zeroing is billed to somebody: the scrubber's CPU stands in a column of its own
//! and in the total. What the page costs later, when all of it is read, is timed too.

mod arms;
mod latency;
mod verdicts;

use super::common;
use super::support::{figure, key};
use super::{Experiment, Finish, Setting};
use crate::LabError;
use crate::bench::MARGIN;
use crate::watch::Observer;
use arms::{Arm, Pools, Sample};
use cachewise_kernels::PAGE_SIZE;
use cachewise_measure::{Figure, FigureKind, PairedRatio, Row, stats};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub use verdicts::verdicts;

/// Axis: lines of a page that are touched.
pub const LINES: &str = "cline";
/// Axis: the same as a fraction of the page.
pub const TOUCHED: &str = "touched";
/// Axis: threads that fault, each in pages of its own.
pub const THREADS: &str = "threads";
/// Axis: how often the pages are taken and given back in one sample.
pub const REPS: &str = "rep";

/// Row figures, seed 003's columns: pages handed out per second of the CPU and of the wall clock.
pub const PER_CPU: &str = "flt_per_cpu_s";
/// Row figure: see [`PER_CPU`].
pub const PER_WALL: &str = "fault_per_wall_s";
/// Row figures: seconds of one sample, of all threads together.
pub const USER: &str = "user_s";
/// Row figure: see [`USER`].
pub const SYSTEM: &str = "system_s";
/// Row figure: see [`USER`].
pub const WALL: &str = "wall_s";
/// Row figure: the scrubber's CPU, for zeroing these pages before or meanwhile.
pub const SCRUB: &str = "scrub_s";
/// Row figure: decimal gigabytes handed out in one sample.
pub const GIGABYTES: &str = "gb";
/// Row figure: page faults per page, as the system counts them.
pub const FAULTS: &str = "faults_per_page";
/// Row figure: nanoseconds of CPU per page: taking, touching, giving back, zeroing by whomever.
pub const TOTAL_CPU: &str = "total_cpu_ns";

/// Lines of a page.
pub(super) const PAGE_LINES: usize = PAGE_SIZE / 64;
/// The state of rows that hand out pages.
pub(super) const FAULT: &str = "fault";
/// Repetitions that deplete the pool (003.11).
const DRAINING: usize = 10;
/// Rounds that a cell has, however slow the machine is: with fewer there is no verdict.
const FEWEST: usize = stats::LEAST_ROUNDS;
/// For how long cells are sampled altogether; what a fault costs differs tenfold between machines,
/// and who waits should know for how long. Asking for rounds or for another size lifts it.
const LIMIT: Duration = Duration::from_secs(200);
/// The same with `--quick`.
const QUICK_LIMIT: Duration = Duration::from_secs(25);
/// What everything is compared with.
pub(super) const REFERENCE: &str = "kernel 4k";

/// Drawn: time over the kernel's by touched fraction (break-even is 1), CPU in all, latencies.
pub(super) fn figures() -> Vec<Figure> {
    let curve = |title: &str, value: &str| {
        figure(title, FigureKind::Curve, TOUCHED, value, &[THREADS, REPS], FAULT)
    };
    vec![
        curve(
            "Taking and touching a page: time over the kernel's 4 KiB fault, 1 is break-even",
            "ratio",
        ),
        curve("Taking, touching and reading all of it: nanoseconds per page", "ns"),
        curve("CPU per page, zeroing by whomever included", TOTAL_CPU),
        figure(
            "Latency of a zeroed page at hand-out",
            FigureKind::Histogram,
            "ns",
            "calls",
            &[],
            latency::STATE,
        ),
    ]
}

/// What is run: bytes, lines, threads and repetitions.
struct Grid {
    bytes: usize,
    lines: Vec<usize>,
    threads: Vec<usize>,
    reps: Vec<usize>,
}

fn grid(setting: &Setting<'_>) -> Grid {
    let options = setting.options;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let all: Vec<usize> = (0..=PAGE_LINES.ilog2()).map(|power| 1 << power).collect();
    let own = match (options.classic, options.quick) {
        (true, _) => 256 << 20,
        (_, true) => 16 << 20,
        _ => 64 << 20,
    };
    let mut threads = if options.classic { vec![1, 2] } else { vec![1, cpus] };
    threads.dedup();
    Grid {
        bytes: options.sizes.first().copied().unwrap_or(own),
        lines: if options.quick { vec![1, 8, PAGE_LINES] } else { all },
        threads,
        reps: vec![1, DRAINING],
    }
}

/// The experiment.
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    common::refuse_placements(setting, "a fresh page is wherever it was zeroed")?;
    common::whole_pages(&setting.options.sizes)?;
    let name = experiment.name;
    if setting.options.kernels.is_some() {
        let why = "its arms are ways to get a page, not kernels";
        return Err(LabError::OptionRefused { option: "--kernels", experiment: name, why });
    }
    if let [_, second, ..] = setting.options.sizes[..] {
        return Err(LabError::Unsuited {
            option: "--size",
            found: format!("a second one, {second}"),
            accepted: "one size: bytes handed out per repetition".to_owned(),
        });
    }
    let grid = grid(setting);
    let pages = grid.bytes / PAGE_SIZE;
    let pools = Pools::new(grid.bytes)?;
    for note in pools.notes() {
        (setting.notes)(note)?;
    }
    check_bytes(&pools, pages)?;
    let rounds = setting.plan(false).rounds;
    let cells = || {
        grid.reps.iter().flat_map(|&reps| {
            let lines = &grid.lines;
            grid.threads.iter().flat_map(move |&threads| {
                lines.iter().map(move |&lines| Cell { pages, lines, threads, reps })
            })
        })
    };
    let mut left: f64 = cells().map(|cell| cell.weight()).sum();
    setting.observer.begin(name, left);
    let free = setting.options.rounds.is_some() || setting.options.classic;
    let limit = match (free || !setting.options.sizes.is_empty(), setting.options.quick) {
        (true, _) => None,
        (_, true) => Some(QUICK_LIMIT),
        _ => Some(LIMIT),
    };
    let begun = Instant::now();
    let mut shortened = Vec::new();
    let mut random = fastrand::Rng::with_seed(setting.bench.seed);
    let mut rows = Vec::new();
    let mut finish = Finish::Complete;
    for cell in cells() {
        let observer: &dyn Observer = setting.observer;
        // What one cell does not need is there for the others.
        let share =
            limit.map(|limit| limit.saturating_sub(begun.elapsed()).mul_f64(cell.weight() / left));
        let Some(samples) = sample(&pools, &cell, (rounds, share), &mut random, observer)? else {
            finish = Finish::Interrupted;
            break;
        };
        let had = samples.first().map_or(0, |(_, samples)| samples.len());
        if had < rounds {
            shortened.push(had);
        }
        left -= cell.weight();
        for row in cell_rows(name, &cell, &samples, setting.bench.seed) {
            (setting.rows)(&row)?;
            rows.push(row);
        }
        setting.observer.advance(&format!("{} lines", cell.lines), cell.weight());
    }
    if let (Some(least), Some(limit)) = (shortened.iter().min(), limit) {
        (setting.notes)(format!(
            "{} of {} cells were sampled in fewer rounds than {rounds} (at least {least}), to end in \
             {} s: intervals say what that costs, --rounds {rounds} takes the time",
            shortened.len(),
            cells().count(),
            limit.as_secs()
        ))?;
    }
    drop(pools);
    if finish == Finish::Complete {
        for row in latency::rows(name, setting)? {
            (setting.rows)(&row)?;
            rows.push(row);
        }
        if setting.observer.cancelled() {
            finish = Finish::Interrupted;
        }
    }
    for verdict in verdicts(&rows) {
        (setting.verdicts)(verdict);
    }
    Ok(finish)
}

/// `--verify-only`: every arm's pages are read before they are touched. Returns the pages read.
///
/// # Errors
/// [`LabError::WrongBytes`] for a page that is not zero; refused memory.
pub fn verify(bytes: usize) -> Result<u64, LabError> {
    let pages = (bytes / PAGE_SIZE).max(1);
    check_bytes(&Pools::new(pages * PAGE_SIZE)?, pages)
}

fn check_bytes(pools: &Pools, pages: usize) -> Result<u64, LabError> {
    let mut read = 0;
    for arm in Arm::ALL {
        // Twice: the second time the pages were written before.
        for _ in 0..2 {
            pools.prepare(*arm)?;
            read += arms::check(*arm, pools, pages)?;
        }
    }
    Ok(read)
}

/// One cell's coordinates.
#[derive(Clone, Copy, Debug)]
struct Cell {
    pages: usize,
    lines: usize,
    threads: usize,
    reps: usize,
}

impl Cell {
    /// How long it takes, in arbitrary units: preparing and reading count like one repetition.
    fn weight(&self) -> f64 {
        (self.reps + 1) as f64 / self.threads as f64
    }
}

/// An arm's samples by round.
type Taken = (Arm, Vec<Sample>);

/// One sample of each arm per round, in shuffled order, in as many rounds as there is time for; nothing
/// when the user stopped it.
fn sample(
    pools: &Pools,
    cell: &Cell,
    (rounds, limit): (usize, Option<Duration>),
    random: &mut fastrand::Rng,
    observer: &dyn Observer,
) -> Result<Option<Vec<Taken>>, LabError> {
    let here = Arm::ALL.iter().filter(|arm| arm.takes_part(cell.reps > 1));
    let mut samples: Vec<Taken> = here.map(|arm| (*arm, Vec::new())).collect();
    let mut turns: Vec<usize> = (0..samples.len()).collect();
    let begun = Instant::now();
    for round in 0..rounds {
        if round >= FEWEST && limit.is_some_and(|limit| begun.elapsed() >= limit) {
            break;
        }
        random.shuffle(&mut turns);
        for &turn in &turns {
            if observer.cancelled() {
                return Ok(None);
            }
            let (arm, taken) = &mut samples[turn];
            let before = pools.prepare(*arm)?;
            taken.push(arms::sample(*arm, pools, cell, before)?);
        }
    }
    Ok(Some(samples))
}

fn cell_rows(name: &str, cell: &Cell, samples: &[Taken], seed: u64) -> Vec<Row> {
    let handed = (cell.pages * cell.reps) as f64;
    let per_page = |of: &[Sample], value: fn(&Sample) -> f64, pages: f64| -> Vec<f64> {
        of.iter().map(|sample| value(sample) * 1e9 / pages).collect()
    };
    let wall = |of: &[Sample]| per_page(of, |sample| sample.wall, handed);
    let later = |of: &[Sample]| per_page(of, |sample| sample.later, cell.pages as f64);
    let whole = |of: &[Sample]| -> Vec<f64> {
        wall(of).iter().zip(later(of)).map(|(now, later)| now + later).collect()
    };
    let reference = samples.iter().find(|(arm, _)| arm.name() == REFERENCE);
    let rows = samples.iter().map(|(arm, of)| {
        let middle =
            |value: fn(&Sample) -> f64| stats::median(&of.iter().map(value).collect::<Vec<f64>>());
        let (user, system) = (middle(|sample| sample.user), middle(|sample| sample.system));
        let scrub = middle(|sample| sample.scrub);
        let ratio = reference.map(|(_, theirs)| PairedRatio::new(&wall(of), &wall(theirs), seed));
        let total = reference.map(|(_, theirs)| PairedRatio::new(&whole(of), &whole(theirs), seed));
        let cpu =
            of.iter().map(|sample| sample.user + sample.system + sample.scrub + sample.release);
        let cpu: Vec<f64> = cpu.map(|seconds| seconds * 1e9 / handed).collect();
        Row {
            experiment: name.to_owned(),
            cell: key(
                "zero",
                PAGE_SIZE,
                (None, None),
                FAULT,
                &[
                    (LINES, cell.lines as f64),
                    (TOUCHED, cell.lines as f64 / PAGE_LINES as f64),
                    (THREADS, cell.threads as f64),
                    (REPS, cell.reps as f64),
                ],
            ),
            candidate: arm.name().to_owned(),
            reference: REFERENCE.to_owned(),
            calls: u32::try_from(cell.pages * cell.reps).unwrap_or(u32::MAX),
            operation_ns: wall(of),
            reader_ns: later(of),
            bystander_ns: Vec::new(),
            ratio,
            verdict: ratio.map(|ratio| ratio.verdict(MARGIN)),
            total_ratio: total,
            proofs: Vec::new(),
            drift: None,
            dropped: false,
            extra: BTreeMap::from(
                [
                    (GIGABYTES, handed * PAGE_SIZE as f64 / 1e9),
                    (USER, user),
                    (SYSTEM, system),
                    (WALL, middle(|sample| sample.wall)),
                    (SCRUB, scrub),
                    (PER_CPU, handed / (user + system)),
                    (PER_WALL, handed / middle(|sample| sample.wall)),
                    (FAULTS, middle(|sample| sample.faults) / handed),
                    (TOTAL_CPU, stats::median(&cpu)),
                ]
                .map(|(name, value)| (name.to_owned(), value)),
            ),
            histogram: None,
        }
    });
    rows.collect()
}
