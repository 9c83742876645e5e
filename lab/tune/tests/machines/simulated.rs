//! A machine in a box: a cost table behind the tuner's seam, with noise, weather and a virtual clock.

use crate::table::{Costs, FIRST, STEP, STEPS, Table, state, step};
use cachewise::profile::{Decision, OR_LIBC};
use cachewise_kernels::Operation;
use cachewise_measure::LabError;
use cachewise_tune::seam::{
    After, Arm, Ask, Class, Competitor, Contents, Destination, Facts, Layout, Machine, Sample,
    Stage, TuningCell, Visit,
};
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Properties of a machine. [`Simulated::new`] makes one from a seed.
#[derive(Clone)]
pub struct Kind {
    pub table: Table,
    pub facts: Facts,
    /// GB/s of restoring a state.
    pub bandwidth: f64,
    /// Factor of all noise.
    pub noise: f64,
    /// Part of the wall time that the process may run.
    pub quota: f64,
    /// True if a neighbour takes the LLC when half of the time is over.
    pub neighbour: bool,
    /// Slowdown from the beginning to the end.
    pub drift: f64,
    /// Factor of other processes' times on this CPU.
    pub steal: f64,
    /// True if the destination's state is restored before every sample.
    pub restores: bool,
    /// Time ratio of a kernel without string instructions at odd offsets to its time on lines.
    pub misaligned: f64,
    /// Extra cost of a call of libc through the library, in ns.
    pub handing_over: f64,
    /// From which second on non-temporal stores of 1 MiB and more take twice as long: somebody else writes
    /// to memory.
    pub memory_taken: f64,
    /// Seconds that the tuner has.
    pub budget: f64,
}

/// Standard deviation of a sample's logarithm by octave from 512 B on: cached, evicted, repeated (the
/// second least and greatest of eleven rounds on Cascade Lake).
const SCATTER: [[f64; 18]; 3] = [
    CACHED,
    [
        0.24, 0.176, 0.107, 0.10, 0.108, 0.068, 0.059, 0.04, 0.046, 0.03, 0.044, 0.038, 0.03,
        0.054, 0.03, 0.031, 0.02, 0.012,
    ],
    CACHED,
];
const CACHED: [f64; 18] = [
    0.054, 0.032, 0.024, 0.027, 0.032, 0.037, 0.02, 0.019, 0.011, 0.010, 0.025, 0.039, 0.032,
    0.044, 0.06, 0.046, 0.042, 0.013,
];
/// Between visits, t-distributed with three degrees of freedom: so that 13 % of pairs that were measured
/// twice have disjoint intervals, as in the record (17 of 130).
const EPOCH: f64 = 0.0065;
/// Between tunings.
const RUN: f64 = 0.006;
/// Seconds of one step of the weather.
const MOMENT: f64 = 0.05;

pub struct Simulated {
    kind: Kind,
    random: Rng,
    clock: f64,
    /// By moment: the LLC's load, the clock rate, and what steal adds.
    llc: Vec<f64>,
    rate: Vec<f64>,
    stolen: Vec<f64>,
    /// Costs of this tuning's layout: by operation, arm, state and size.
    run: BTreeMap<(Operation, usize, usize), Vec<f64>>,
    /// Factors of the LLC's load and of a neighbour, by arm.
    feels: BTreeMap<(Operation, usize), (f64, f64)>,
    /// True where the last writer left the destination in memory.
    evicted: BTreeMap<(Operation, usize), bool>,
    follows: Vec<Decision>,
    /// Scripts that were played: operation, hot, who and draw.
    played: BTreeSet<(Operation, bool, String, u64)>,
    /// Visits until the user stops it.
    pub stop_after: u64,
    /// When it was told how long the tuning still takes, and what.
    pub told: Vec<(f64, f64)>,
}

fn normal(random: &mut Rng) -> f64 {
    let (a, b) = (1.0 - random.f64(), random.f64());
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

fn exponential(random: &mut Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

fn student3(random: &mut Rng) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) / (squares / 3.0).sqrt()
}

/// An Ornstein-Uhlenbeck walk.
fn walk(random: &mut Rng, moments: usize, sd: f64, seconds: f64) -> Vec<f64> {
    let keep = (-MOMENT / seconds).exp();
    let fresh = sd * (1.0 - keep * keep).sqrt();
    let mut at = sd * normal(random);
    (0..moments)
        .map(|_| {
            at = at * keep + fresh * normal(random);
            at
        })
        .collect()
}

/// Part of an operation's time that is the LLC's.
fn in_llc(log2: f64) -> f64 {
    ((log2 - 19.5) / 1.5).clamp(0.0, 1.0) * ((26.2 - log2) / 2.0).clamp(0.0, 1.0)
}

impl Kind {
    pub fn costs(&self, operation: Operation) -> &[Costs] {
        &self.table[&operation]
    }

    /// Factors of the LLC's load and of a neighbour, by arm: properties of the machine.
    fn feels(&self) -> BTreeMap<(Operation, usize), (f64, f64)> {
        let mut random = Rng::with_seed(7);
        let mut feels = BTreeMap::new();
        for (operation, costs) in &self.table {
            for arm in 0..costs.len() {
                let one = (1.0 + 0.15 * normal(&mut random), 0.06 * normal(&mut random));
                feels.insert((*operation, arm), one);
            }
        }
        feels
    }

    /// Logarithm of the time over the aligned one of an arm between operands that lie otherwise.
    fn lying(&self, operation: Operation, arm: usize, layout: Layout) -> f64 {
        let competitor = &self.costs(operation)[arm].arm;
        let by_string = competitor.class == Class::Rep;
        let factor: f64 = match layout {
            Layout::Aligned => 1.0,
            Layout::Misaligned if by_string => 1.12,
            Layout::Misaligned if arm > 0 => self.misaligned,
            Layout::Misaligned => 1.05,
            Layout::Aliased if competitor.name.contains("pages") => 1.5,
            Layout::Aliased => 1.1,
            Layout::OverlapUp if by_string => 1.4,
            Layout::OverlapUp => 1.05,
            Layout::OverlapDown => 1.0,
        };
        // libc's are of every kind, by size.
        if arm == 0 { factor.min(1.08).ln() } else { factor.ln() }
    }

    /// The true logarithm of operation and reader, without this tuning's luck, over its whole time.
    pub fn truth(&self, arm: usize, cell: &TuningCell) -> f64 {
        let quiet = self.quiet(arm, cell);
        if !self.neighbour {
            return quiet;
        }
        let (_, neighbour) = self.feels()[&(cell.operation, arm)];
        quiet + 0.5 * in_llc((cell.size as f64).log2()) * (0.35 + neighbour)
    }

    /// The logarithm of libc's time where the library calls it, of that where it is called directly.
    pub fn handed_over(&self, libc: f64, cell: &TuningCell) -> f64 {
        if is_small(cell) { libc } else { (libc.exp() + self.handing_over).ln() }
    }

    /// The arm that the library calls where its decision is that.
    pub fn called(&self, arm: usize, cell: &TuningCell) -> usize {
        let name = self.facts.below_libc[cachewise::entry::place(cell.operation)];
        let other = name.filter(|_| is_small(cell) && arm == 0);
        other.and_then(|name| self.position(cell.operation, name)).unwrap_or(arm)
    }

    /// The arm of a name.
    fn position(&self, operation: Operation, name: &str) -> Option<usize> {
        self.costs(operation).iter().position(|costs| costs.arm.name == name)
    }

    fn quiet(&self, arm: usize, cell: &TuningCell) -> f64 {
        let log2 = (cell.size as f64).log2();
        let at = &self.costs(cell.operation)[arm].total[state(cell.destination)];
        // Sizes above the table cost as much per byte.
        let beyond = ((log2 - FIRST) - STEP * (STEPS - 1) as f64).max(0.0) * 2f64.ln();
        let cost = beyond
            + match cell.contents {
                Contents::Equal => at[step(cell.size)],
                // The logarithm of the first difference's place is as likely anywhere: the mean over it.
                Contents::Unequal => {
                    let place = |nth: i32| 2f64.powf(log2 * (f64::from(nth) + 0.5) / 16.0) as usize;
                    ((0..16).map(|nth| at[step(place(nth))].exp()).sum::<f64>() / 16.0).ln()
                }
            };
        cost + self.lying(cell.operation, arm, cell.layout)
    }
}

/// Returns whether libc leaves such calls to the library's own loops.
fn is_small(cell: &TuningCell) -> bool {
    (cell.size as u64) < cachewise::profile::libc_from(cell.operation)
}

impl Simulated {
    pub fn new(kind: Kind, seed: u64) -> Simulated {
        let mut random = Rng::with_seed(seed);
        let r = &mut random;
        let moments = (kind.budget / MOMENT) as usize + 2000;
        let llc = walk(r, moments, 0.08 * kind.noise, 15.0);
        let rate = walk(r, moments, 0.01, 5.0);
        let mut stolen = vec![0.0; moments];
        let mut at = 0.0;
        loop {
            at += 12.0 / kind.steal * exponential(r);
            let long = 0.3 * kind.steal * normal(r).exp();
            let (from, to) = ((at / MOMENT) as usize, ((at + long) / MOMENT) as usize + 1);
            if from >= moments {
                break;
            }
            let much = 0.2 * (exponential(r) + exponential(r)) * kind.noise;
            stolen[from..to.min(moments)].fill(much);
        }
        let mut run = BTreeMap::new();
        for (operation, costs) in &kind.table {
            for arm in 0..costs.len() {
                for state in 0..Destination::ALL.len() {
                    // Luck changes over an octave or so.
                    let knots: Vec<f64> = (0..20).map(|_| RUN * normal(r)).collect();
                    let luck = (0..STEPS).map(|step| {
                        let at = step as f64 * STEP;
                        let part = at.fract();
                        knots[at as usize] * (1.0 - part) + knots[at as usize + 1] * part
                    });
                    run.insert((*operation, arm, state), luck.collect());
                }
            }
        }
        let feels = kind.feels();
        Simulated {
            clock: 0.05 * kind.budget,
            kind,
            random,
            llc,
            rate,
            stolen,
            run,
            feels,
            evicted: BTreeMap::new(),
            follows: Vec::new(),
            played: BTreeSet::new(),
            stop_after: u64::MAX,
            told: Vec::new(),
        }
    }

    fn arm(&self, ask: &Ask) -> usize {
        let cell = &ask.cell;
        match ask.arm {
            Arm::Kernel(arm) => arm,
            Arm::HandedOver => self.kind.called(0, cell),
            Arm::Library => self.kind.called(arm_of(&self.kind, &self.follows, cell), cell),
        }
    }

    /// Extra cost of a sticky destination: string instructions leave it where they find it.
    fn sticks(&mut self, arm: usize, cell: &TuningCell) -> f64 {
        if self.kind.restores {
            return 0.0;
        }
        let class = self.kind.costs(cell.operation)[arm].arm.class;
        let log2 = (cell.size as f64).log2();
        let here = ((log2 - 13.5) * 2.0).clamp(0.0, 1.0) * ((20.5 - log2) * 2.0).clamp(0.0, 1.0);
        let before = self.evicted.entry((cell.operation, cell.size)).or_insert(false);
        let was = std::mem::replace(
            before,
            match class {
                Class::NonTemporal => true,
                Class::Temporal => false,
                Class::Rep | Class::Libc => *before,
            },
        );
        match (was, class) {
            (true, Class::Rep | Class::Libc) => here * 1.75f64.ln(),
            (true, Class::Temporal) => here * 1.1f64.ln(),
            _ => 0.0,
        }
    }
}

/// The part of what an operation moves that pushes a bystander's lines out.
fn lost_by(class: Class) -> f64 {
    if class == Class::NonTemporal { 0.1 } else { 1.0 }
}

/// Nanoseconds of a walk over a bystander.
fn walk_of(bytes: f64) -> f64 {
    bytes / 64.0 * 5.0
}

/// Nanoseconds that a bystander loses by so many bytes at most.
fn pushed_out(bytes: f64, walk: f64) -> f64 {
    (bytes / 64.0 * 2.0).min(walk)
}

impl Kind {
    /// The true nanoseconds of an arm under `never`: operation and bystander, half of the cache, in memory.
    pub fn beside_a_bystander(&self, operation: Operation, arm: usize, size: usize) -> f64 {
        let cell = TuningCell::new(operation, size, Destination::Evicted);
        let costs = &self.costs(operation)[arm];
        let reader = costs.reader[state(cell.destination)][step(size)];
        let operands =
            if matches!(operation, Operation::Fill | Operation::Zero) { 1.0 } else { 2.0 };
        let walk = walk_of((self.facts.cache() / 2) as f64);
        let lost = lost_by(costs.arm.class) * pushed_out(size as f64 * operands, walk);
        self.truth(arm, &cell).exp() * (1.0 - reader) + lost
    }
}

/// The arm that decisions without a hint name for a cell.
pub fn arm_of(kind: &Kind, decisions: &[Decision], cell: &TuningCell) -> usize {
    arm_under(kind, decisions, cachewise::Reuse::Unknown, cell)
}

/// The arm that decisions name for a cell under a hint.
pub fn arm_under(
    kind: &Kind,
    decisions: &[Decision],
    reuse: cachewise::Reuse,
    cell: &TuningCell,
) -> usize {
    let size = cell.size as u64;
    let decided = decisions.iter().find(|d| {
        d.operation == cell.operation && d.reuse == reuse && (d.from..=d.to).contains(&size)
    });
    let name = decided.map_or("libc", |decision| &decision.kernel);
    let name = match name.strip_suffix(OR_LIBC) {
        Some(_) if matches!(cell.layout, Layout::Aligned) => "libc",
        Some(kernel) => kernel,
        None => name,
    };
    kind.position(cell.operation, name).unwrap_or_else(|| panic!("no arm {name}"))
}

impl Machine for Simulated {
    fn facts(&self) -> Facts {
        self.kind.facts
    }

    fn arms(&self, operation: Operation) -> Vec<Competitor> {
        self.kind.costs(operation).iter().map(|costs| costs.arm.clone()).collect()
    }

    fn now(&self) -> f64 {
        self.clock
    }

    fn progress(&mut self, _: Stage, left: f64) {
        self.told.push((self.clock, left));
    }

    fn follow(&mut self, decisions: &[Decision]) -> Result<(), LabError> {
        self.follows = decisions.to_vec();
        Ok(())
    }

    fn visit(&mut self, ask: &Ask) -> Result<Visit, LabError> {
        let mut cell = ask.cell;
        let log2 = (cell.size as f64).log2();
        let noise = self.kind.noise;
        self.stop_after -= 1;
        if self.stop_after == 0 {
            return Err(LabError::Interrupted);
        }
        if let Some(script) = cell.script {
            let who = format!("{:?}", ask.arm);
            let first = self.played.insert((cell.operation, script.hot, who, ask.draw));
            assert!(first, "a branch predictor remembers these calls: {ask:?}");
            let factor = if ask.arm == Arm::Library { 0.98 } else { 1.0 };
            let samples = (0..ask.samples)
                .map(|_| Sample {
                    operation: 12.0 * factor * (0.02 * noise * normal(&mut self.random)).exp(),
                    ..Sample::default()
                })
                .collect();
            self.clock += 2e-3 * ask.samples as f64;
            return Ok(Visit { samples, disturbed: 0 });
        }
        let arm = self.arm(ask);
        // Nobody flushed what should be evicted.
        if !self.kind.restores && cell.destination == Destination::Evicted {
            cell.destination = Destination::Cached;
        }
        let place = state(cell.destination);
        let costs = &self.kind.costs(cell.operation)[arm];
        let (class, reader) = (costs.arm.class, costs.reader[place][step(cell.size)]);
        let mut truth = self.kind.quiet(arm, &cell);
        if arm == 0 && ask.arm != Arm::LIBC {
            truth = self.kind.handed_over(truth, &cell);
        }
        truth += self.run[&(cell.operation, arm, place)][step(cell.size)];
        // Time of a sample: groups of calls below 16 KiB, restoring, and the visit itself.
        let bytes = cell.size as f64
            * if matches!(cell.operation, Operation::Fill | Operation::Zero) { 1.0 } else { 2.0 };
        let calls = if cell.size < 16 << 10 { 8.0 } else { 1.0 };
        let restoring = bytes / self.kind.bandwidth + 96.0;
        let (calls, restoring) = match cell.destination {
            Destination::Cached => (calls, restoring),
            Destination::Evicted => (calls, 1.5 * restoring - 48.0),
            // Once for the visit, as its first calls are; part of each sample here.
            Destination::Repeated => {
                let calls = (8.0 * self.kind.facts.l1 as f64 / cell.size as f64).max(1.0);
                let once = 1.0 / ask.samples as f64;
                (calls * (1.0 + once), restoring * once / calls)
            }
        };
        let beside = match cell.after {
            After::Bystander(bytes) => bytes as f64,
            _ => 0.0,
        };
        let sample = calls * (truth.exp() + restoring + 2.0 * beside / self.kind.bandwidth);
        let seconds = (ask.samples as f64 * (sample + 200.0) + 10e3) * 1e-9;
        self.clock += seconds / self.kind.quota;
        let moment = ((self.clock / MOMENT) as usize).min(self.llc.len() - 1);
        // The weather of this visit.
        let (feels, neighbour) = self.feels[&(cell.operation, arm)];
        let mut level = truth + in_llc(log2) * self.llc[moment] * feels + self.rate[moment];
        level += self.kind.drift * (self.clock / self.kind.budget).min(1.0);
        if self.kind.neighbour && self.clock > self.kind.budget / 2.0 {
            level += in_llc(log2) * (0.35 + neighbour);
        }
        let small = if log2 < 13.0 { 1.5 } else { 1.0 };
        level += EPOCH * noise * small * student3(&mut self.random);
        level += self.sticks(arm, &cell);
        if class == Class::NonTemporal
            && cell.size >= 1 << 20
            && self.clock > self.kind.memory_taken
        {
            level += 2f64.ln();
        }
        let octave = ((log2 - 9.0).max(0.0).round() as usize).min(17);
        let scatter =
            SCATTER[place][octave] * noise * (0.6 * normal(&mut self.random) - 0.18).exp();
        let mut visit = Visit::default();
        for _ in 0..ask.samples {
            let r = &mut self.random;
            let mut log = scatter * normal(r);
            if r.f64() < 0.1 * noise.min(2.0) {
                log += 0.17 * exponential(r);
            }
            let hit = if seconds / ask.samples as f64 > 1e-4 { 0.9 } else { 0.15 };
            if self.stolen[moment] > 0.0 && r.f64() < hit {
                log += self.stolen[moment] * exponential(r);
            }
            let total = (level + log).exp();
            // A quota of 20 ms in every 100: who runs out of it waits, and its sample is left out.
            if self.kind.quota < 1.0 && r.f64() < total * 1e-9 / 0.02 {
                visit.disturbed += 1;
                continue;
            }
            let operation = total * (1.0 - reader);
            let (lost, walk) = (lost_by(class), walk_of(beside));
            visit.samples.push(Sample {
                operation,
                reader: if cell.after == After::Reader { total * reader } else { 0.0 },
                bystander: if beside > 0.0 {
                    let noise = 0.02 * walk * normal(&mut self.random);
                    lost * pushed_out(bytes, walk) + noise
                } else {
                    0.0
                },
            });
        }
        Ok(visit)
    }
}
