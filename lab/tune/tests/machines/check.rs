//! Checks of a simulated machine's tuning against the truth that only the simulation knows.

use crate::simulated::{Kind, Simulated, arm_of};
use cachewise::Reuse;
use cachewise::profile::{Decision, FIRST_SIZE, OPERATIONS, hints};
use cachewise_judge::margin::HEADLINE;
use cachewise_kernels::Operation;
use cachewise_measure::{LabError, Residency, Row};
use cachewise_tune::recording;
use cachewise_tune::rounds::Evidence;
use cachewise_tune::say::Tuned;
use cachewise_tune::seam::{Contents, Destination, Layout, TuningCell};
use cachewise_tune::tuner;
use cachewise_tune::tuning::{Ruling, Settings, Tuning};

/// Over all seeds; in percent where not said otherwise.
#[derive(Debug, Default)]
pub struct TuningOutcome {
    /// Seconds, the longest.
    pub seconds: f64,
    /// Error of the line of progress, of the whole time.
    pub time_left: f64,
    /// Median over tunings of the largest loss, and the largest.
    pub worst_median: f64,
    pub worst: f64,
    /// Cells that lose more than 3 %.
    pub lossy: f64,
    /// Cells that the referee passed and that lose more than 3 %, in number.
    pub refereed_lossy: usize,
    pub refereed: usize,
    pub regret_median: f64,
    pub regret_p90: f64,
    pub agreement: f64,
    pub from_previous: f64,
    /// libc's time over the library's in the geometric mean, less 1.
    pub gain: f64,
    pub ranges: usize,
    pub repairs: f64,
    pub rounds: f64,
    pub libc: f64,
}

/// The sizes at which a tuning is checked.
pub fn sizes() -> impl Iterator<Item = usize> {
    (0..161).map(|step| 2f64.powf(8.0 + 18.0 * step as f64 / 160.0) as usize)
}

/// The states that count at a size.
pub fn cells(operation: Operation, size: usize) -> Vec<TuningCell> {
    let cell = |destination| TuningCell::new(operation, size, destination);
    let mut cells = Destination::ALL.map(cell).to_vec();
    let mut lying = |layout| cells.push(TuningCell { layout, ..cell(Destination::Cached) });
    lying(Layout::Misaligned);
    match operation {
        Operation::Move => {
            lying(Layout::OverlapUp);
            lying(Layout::OverlapDown);
        }
        Operation::Copy if (4096..=1 << 20).contains(&size) => lying(Layout::Aliased),
        Operation::Compare | Operation::Equal => {
            let unequal = |to| TuningCell { contents: Contents::Unequal, ..cell(to) };
            cells.extend([Destination::Cached, Destination::Evicted].map(unequal));
        }
        _ => {}
    }
    cells
}

/// Logarithm of the library's time over libc's where its decision is an arm.
pub fn over_libc(kind: &Kind, arm: usize, cell: &TuningCell) -> f64 {
    let libc = kind.truth(0, cell);
    let arm = kind.called(arm, cell);
    if arm == 0 { kind.handed_over(libc, cell) - libc } else { kind.truth(arm, cell) - libc }
}

/// Loss of a decision for libc in one of the cells of a size, in percent.
fn handed_over(kind: &Kind, cells: &[TuningCell]) -> f64 {
    cells.iter().map(|cell| percent(over_libc(kind, 0, cell))).fold(0.0, f64::max)
}

/// Loss that is allowed there: 3, or that.
pub fn allowed(kind: &Kind, cells: &[TuningCell]) -> f64 {
    handed_over(kind, cells).max(3.0)
}

/// The mean over both states of the destination: what regret and agreement are about.
fn value(kind: &Kind, arm: usize, operation: Operation, size: usize) -> f64 {
    let both = [Destination::Cached, Destination::Evicted];
    both.map(|state| over_libc(kind, arm, &TuningCell::new(operation, size, state)))
        .iter()
        .sum::<f64>()
        / 2.0
}

/// Gain that an arm forgoes against the best arm that loses nowhere more than is allowed, in percent.
pub fn regret(kind: &Kind, arm: usize, operation: Operation, size: usize) -> f64 {
    let cells = cells(operation, size);
    let allowed = allowed(kind, &cells);
    let guarded =
        |arm: &usize| cells.iter().all(|cell| percent(over_libc(kind, *arm, cell)) <= allowed);
    let best = (0..kind.costs(operation).len())
        .filter(guarded)
        .map(|arm| value(kind, arm, operation, size))
        .fold(f64::MAX, f64::min);
    percent(value(kind, arm, operation, size) - best)
}

pub fn percent(log: f64) -> f64 {
    100.0 * (log.exp() - 1.0)
}

fn quantile(values: &mut [f64], q: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[((values.len() - 1) as f64 * q).round() as usize]
}

/// Tunes, until the user stops it at a visit; and how wrong the time left was, at its worst, in parts of the
/// whole time that the tuning took.
pub fn run(
    kind: &Kind,
    seed: u64,
    previous: Vec<Decision>,
    stop_after: u64,
) -> (Result<(Tuning, f64), LabError>, Evidence) {
    let mut machine = Simulated::new(kind.clone(), seed);
    machine.stop_after = stop_after;
    let mut evidence = Evidence::default();
    let settings = Settings { budget: kind.budget, seed: seed ^ 0x5EED, previous };
    let tuned = tuner::run(&mut machine, &settings, &mut evidence).map(|tuning| {
        let wrong = machine.told.iter().map(|(at, left)| (at + left - tuning.seconds).abs());
        let wrong = wrong.fold(0.0, f64::max) / tuning.seconds;
        (tuning, wrong)
    });
    (tuned, evidence)
}

pub fn tune(kind: &Kind, seed: u64, previous: Vec<Decision>) -> (Tuning, Evidence) {
    let (tuned, evidence) = run(kind, seed, previous, u64::MAX);
    (tuned.expect("nothing stops it").0, evidence)
}

/// A tuning that the user stops at that visit.
pub fn interrupted(kind: &Kind, visits: u64) -> (LabError, Evidence) {
    let (tuned, evidence) = run(kind, 4, Vec::new(), visits);
    (tuned.map(|_| ()).expect_err("stopped"), evidence)
}

/// Decisions for an operation and hint, in the order of sizes.
pub fn decided(
    decisions: &[Decision],
    operation: Operation,
    reuse: Reuse,
) -> impl Iterator<Item = &Decision> {
    decisions.iter().filter(move |d| d.operation == operation && d.reuse == reuse)
}

/// Every operation and hint, contiguous from the first size to the last.
pub fn assert_whole(decisions: &[Decision]) {
    for operation in OPERATIONS {
        for &reuse in hints(operation) {
            let mut next = FIRST_SIZE;
            for decision in decided(decisions, operation, reuse) {
                assert_eq!(decision.from, next, "{decision:?}");
                assert!(decision.to >= decision.from, "{decision:?}");
                next = decision.to.wrapping_add(1);
            }
            assert_eq!(next, 0, "{operation} {reuse:?} ends early");
        }
    }
}

/// The number of sizes at which two profiles agree: the same kernel or within 3 %.
pub fn agreement(kind: &Kind, one: &[Decision], other: &[Decision]) -> f64 {
    let (mut same, mut all) = (0, 0);
    for &operation in kind.table.keys() {
        for size in sizes() {
            let cell = TuningCell::new(operation, size, Destination::Cached);
            let [a, b] = [one, other].map(|decisions| arm_of(kind, decisions, &cell));
            let apart = value(kind, a, operation, size) - value(kind, b, operation, size);
            same += usize::from(a == b || apart.abs() <= 1.03f64.ln());
            all += 1;
        }
    }
    100.0 * same as f64 / all as f64
}

fn ranges(decisions: &[Decision]) -> usize {
    let of = |operation| decided(decisions, operation, Reuse::Unknown).count();
    OPERATIONS.map(of).into_iter().max().unwrap_or(0)
}

/// Returns the cells of the decisions that `tune` and `explain` would print with a loss of more than 3 %; not those of calls
/// on the same operands, where libc's own way through the library may take longer.
pub fn printed_losses(tuning: &Tuning, rows: &[Row]) -> Vec<String> {
    let decisions = &recording::decisions(tuning);
    let printed = Tuned { decisions, rows, libc: "libc", warnings: &[], llc: None }.library();
    let lost = |row: &Row| {
        let ratio = row.ratio.expect("of the library").median;
        let is_repeated = row.cell.destination == Some(Residency::Repeated);
        (!is_repeated && ratio > 1.0 + HEADLINE).then(|| format!("{:?}: {ratio}", row.cell))
    };
    printed.iter().filter_map(lost).collect()
}

/// Tunes a machine with several seeds, each once more from the profile that it made.
pub fn check(kind: &Kind, seeds: u64) -> TuningOutcome {
    let mut outcome = TuningOutcome::default();
    let mut profiles: Vec<Vec<Decision>> = Vec::new();
    let (mut losses, mut regrets, mut worst, mut agreements, mut again) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut libc, mut all, mut lossy) = (0u32, 0u32, 0usize);
    for seed in 0..seeds {
        let tune = |seed, previous| {
            let (tuned, evidence) = run(kind, seed, previous, u64::MAX);
            (tuned.expect("nothing stops it"), evidence)
        };
        let (tuned, evidence) = tune(1000 + seed, Vec::new());
        let (next, later) = tune(9000 + seed, tuned.0.decisions.clone());
        for (tuning, evidence) in [(&tuned.0, &evidence), (&next.0, &later)] {
            assert_eq!(printed_losses(tuning, &evidence.rows()), [""; 0], "seed {seed}");
        }
        again.push(agreement(kind, &tuned.0.decisions, &next.0.decisions));
        let mut of_this = f64::MIN;
        for (tuning, wrong) in [&tuned, &next] {
            outcome.time_left = outcome.time_left.max(100.0 * wrong);
            outcome.seconds = outcome.seconds.max(tuning.seconds);
            outcome.ranges = outcome.ranges.max(ranges(&tuning.decisions));
            for seen in tuning.refereed.iter().filter(|r| r.in_use && r.cell.script.is_none()) {
                assert!(seen.verdict == Ruling::Kept, "{seen:?} is in use");
                let arm = arm_of(kind, &tuning.decisions, &seen.cell);
                outcome.refereed += 1;
                let loss = percent(over_libc(kind, arm, &seen.cell));
                if loss > allowed(kind, &cells(seen.cell.operation, seen.cell.size)) {
                    println!("loses {loss:.1} %: {seen:?}");
                    outcome.refereed_lossy += 1;
                }
            }
            for &operation in kind.table.keys() {
                for size in sizes() {
                    let cells = cells(operation, size);
                    let arm = arm_of(kind, &tuning.decisions, &cells[0]);
                    libc += u32::from(arm == 0);
                    all += 1;
                    let handed_over = handed_over(kind, &cells);
                    let allowed = handed_over.max(3.0);
                    for cell in &cells {
                        let arm = arm_of(kind, &tuning.decisions, cell);
                        let loss = percent(over_libc(kind, arm, cell));
                        losses.push(loss);
                        lossy += usize::from(loss > allowed);
                        // A loss that a decision for libc has too is not counted.
                        let given = loss <= handed_over;
                        of_this = of_this.max(if given { 0.0 } else { loss });
                    }
                    regrets.push(regret(kind, arm, operation, size));
                }
            }
        }
        let tuning = tuned.0;
        outcome.rounds += evidence.rounds() as f64 / seeds as f64;
        outcome.repairs += tuning.repairs.len() as f64 / seeds as f64;
        worst.push(of_this);
        agreements.extend(profiles.iter().map(|p| agreement(kind, p, &tuning.decisions)));
        profiles.push(tuning.decisions);
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    outcome.lossy = 100.0 * lossy as f64 / losses.len() as f64;
    let logs: Vec<f64> = losses.iter().map(|loss| (1.0 + loss / 100.0).ln()).collect();
    outcome.gain = percent(-mean(&logs));
    outcome.worst = worst.iter().copied().fold(f64::MIN, f64::max);
    outcome.worst_median = quantile(&mut worst, 0.5);
    outcome.regret_median = quantile(&mut regrets, 0.5);
    outcome.regret_p90 = quantile(&mut regrets, 0.9);
    outcome.agreement = mean(&agreements);
    outcome.from_previous = mean(&again);
    outcome.libc = 100.0 * f64::from(libc) / f64::from(all);
    outcome
}

impl TuningOutcome {
    pub const HEADER: &str = "| machine | seconds | worst loss median/max % | cells > 3 % | refereed > 3 % | regret median/p90 % | two seeds agree % | from previous % | gain % | ranges | repairs | rounds | libc % |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|";

    pub fn line(&self, name: &str) -> String {
        let TuningOutcome { seconds, worst_median, worst, lossy, refereed_lossy, refereed, .. } =
            self;
        let TuningOutcome { regret_median, regret_p90, agreement, from_previous, gain, .. } = self;
        let TuningOutcome { ranges, repairs, rounds, libc, .. } = self;
        format!(
            "| {name} | {seconds:.1} | {worst_median:.1}/{worst:.1} | {lossy:.2} | {refereed_lossy}/{refereed} | {regret_median:.1}/{regret_p90:.1} | {agreement:.1} | {from_previous:.1} | {gain:.1} | {ranges} | {repairs:.1} | {rounds:.0} | {libc:.0} |"
        )
    }
}
