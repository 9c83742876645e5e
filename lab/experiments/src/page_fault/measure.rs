//! `page-fault`: what a page costs that is zero when it is first touched (seed 003.11 to .15).
//!
//! Every arm hands out the same pages and touches so many lines of each: the kernel's own fault
//! with 4 KiB pages and with huge ones, faults on pages that are ready (`ready`: what prezeroing
//! inside the fault could give), populating ahead, `calloc`, and the page pool in three states:
//! nothing zeroed (it zeroes at hand-out), all zeroed before, and drained ten times over while its
//! scrubber works. All zeroing is billed to somebody: the scrubber's CPU stands in a column of its
//! own and in the total. One fault is timed by the size of its page (`by_size`), and pages just used
//! against pages zeroed long ago (`hot`). Memory is made resident ahead by threads (`prefault`). What the page costs
//! later, when all of it is read, is timed too.

mod arms;
mod by_size;
mod hot;
mod latency;
mod prefault;
mod ready;

use super::PREFAULTED;
use crate::backing::Backing;
use crate::prelude::*;
use arms::{Arm, FaultCell, PAGE_LINES, Pools, Sample};
use cachewise_measure::turns;
use std::time::{Duration, Instant};

/// Axis: touched lines as a fraction of the page.
const TOUCHED: &str = "touched";

/// Repetitions that deplete the pool (003.11).
const DRAINING: usize = 10;
/// Rounds that a cell has, however slow the machine is: with fewer there is no verdict.
const FEWEST: usize = stats::LEAST_ROUNDS;
/// For how long cells are sampled altogether; what a fault costs differs tenfold between machines,
/// and who waits should know for how long. Asking for rounds or for another size lifts it.
const LIMIT: Duration = Duration::from_secs(200);
/// [`LIMIT`] with `--quick`.
const QUICK_LIMIT: Duration = Duration::from_secs(25);
pub(super) fn figures() -> Vec<Figure> {
    let curve = |title, value| {
        Figure::new(title, FigureKind::Curve, TOUCHED, value).by(&[THREADS, REPS]).of(FAULT)
    };
    vec![
        curve(
            "Taking and touching a page: time over the kernel's 4 KiB fault, 1 is break-even",
            "ratio",
        ),
        curve("Taking, touching and reading all of it: nanoseconds per page", "ns"),
        curve("CPU per page, zeroing by whomever included", TOTAL_CPU),
        Figure::curve("Making memory resident, by threads", THREADS, "gbps")
            .by(&["state", PAGE_BYTES])
            .of(&PREFAULTED.join("|")),
    ]
}

fn cells(setting: &Setting) -> Vec<FaultCell> {
    let options = setting.options;
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let all = (0..=PAGE_LINES.ilog2()).map(|power| 1 << power);
    let all = if options.quick { vec![1, 8, PAGE_LINES] } else { all.collect() };
    let own = match (options.classic, options.quick) {
        (true, _) => 256 << 20,
        (_, true) => 16 << 20,
        _ => 64 << 20,
    };
    let mut threads = if options.classic { vec![1, 2] } else { vec![1, cpus] };
    threads.dedup();
    let pages = options.sizes.first().copied().unwrap_or(own) / PAGE_SIZE;
    let mut cells = Vec::new();
    for reps in [1, DRAINING] {
        for &threads in &threads {
            cells.extend(all.iter().map(|&lines| FaultCell { pages, lines, threads, reps }));
        }
    }
    cells
}

pub(super) fn run(setting: &mut Setting) -> Result {
    setting.whole("pages", PAGE_SIZE)?;
    if let [_, second, ..] = setting.options.sizes[..] {
        let accepted = "one size: bytes handed out per repetition";
        return Err(LabError::unsuited("--size", format!("a second one, {second}"), accepted));
    }
    let cells = cells(setting);
    let pages = cells[0].pages;
    let pools = Pools::new(pages * PAGE_SIZE)?;
    pools.notes().into_iter().try_for_each(|note| setting.out.note(note))?;
    check_bytes(&pools, pages)?;
    let rounds = setting.plan(false).rounds;
    let mut left: f64 = cells.iter().map(FaultCell::weight).sum();
    setting.begin(left);
    let limited = setting.options.rounds.is_none() && setting.options.sizes.is_empty();
    let limit = limited.then_some(if setting.options.quick { QUICK_LIMIT } else { LIMIT });
    let begun = Instant::now();
    let mut shortened = Vec::new();
    let mut backing = Backing::new(pages * PAGE_SIZE);
    for cell in &cells {
        // Memory that one cell does not need is there for the others.
        let share =
            limit.map(|limit| limit.saturating_sub(begun.elapsed()).mul_f64(cell.weight() / left));
        let samples = sample(&pools, cell, (rounds, share), &mut backing, setting)?;
        let had = samples[0].1.len();
        if had < rounds {
            shortened.push(had);
        }
        left -= cell.weight();
        setting.out.rows(cell_rows(cell, &samples, setting))?;
        setting.out.advance(&format!("{} lines", cell.lines), cell.weight());
    }
    if let (Some(least), Some(limit)) = (shortened.iter().min(), limit) {
        setting.out.note(format!(
            "{} of {} cells were sampled in fewer rounds than {rounds} (at least {least}), so that \
             they take {} s together: intervals say what that costs, --rounds {rounds} takes the time",
            shortened.len(),
            cells.len(),
            limit.as_secs()
        ))?;
    }
    backing.note("pages handed out").into_iter().try_for_each(|note| setting.out.note(note))?;
    drop(pools);
    for rows in [by_size::rows, hot::rows, latency::rows, prefault::rows] {
        let rows = rows(setting)?;
        setting.out.rows(rows)?;
    }
    Ok(())
}

fn check_bytes(pools: &Pools, pages: usize) -> Result<u64> {
    let mut read = 0;
    for (arm, _) in Arm::ALL {
        // Twice: the second time the pages were written before.
        for _ in 0..2 {
            read += arms::check(arm, pools, pages)?;
        }
    }
    Ok(read)
}

type Taken = (Arm, Vec<Sample>);

/// One sample of each arm per round, in turns, in as many rounds as there is time for; the kernel's
/// first.
fn sample(
    pools: &Pools,
    cell: &FaultCell,
    (rounds, limit): (usize, Option<Duration>),
    backing: &mut Backing,
    setting: &Setting,
) -> Result<Vec<Taken>> {
    let here = Arm::ALL.into_iter().filter(|(arm, _)| arm.takes_part(cell.reps > 1));
    let mut samples: Vec<Taken> = here.map(|(arm, _)| (arm, Vec::new())).collect();
    let begun = Instant::now();
    let orders = turns::orders(samples.len(), rounds, setting.bench.seed ^ cell.lines as u64);
    for (round, order) in orders.into_iter().enumerate() {
        if round >= FEWEST && limit.is_some_and(|limit| begun.elapsed() >= limit) {
            break;
        }
        for turn in order {
            setting.go_on()?;
            let (arm, taken) = &mut samples[turn];
            taken.push(backing.sample(|| arms::sample(*arm, pools, cell))?);
        }
    }
    Ok(samples)
}

fn cell_rows(cell: &FaultCell, samples: &[Taken], setting: &Setting) -> Vec<Row> {
    let handed = (cell.pages * cell.reps) as f64;
    let per_page = |of: &[Sample], value: fn(&Sample) -> f64, pages: f64| -> Vec<f64> {
        of.iter().map(|sample| value(sample) * 1e9 / pages).collect()
    };
    let wall = |of: &[Sample]| per_page(of, |sample| sample.wall, handed);
    let later = |of: &[Sample]| per_page(of, |sample| sample.later, cell.pages as f64);
    let cpu =
        |of: &[Sample]| per_page(of, |it| it.user + it.system + it.scrub + it.release, handed);
    let (_, theirs) = &samples[0];
    let key = CellKey::new("zero", PAGE_SIZE, FAULT).with(&[
        (LINES, cell.lines as f64),
        (TOUCHED, cell.lines as f64 / PAGE_LINES as f64),
        (THREADS, cell.threads as f64),
        (REPS, cell.reps as f64),
    ]);
    let kernel = Row { reader_ns: later(theirs), operation_ns: wall(theirs), ..Row::default() };
    let row = |(arm, of): &Taken| {
        let middle =
            |value: fn(&Sample) -> f64| stats::median(&of.iter().map(value).collect::<Vec<f64>>());
        let (user, system) = (middle(|sample| sample.user), middle(|sample| sample.system));
        let figures = [
            (GIGABYTES, handed * PAGE_SIZE as f64 / 1e9),
            (USER, user),
            ("system_s", system),
            ("wall_s", middle(|sample| sample.wall)),
            (SCRUB, middle(|sample| sample.scrub)),
            (PER_CPU, handed / (user + system)),
            ("fault_per_wall_s", handed / middle(|sample| sample.wall)),
            (FAULTS, middle(|sample| sample.faults) / handed),
            (TOTAL_CPU, stats::median(&cpu(of))),
        ];
        let (ours, theirs) =
            ((arm.name(), &wall(of)[..]), (KERNEL_FAULT, &kernel.operation_ns[..]));
        let mut row = setting.compared(key.clone(), ours, theirs).with(&figures);
        row.calls = u32::try_from(cell.pages * cell.reps).unwrap_or(u32::MAX);
        row.reader_ns = later(of);
        let totals = (row.total_ns(), kernel.total_ns());
        row.total_ratio = Some(PairedRatio::paired(&totals.0, &totals.1));
        row.verdict = row.said();
        row
    };
    let mut rows: Vec<Row> = samples.iter().map(row).collect();
    if (cell.lines, cell.threads, cell.reps) == (PAGE_LINES, 1, 1) {
        // A figure has no launches, and so no word.
        let key = CellKey::new("zero", PAGE_SIZE, CPU_OF_PAGE);
        let row = |(arm, of): &Taken| {
            setting.compared(key.clone(), (arm.name(), &cpu(of)), (KERNEL_FAULT, &cpu(theirs)))
        };
        rows.extend(samples.iter().map(row));
    }
    rows
}
