//! `zeroing-engines`: what it costs to zero memory by each engine of a pool, in batches (seed 003.4, .19).
//!
//! A row's time is the CPU's: what an engine takes from whoever else would run. Beside it stand what a reader of
//! the last batch pays, and what a bystander on another CPU loses while the engine works; all three are the whole
//! cost. How fast the engine is, is a figure.

mod engines;

use crate::prelude::*;
use crate::threads;
use cachewise_measure::Bystander;
use engines::Arm;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "zeroing-engines",
    about: "what zeroes memory in the background: CPU, system, GPU; its CPU time, the reader, a bystander",
    seeds: &["003.4", "003.19"],
    operations: &[Operation::Zero],
    takes: &["--size"],
    tables,
    figures,
    today: &[ENGINE_AROUND],
    serves: Serves::Pool,
    run: Some(run),
    ..PLAIN
};

/// Bytes that each engine zeroes in a sample.
const MEMORY: usize = 64 << 20;
/// Bytes of a batch: what a pool's scrubber submits, a huge page, what a device needs for its full rate.
const BATCHES: [usize; 3] = [512 << 10, HUGE_PAGE, 32 << 20];
/// Walks of the bystander in a sample.
const WALKS: usize = 4;

fn figures() -> Vec<Figure> {
    let bars = |title, value| Figure::bars(title, value).by(&["size"]).of(ENGINE);
    vec![
        bars("Whole cost of zeroing by engine", "cost"),
        bars("Time that a bystander loses for a GB", BYSTANDER_PER_GB),
    ]
}

/// Times of a batch, by round.
#[derive(Default)]
struct BatchTimes {
    cpu: Vec<f64>,
    wall: Vec<f64>,
    reader: Vec<f64>,
    bystander: Vec<f64>,
}

fn run(setting: &mut Setting) -> Result {
    setting.whole("huge pages", HUGE_PAGE)?;
    let own = if setting.options.quick { &BATCHES[1..] } else { &BATCHES[..] };
    let batches = setting.sizes_or(own.iter().copied());
    let largest = batches.iter().copied().max().unwrap_or(HUGE_PAGE);
    let size = MEMORY.max(largest);
    let most = MemoryBudget::process().limit() / 4;
    if size > most {
        return nothing(format!(
            "{size} bytes for each engine do not fit a quarter of the memory budget"
        ));
    }
    let (mut arms, why_not) = engines::all(size)?;
    if let Some(why) = &why_not {
        setting.out.note(format!("left out {ENGINE_CUDA}: {why}"))?;
    }
    let beyond = 4 * setting.bench.machine.caches.l2.bytes;
    let bystander = if std::thread::available_parallelism().map_or(1, usize::from) > 1 {
        Some(Bystander::new(beyond, setting.bench.seed)?)
    } else {
        setting.out.note("left out the bystander: there is no other CPU")?;
        None
    };
    setting.begin(batches.len() as f64);
    for batch in batches {
        let mut found: Vec<BatchTimes> = arms.iter().map(|_| BatchTimes::default()).collect();
        setting.in_turns(arms.len(), batch, |at| {
            let clock = &setting.bench.clock;
            sample(&mut arms[at], batch, clock, bystander.as_ref(), &mut found[at])
        })?;
        let rows = rows(setting, batch, &arms, &found);
        setting.out.rows(rows)?;
        setting.out.advance(&bytes(batch), 1.0);
    }
    Ok(())
}

fn sample(
    arm: &mut Arm,
    batch: usize,
    clock: &Clock,
    bystander: Option<&Bystander>,
    found: &mut BatchTimes,
) -> Result {
    arm.write();
    let zeroed = arm.zero(clock, batch)?;
    found.reader.push(arm.read_last(clock, batch));
    arm.check()?;
    let batches = (MEMORY.max(batch) / batch) as f64;
    found.cpu.push(zeroed.cpu / batches);
    found.wall.push(zeroed.wall / batches);
    if let Some(bystander) = bystander {
        found.bystander.push(lost(arm, batch, clock, bystander)?);
    }
    Ok(())
}

/// Nanoseconds that the bystander loses for a batch which an engine zeroes meanwhile on another CPU.
fn lost(arm: &mut Arm, batch: usize, clock: &Clock, bystander: &Bystander) -> Result<f64> {
    let walks = || clock.time(|| (0..WALKS).for_each(|_| bystander.walk()));
    let quiet = || {
        bystander.walk();
        walks()
    };
    let before = quiet();
    let (passes, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (beside, ended) = std::thread::scope(|scope| {
        let zeroing = threads::start(scope, || {
            while !stop.load(Ordering::Relaxed) {
                arm.pass(batch)?;
                passes.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        let zeroing = match zeroing {
            Ok(zeroing) => zeroing,
            Err(refused) => return (0.0, Err(refused)),
        };
        while passes.load(Ordering::Relaxed) == 0 && !zeroing.is_finished() {
            std::thread::yield_now();
        }
        let (mut beside, begun) = (0.0, passes.load(Ordering::Relaxed));
        let mut walked = 0.0;
        // At least two whole passes.
        while passes.load(Ordering::Relaxed) < begun + 2 && !zeroing.is_finished() {
            beside += walks();
            walked += 1.0;
        }
        let done = passes.load(Ordering::Relaxed) - begun;
        stop.store(true, Ordering::Relaxed);
        let ended = zeroing.join().unwrap_or_else(|_| nothing("the thread that zeroes panicked"));
        // Alone before and after, so that a clock that rises meanwhile cancels out.
        let alone = f64::midpoint(before, quiet());
        let batches = done as f64 * (MEMORY.max(batch) / batch) as f64;
        ((beside - walked * alone) / batches.max(1.0), ended)
    });
    ended.map(|()| beside)
}

fn rows(setting: &Setting, batch: usize, arms: &[Arm], found: &[BatchTimes]) -> Vec<Row> {
    let cell = CellKey::new("zero", batch, ENGINE);
    let per_gb = |times: &[f64], unit: f64| stats::median(times) * 1e9 / batch as f64 / unit;
    let whole = |found: &BatchTimes| {
        let parts = found.reader.iter().enumerate();
        let bystander = |round: usize| found.bystander.get(round).copied().unwrap_or(0.0);
        parts
            .map(|(round, reader)| found.cpu[round] + reader + bystander(round))
            .collect::<Vec<_>>()
    };
    let first = &found[0];
    let row = |(arm, own): (&Arm, &BatchTimes)| {
        let (ours, theirs) = ((arm.name, &own.cpu[..]), (ENGINE_AROUND, &first.cpu[..]));
        let mut row = setting.compared(cell.clone(), ours, theirs).with(&[
            (ENGINE_GBPS, batch as f64 / stats::median(&own.wall)),
            (CPU_PER_GB, per_gb(&own.cpu, 1e9)),
        ]);
        if !own.bystander.is_empty() {
            row = row.with(&[(BYSTANDER_PER_GB, per_gb(&own.bystander, 1e6))]);
        }
        row.reader_ns = own.reader.clone();
        row.bystander_ns = own.bystander.clone();
        row.total_ratio = Some(PairedRatio::paired(&whole(own), &whole(first)));
        row.verdict = row.said();
        row
    };
    arms.iter().zip(found).map(row).collect()
}

/// The engine that costs least here, in a sentence: CPU time and what a reader pays afterwards, for a GB in batches
/// of a huge page. It takes a tenth of a second, and has no bystander.
///
/// # Errors
/// Refused memory; an engine that fails.
pub fn least_cost(clock: &Clock) -> Result<String, LabError> {
    const ROUNDS: usize = 5;
    let size = 4 * HUGE_PAGE;
    let (mut arms, why_not) = engines::all(size)?;
    let mut costs: Vec<(f64, &'static str)> = Vec::new();
    for arm in &mut arms {
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            arm.write();
            let zeroed = arm.zero(clock, HUGE_PAGE)?;
            let reader = arm.read_last(clock, HUGE_PAGE);
            arm.check()?;
            rounds.push(zeroed.cpu / size as f64 + reader / HUGE_PAGE as f64);
        }
        costs.push((stats::median(&rounds), arm.name));
    }
    costs.sort_by(|one, other| one.0.total_cmp(&other.0));
    let told: Vec<_> = costs.iter().map(|(cost, name)| format!("{name} {cost:.2} s")).collect();
    let why_not = why_not.map_or(String::new(), |why| format!("; {why}"));
    let least = costs.first().map_or("none", |(_, name)| name);
    Ok(format!("{least} costs least (CPU and reader, a GB: {}{why_not})", told.join(", ")))
}

fn of(row: &Row, name: &str, digits: usize) -> String {
    or_dash(row.figure(name), |value| format!("{value:.digits$}"))
}

/// A bystander's loss for a GB, ms; none where noise made it negative.
fn lost_by(row: &Row) -> Option<f64> {
    row.figure(BYSTANDER_PER_GB).filter(|lost| *lost >= 0.0)
}

const ENGINES: [Column<Row>; 7] = [
    ("engine", |row| row.candidate.clone()),
    (">batch", |row| bytes(row.cell.size)),
    (">GB/s", |row| of(row, ENGINE_GBPS, 1)),
    (">CPU s a GB", |row| of(row, CPU_PER_GB, 3)),
    (">reader ns a line", |row| significant(median(&row.reader_ns) * 64.0 / row.cell.size as f64)),
    (">bystander ms a GB", |row| or_dash(lost_by(row), |lost| format!("{lost:.1}"))),
    (">cost", |row| {
        let ratio = row.total_ratio.filter(|_| row.is_measurable());
        or_dash(ratio, |ratio| format!("{ratio:.2}"))
    }),
];

const SERVICES: [Column<Row>; 6] = [
    ("zeroed by", |row| row.candidate.clone()),
    (">own work", |row| time(axis(row, "work_us") * 1000.0)),
    (">requests a second", |row| of(row, "requests_per_s", 0)),
    (">p50", |row| time(row.figure("p50_ns").unwrap_or(f64::NAN))),
    (">p99", |row| time(row.figure("p99_ns").unwrap_or(f64::NAN))),
    (">found zeroed", |row| {
        or_dash(row.figure(HIT_SHARE), |share| format!("{:.0} %", 100.0 * share))
    }),
];

fn tables(rows: &[Row]) -> Vec<Table> {
    let of_state =
        |state: &str| rows.iter().filter(|row| row.cell.state == state).collect::<Vec<_>>();
    let mut tables = Vec::new();
    let (engines, services) = (of_state(ENGINE), of_state("busy service"));
    if !engines.is_empty() {
        let mut table = Table::listing("Zeroing by engine and batch", &ENGINES, engines);
        table.remark(
            "cost: CPU, reader of the last batch and bystander (where measured), over the first engine's",
        );
        tables.push(table);
    }
    if !services.is_empty() {
        tables.push(Table::listing("A service with all CPUs busy", &SERVICES, services));
    }
    tables
}
