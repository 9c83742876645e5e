//! The rounds themselves. Everything public about them is in the parent module.

use super::setup::{check_bytes, check_request, equalise};
use super::*;
use crate::level::Destination;
use crate::residency::Access;
use crate::stats::median;
use crate::{Arena, Clock, LINE, Level, MeasureError, PagePolicy, ProofVerdict, Reader};

/// Samples every candidate on the cell, round by round.
///
/// # Errors
/// [`MeasureError::BadRequest`] for a plan or a cell that contradicts itself,
/// [`MeasureError::WrongBytes`] when a candidate's [`function`](Candidate::function) fails its
/// check, [`MeasureError::OverBudget`] or [`MeasureError::Map`] for a reader's delay buffer, and
/// [`MeasureError::Interrupted`] as soon as `stop` says so.
pub fn run(
    cell: &mut SampledCell<'_>,
    candidates: &mut [&mut dyn Candidate],
    plan: &Plan,
    clock: &Clock,
    stop: &dyn Fn() -> bool,
) -> Result<CellResult, MeasureError> {
    check_request(cell, candidates.len(), plan)?;
    equalise(cell);
    for candidate in candidates.iter() {
        check_bytes(cell, &**candidate)?;
    }
    // Checking left its own bytes behind.
    equalise(cell);

    let delay = match cell.reader {
        Some(ReaderSpec { delay: Delay::Bytes(bytes), .. }) if bytes > 0 => {
            Some(Arena::new(bytes, PagePolicy::Huge, 0xDE1A)?)
        }
        _ => None,
    };
    let mut table = Table { cell, clock: *clock, calls: 1, places: Vec::new(), delay };
    let mut proofs = [Vec::new(), Vec::new()];
    for candidate in candidates.iter_mut() {
        for _ in 0..2 {
            table.call_once(&mut **candidate);
            table.pass_over(1);
        }
    }
    table.prove(&mut proofs);
    table.calls = table.trial(candidates, plan);

    let named = |candidate: &&mut dyn Candidate| Samples {
        name: candidate.name().to_owned(),
        ..Samples::default()
    };
    let mut samples: Vec<Samples> = candidates.iter().map(named).collect();
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut staying: Vec<usize> = (0..candidates.len()).collect();
    let mut rounds = 0;

    while rounds < plan.rounds {
        let mut order = staying.clone();
        random.shuffle(&mut order);
        let warm_walk = table.warm_walk();
        for index in order {
            if stop() {
                return Err(MeasureError::Interrupted);
            }
            let times = table.sample(&mut *candidates[index], warm_walk);
            if rounds == 0 {
                table.prove(&mut proofs);
            }
            times.store(&mut samples[index], table.cell);
        }
        rounds += 1;
        if rounds == plan.screening_rounds && rounds < plan.rounds {
            // Those are dropped whose whole cost is too far above the best one's of their group.
            let costs: Vec<f64> = samples.iter().map(|of_one| median(&of_one.total_ns())).collect();
            staying.retain(|&index| {
                let one = &candidates[index];
                let rivals = costs.iter().zip(candidates.iter());
                let rivals = rivals.filter(|(_, rival)| rival.group() == one.group());
                let best = rivals.map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
                let most = best.max(f64::MIN_POSITIVE) * plan.drop_ratio;
                let stays = one.stays() || costs[index] <= most;
                samples[index].dropped_after = (!stays).then_some(rounds);
                stays
            });
        }
    }
    let times: Vec<&[f64]> = samples.iter().map(|of_one| of_one.operation_ns.as_slice()).collect();
    let [source, destination] = proofs.map(|proofs| Proof::worst(&proofs));
    Ok(CellResult {
        calls_per_sample: u32::try_from(table.calls).unwrap_or(u32::MAX),
        visits_per_slot: table.calls as f64 / table.fewest_slots() as f64,
        drift: DriftVerdict::of_rounds(&times),
        proofs: (source, destination),
        candidates: samples,
        rounds,
    })
}

/// The parts of one sample, nanoseconds per call.
#[derive(Clone, Copy, Default)]
struct Times {
    operation: f64,
    reader: f64,
    bystander: f64,
}

impl Times {
    fn store(self, samples: &mut Samples, cell: &SampledCell<'_>) {
        samples.operation_ns.push(self.operation);
        if cell.reader.is_some() {
            samples.reader_ns.push(self.reader);
        }
        if cell.bystander.is_some() {
            samples.bystander_ns.push(self.bystander);
        }
    }
}

/// Longest list of places: 1.5 MiB of pointers, read in ascending order.
const MOST_PLACES: usize = 1 << 16;

/// Shortest list of places where calls repeat: the dynamic call per list is then nothing.
const FEWEST_PLACES: usize = 64;

/// Least length of a sample's operation part, in costs of one clock reading.
const LEAST_SAMPLE: f64 = 1000.0;

/// A sample of fewer calls is short: its first call is more than 1 % of it.
const SHORT: usize = 100;

/// The untimed calls before a sample process no more than this, however large the last level is.
const MOST_WARM_UP: usize = 64 << 20;

/// The cell, the clock, and the places of the calls to come.
struct Table<'c, 'b> {
    cell: &'c mut SampledCell<'b>,
    clock: Clock,
    calls: usize,
    places: Vec<Place>,
    delay: Option<Arena>,
}

impl Table<'_, '_> {
    /// Returns whether each call is followed by others, and timed on its own.
    fn is_split(&self) -> bool {
        self.cell.reader.is_some() || self.cell.bystander.is_some() || self.restores_each_call()
    }

    /// Returns whether an operand's state holds for one call only.
    fn restores_each_call(&self) -> bool {
        self.operands().any(|operand| operand.restore == Destination::Evicted)
    }

    fn operands(&self) -> impl Iterator<Item = &Operand> {
        std::iter::once(&self.cell.destination).chain(&self.cell.source)
    }

    /// Slots of the operand that has fewest: so many calls meet no slot twice.
    fn fewest_slots(&self) -> usize {
        self.operands().map(Operand::slots).min().unwrap_or(1)
    }

    /// Slots of the operand that has most.
    fn most_slots(&self) -> usize {
        self.operands().map(Operand::slots).max().unwrap_or(1)
    }

    /// Slots in memory; a sample that visited more would meet some again too early.
    fn slots_in_memory(&self) -> Option<usize> {
        let is_far = |at: &&Operand| at.level() == Level::Dram && !at.is_reused();
        self.operands().filter(is_far).map(Operand::slots).min()
    }

    /// Lists the places of the next `calls` calls.
    fn gather(&mut self, calls: usize) {
        let (cell, n) = (&self.cell, self.cell.size);
        self.places.clear();
        self.places.extend((0..calls).map(|ahead| {
            let dst = cell.destination.visit(ahead);
            let src = cell.source.as_ref().map_or(dst, |source| source.visit(ahead));
            Place { dst, src: src.cast_const(), n }
        }));
    }

    /// Moves both operands in step, since pairs must stay pairs.
    fn pass_over(&mut self, count: usize) {
        self.cell.destination.skip(count);
        if let Some(source) = &mut self.cell.source {
            source.skip(count);
        }
    }

    /// Puts the operands in their state for the places gathered: far levels first, since filling
    /// one disturbs the nearer.
    fn prepare(&mut self) {
        let calls = self.places.len();
        let SampledCell { source, destination, contents, .. } = &mut *self.cell;
        let access = match contents {
            Contents::Overwritten => Access::Write,
            _ => Access::Read,
        };
        let Some(source) = source else { return destination.prepare(calls, access) };
        if source.level() >= destination.level() {
            source.prepare(calls, Access::Read);
            destination.prepare(calls, access);
        } else {
            destination.prepare(calls, access);
            source.prepare(calls, Access::Read);
        }
        // With both in L1 the second may displace a line of what came first until the
        // lines have found ways to stay in.
        if (source.level(), destination.level()) == (Level::L1, Level::L1) {
            for _ in 0..6 {
                source.prepare(calls, Access::Read);
                destination.prepare(calls, Access::Read);
            }
        }
    }

    /// Prepares and proves the destination, then the source.
    fn prove(&mut self, [source, destination]: &mut [Vec<Proof>; 2]) {
        destination.extend(self.probe_until_good(|cell| Some(&cell.destination)));
        source.extend(self.probe_until_good(|cell| cell.source.as_ref()));
    }

    fn probe_until_good(
        &mut self,
        operand: impl for<'c> Fn(&'c SampledCell<'_>) -> Option<&'c Operand>,
    ) -> Option<Proof> {
        let mut last = None;
        for _ in 0..3 {
            self.gather(1);
            self.prepare();
            let placed = operand(self.cell).filter(|operand| !operand.is_reused())?;
            let (proof, used) = placed.prove(&self.clock);
            self.pass_over(used);
            let failed = proof.verdict == ProofVerdict::Failed;
            last = Some(proof);
            if !failed {
                break;
            }
        }
        last
    }

    /// Sizes the samples by trials, as many for every candidate, long enough to tell how many calls
    /// the fastest needs, not kept.
    fn trial(&mut self, candidates: &mut [&mut dyn Candidate], plan: &Plan) -> usize {
        if let Some(calls) = plan.calls {
            return calls.max(1);
        }
        let least = LEAST_SAMPLE * self.clock.cost_ns().max(1.0);
        let most_calls =
            self.slots_in_memory().map_or(1 << 22, |slots| (slots / 2).clamp(1, MOST_PLACES));
        let warm_walk = self.warm_walk();
        // Growing until the fastest sample is half of the least length: shorter ones cost more per
        // call. A fifth is added for what is still faster than its trial.
        self.calls = 1;
        loop {
            let (mut fastest, mut slowest) = (f64::INFINITY, 0.0_f64);
            for candidate in candidates.iter_mut() {
                let begun = self.clock.now();
                let times = self.sample(&mut **candidate, warm_walk);
                let elapsed = self.clock.nanoseconds(begun, self.clock.now());
                fastest = fastest.min(times.operation);
                // The time of a sample includes its preparations where they grow with calls.
                let per_call =
                    if self.is_split() { elapsed / self.calls as f64 } else { times.operation };
                slowest = slowest.max(per_call);
            }
            let fastest = fastest.max(self.clock.resolution_ns().max(0.1) / self.calls as f64);
            let needed = (1.2 * least / fastest).ceil().clamp(1.0, most_calls as f64);
            let affordable = (plan.max_sample_ns / slowest.max(0.1)).floor().max(1.0);
            let wanted = needed.min(affordable) as usize;
            let trusted = fastest * self.calls as f64 >= least / 2.0;
            if trusted || self.calls >= wanted {
                return wanted.max(1);
            }
            self.calls = (self.calls * 16).min(wanted);
        }
    }

    /// The bystander's walk when only the operands were prepared in between: median of three, 0
    /// without a bystander.
    fn warm_walk(&mut self) -> f64 {
        if self.cell.bystander.is_none() {
            return 0.0;
        }
        let mut times = [0.0; 3];
        for time in &mut times {
            self.gather(1);
            self.walk_bystander();
            self.prepare();
            *time = self.walk_bystander();
            self.pass_over(1);
        }
        median(&times)
    }

    fn walk_bystander(&self) -> f64 {
        let bystander = self.cell.bystander.as_ref();
        bystander.map_or(0.0, |bystander| self.clock.time(|| bystander.walk()))
    }

    fn sample(&mut self, candidate: &mut dyn Candidate, warm_walk: f64) -> Times {
        if self.is_split() {
            self.sample_split(candidate, warm_walk)
        } else {
            self.sample_together(candidate)
        }
    }

    /// Untimed calls before each sample: none where operands are put in their state for it, or where
    /// the first of many calls does not matter; more than one where reused operands are larger than the
    /// L2 keeps: those go through the last level once.
    fn untimed_calls(&self) -> usize {
        if self.calls >= SHORT || !self.operands().any(Operand::is_reused) {
            return 0;
        }
        let touched = self.operands().count() * self.cell.size;
        let caches = &self.cell.destination.slots.caches;
        if touched <= Level::L2.capacity(caches) || !self.operands().all(Operand::is_reused) {
            return 1;
        }
        (caches.llc.bytes.min(MOST_WARM_UP) / self.cell.size.max(1)).max(1)
    }

    fn call_once(&mut self, candidate: &mut dyn Candidate) {
        self.gather(1);
        candidate.before(&self.places, 1);
        self.prepare();
        candidate.set_up(&self.places);
        candidate.call_all(&self.places);
    }

    /// The untimed calls. A placed operand beside a reused one is passed over, so that they leave it
    /// nothing.
    fn lead_in(&mut self, candidate: &mut dyn Candidate) {
        for _ in 0..self.untimed_calls() {
            self.call_once(candidate);
            if let Some(reader) = self.cell.reader {
                read(candidate, &self.places[0], reader);
            }
            self.pass_over(1);
        }
    }

    /// Calls back to back in one interval.
    fn sample_together(&mut self, candidate: &mut dyn Candidate) -> Times {
        // A list covers every slot, and is gone through again where that is not enough calls; in
        // memory it never has to be (see trial).
        let slots = self.most_slots();
        let longest = FEWEST_PLACES.next_multiple_of(slots).clamp(FEWEST_PLACES, MOST_PLACES);
        let list =
            self.calls.min(if self.slots_in_memory().is_some() { MOST_PLACES } else { longest });
        let repeats = self.calls / list;
        let rest = self.calls % list;
        self.lead_in(candidate);
        self.gather(list);
        candidate.before(&self.places, self.calls);
        self.prepare();
        candidate.set_up(&self.places);
        if let Some(elsewhere) = candidate.timed_elsewhere(&self.places, self.calls) {
            self.pass_over(list);
            return Times { operation: elsewhere / self.calls as f64, ..Times::default() };
        }
        let elapsed = self.clock.time(|| {
            for _ in 0..repeats {
                candidate.call_all(&self.places);
            }
            if rest > 0 {
                candidate.call_all(&self.places[..rest]);
            }
        });
        self.pass_over(list);
        Times { operation: elapsed / self.calls as f64, ..Times::default() }
    }

    /// Each call, its reader and its bystander in intervals of their own.
    fn sample_split(&mut self, candidate: &mut dyn Candidate, warm_walk: f64) -> Times {
        let mut sum = Times::default();
        let clock = self.clock;
        // Without a bystander one preparation serves a whole cycle of slots.
        let placed = self.operands().filter(|operand| !operand.is_reused());
        let slots = placed.map(Operand::slots).min().unwrap_or(MOST_PLACES);
        let alone = self.cell.bystander.is_some() || self.restores_each_call();
        let together = if alone { 1 } else { slots.min(MOST_PLACES) };
        let mut left = self.calls;
        self.lead_in(candidate);
        while left > 0 {
            let batch = together.min(left);
            left -= batch;
            self.gather(batch);
            candidate.before(&self.places, batch);
            self.walk_bystander();
            self.prepare();
            candidate.set_up(&self.places);
            for index in 0..batch {
                let place = self.places[index];
                sum.operation += clock.time(|| candidate.call(&place));
                if let Some(reader) = self.cell.reader {
                    self.pass_time(reader.delay);
                    sum.reader += clock.time(|| read(candidate, &place, reader));
                }
                if self.cell.bystander.is_some() {
                    sum.bystander += self.walk_bystander() - warm_walk;
                }
            }
            self.pass_over(batch);
        }
        let calls = self.calls as f64;
        Times {
            operation: sum.operation / calls,
            reader: sum.reader / calls,
            bystander: sum.bystander / calls,
        }
    }

    fn pass_time(&self, delay: Delay) {
        match delay {
            Delay::None => {}
            Delay::Nanoseconds(nanoseconds) => self.clock.spin(nanoseconds),
            Delay::Bytes(bytes) => {
                if let Some(arena) = &self.delay {
                    crate::bystander::read_lines(arena.as_mut_ptr(), bytes / LINE * LINE);
                }
            }
        }
    }
}

/// The candidate's own reader, or the cell's.
fn read(candidate: &mut dyn Candidate, place: &Place, reader: ReaderSpec) {
    if !candidate.read(place) {
        // SAFETY: the destination's slot, which the operation has just used.
        unsafe { Reader::touch(place.dst, place.n, reader.touched_fraction) };
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
