//! The bench: one machine, one clock, one arena, and one way to measure.
//!
//! Every experiment gives it a [`Task`]: a [`Cell`] and candidates; the [`CellOutcome`] is rows for the
//! record.

use crate::error::LabError;
use crate::routines::Routine;
use cachewise_kernels::{Features, Operation, PAGE_SIZE};
use cachewise_measure::units::bytes;
use cachewise_measure::{
    Arena, Bystander, Candidate, CellKey, CellResult, Clock, Contents, Header, Latencies, Machine,
    MemoryBudget, NoiseSnapshot, Operand, PagePolicy, PairedRatio, Place, Plan, Proof,
    ProofVerdict, Residency, Row, Slots, Warning, sampler,
};
use std::collections::BTreeMap;
use std::slice::from_raw_parts_mut;
use std::sync::Arc;

mod call;
mod cell;

pub use call::{Call, each, is_copied, is_filled, is_zeroed, run_all};
pub use cell::{Cell, Placement};

/// Candidates in one cell, to be measured.
pub struct Task {
    pub operation: Operation,
    pub size: usize,
    /// The operands' places, and their reader.
    pub cell: Cell,
    pub plan: Plan,
}

#[derive(Clone, Debug)]
pub struct CellOutcome {
    /// The samples and the proofs, in the order of the candidates.
    pub result: CellResult,
    /// The part of the arena that is backed by huge pages, where that can be told.
    pub huge: Option<f64>,
    experiment: &'static str,
    key: CellKey,
}

impl CellOutcome {
    /// One row per candidate, the first of which is the reference.
    pub fn rows(&self) -> Vec<Row> {
        (0..self.result.candidates.len()).map(|index| self.row(index, 0)).collect()
    }

    /// The rows of these candidates, as each of them tells its own.
    pub fn told(&self, calls: &[Call<'_>]) -> Vec<Row> {
        let rows = calls.iter().enumerate();
        rows.map(|(at, call)| call.tell(at, self.row(at, call.reference()))).collect()
    }

    /// The row of one candidate, compared with another. The proofs of residency and the drift stand on
    /// the first candidate's row. Where a proof failed there is no verdict.
    pub fn row(&self, index: usize, reference: usize) -> Row {
        let (ours, theirs) = (&self.result.candidates[index], &self.result.candidates[reference]);
        let pair = |ours: &[f64], theirs: &[f64]| PairedRatio::paired(ours, theirs);
        let proofs: Vec<Proof> =
            [&self.result.proofs.0, &self.result.proofs.1].into_iter().flatten().cloned().collect();
        let proved = proofs.iter().all(|proof| proof.verdict != ProofVerdict::Failed);
        let parts = self.key.reader.is_some() || self.key.bystander.is_some();
        let times = ours.operation_ns.clone();
        let mut row = Row::new(self.experiment, self.key.clone(), &ours.name, &theirs.name, times)
            .with_ratio(pair(&ours.operation_ns, &theirs.operation_ns));
        row.calls = self.result.calls_per_sample;
        row.reader_ns.clone_from(&ours.reader_ns);
        row.bystander_ns.clone_from(&ours.bystander_ns);
        row.total_ratio = parts.then(|| pair(&ours.total_ns(), &theirs.total_ns()));
        row.verdict = row.said().filter(|_| proved);
        row.dropped = ours.dropped_after.is_some();
        if index == 0 {
            row.proofs = proofs;
            row.drift = Some(self.result.drift);
        }
        row
    }
}

/// One machine, ready to be asked.
pub struct Bench {
    pub machine: Machine,
    pub clock: Clock,
    /// The latencies of its levels.
    pub latencies: Latencies,
    /// The instruction sets that it has.
    pub features: Features,
    /// Seed of every random choice.
    pub seed: u64,
    /// Name of the experiment that is being measured, for the rows.
    pub experiment: &'static str,
    noise: NoiseSnapshot,
    arena: Option<Arc<Arena>>,
    bystanders: BTreeMap<usize, Bystander>,
    measured: u64,
}

impl Bench {
    /// Describes the machine, calibrates clock and latencies; about a second. `memory` bounds what
    /// may be used at once: without it what the caches and operations of `largest` bytes need, 1 GiB
    /// at least. A quarter of RAM is the most.
    ///
    /// # Errors
    /// When the machine is an emulator, whose timings would mean nothing, or memory is too little.
    pub fn new(seed: u64, memory: Option<usize>, largest: usize) -> Result<Bench, LabError> {
        let noise = NoiseSnapshot::take();
        let mut machine = Machine::describe();
        cachewise_measure::lab_error::refuse_emulation(&machine)?;
        let budget = MemoryBudget::process();
        let quarter = budget.limit();
        let (dram, llc) = (machine.caches.dram_bytes(), machine.caches.llc.bytes);
        // Operands of that size take two slots each; in DRAM each may cover it alone.
        budget.limit_to(memory, largest.saturating_mul(4).max(2 * dram).saturating_add(llc));
        // Two operands share the level; each is rounded up, and bystanders come beside them.
        let least = dram + llc + (16 << 20);
        if budget.limit() < least {
            let [found, least, quarter] = [budget.limit(), least, quarter].map(|n| bytes(n as u64));
            let why = "operands in DRAM cover four times the last-level cache";
            return Err(match memory {
                Some(_) => LabError::unsuited(
                    "--memory",
                    found,
                    &format!("{least} or more here ({why}), at most a quarter of RAM, {quarter}"),
                ),
                None => LabError::Nothing(format!(
                    "{why}, which takes {least}; a quarter of RAM is {quarter}"
                )),
            });
        }
        let clock = Clock::of_process();
        let latencies = Latencies::shared(&clock, &machine.caches)?;
        machine.caches.note_usable(&latencies);
        Ok(Bench {
            features: Features::detect(),
            machine,
            clock,
            latencies,
            seed,
            experiment: "",
            noise,
            arena: None,
            bystanders: BTreeMap::new(),
            measured: 0,
        })
    }

    /// The record's first line as of now.
    pub fn header(&self, settings: BTreeMap<String, serde_json::Value>) -> Header {
        let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
        let mut header = Header::now(tool, self.machine.clone(), self.clock.facts(), self.seed);
        header.settings = settings;
        header.latencies = Some(self.latencies);
        header.warnings = self.warnings();
        let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
        header.flags.insert("profile".into(), profile.into());
        if let Ok(tunables) = std::env::var("GLIBC_TUNABLES") {
            header.flags.insert("GLIBC_TUNABLES".into(), tunables);
        }
        header
    }

    /// Returns what has disturbed the bench since it was set up.
    pub fn warnings(&self) -> Vec<Warning> {
        cachewise_measure::warnings(&self.noise, &NoiseSnapshot::take(), &self.machine)
    }

    /// Most bytes per operation that the memory budget allows with two operands in memory.
    pub fn largest_size(&self) -> usize {
        // Two slots per operand and level DRAM, beside the bystander.
        let bystander = self.bystander_bytes(usize::MAX);
        let left = MemoryBudget::process().limit().saturating_sub(bystander);
        (left / 4) & !(PAGE_SIZE - 1)
    }

    /// The bystander that an operation of this size is measured beside: as large as what the
    /// operation can evict, so that what it loses does not drown in its own walk; at least half of
    /// L2, at most half of what one core has of the last level. A power of two, so that neighbouring
    /// sizes share one.
    pub fn bystander_bytes(&self, size: usize) -> usize {
        let caches = &self.machine.caches;
        let least = caches.l2.bytes / 2;
        let usable = caches.usable();
        let most = (usable / 2).max(least);
        let wanted = size.saturating_mul(2).clamp(least, most);
        1 << wanted.ilog2()
    }

    /// Measures routines in one cell; the first is the reference. Their bytes are checked where `check`
    /// says so: an experiment that measures several states of one size checks in the first.
    pub fn routines(
        &mut self,
        task: &Task,
        routines: &[Routine],
        check: bool,
        stop: &dyn Fn() -> bool,
    ) -> Result<CellOutcome, LabError> {
        self.measure(task, &mut each(&mut Call::of_all(routines, check)), stop)
    }

    /// Measures candidates in one cell; the first is the reference. What their kernels do to operands of
    /// the task's operation and size is checked as they [name them](Candidate::function).
    ///
    /// # Errors
    /// Wrong bytes, a size that does not fit its level or the budget, being stopped.
    pub fn measure(
        &mut self,
        task: &Task,
        candidates: &mut [&mut dyn Candidate],
        stop: &dyn Fn() -> bool,
    ) -> Result<CellOutcome, LabError> {
        let Task { operation, size, cell, .. } = task;
        if let Some(bytes) = cell.bystander
            && !self.bystanders.contains_key(&bytes)
        {
            self.bystanders.insert(bytes, Bystander::new(bytes, self.seed)?);
        }
        let (destination, source, arena) = self.operands(*operation, *size, cell)?;
        if let (Some(write), Some(source)) = (cell.written, &source) {
            for slot in 0..source.slots() {
                // SAFETY: a slot of that many initialised bytes that nobody else uses.
                write(unsafe { from_raw_parts_mut(source.visit(slot), source.size()) });
            }
        }
        self.measured += 1;
        let plan = Plan { seed: self.seed.wrapping_add(self.measured), ..task.plan.clone() };
        let dst = destination.visit(0);
        let src = source.as_ref().map_or(dst, |source| source.visit(0)).cast_const();
        for candidate in candidates.iter_mut().filter(|candidate| candidate.is_checked()) {
            check(&mut **candidate, &Place { dst, src, n: *size })?;
        }
        let contents = cell.contents.unwrap_or(match operation {
            Operation::Compare | Operation::Equal => Contents::Equal,
            _ => Contents::Overwritten,
        });
        let mut sampled = sampler::SampledCell {
            size: *size,
            destination,
            source,
            contents,
            reader: cell.reader,
            bystander: cell.bystander.and_then(|bytes| self.bystanders.get_mut(&bytes)),
        };
        let result = sampler::run(&mut sampled, candidates, &plan, &self.clock, stop);
        if cell.written.is_some() || contents == Contents::Kept {
            // The next one gets incompressible bytes.
            self.arena = None;
        }
        let result = result?;
        let level = |placement: &Placement| placement.level.map(Residency::At);
        let key = CellKey {
            source: level(&cell.source).filter(|_| has_source(*operation)),
            destination: level(&cell.destination),
            reader: cell.reader.map(|reader| reader.touched_fraction),
            bystander: cell.bystander.map(|bytes| bytes as u64),
            ..CellKey::new(operation.name(), *size, cell.label.clone())
        };
        let (huge, experiment) = (arena.huge_fraction(), self.experiment);
        Ok(CellOutcome { result, huge, experiment, key })
    }

    /// Operands for a cell, from the shared arena.
    fn operands(
        &mut self,
        operation: Operation,
        size: usize,
        cell: &Cell,
    ) -> Result<(Operand, Option<Operand>, Arc<Arena>), LabError> {
        let (caches, seed) = (self.machine.caches.clone(), self.seed);
        let two = has_source(operation);
        let (mut source, mut destination) = (cell.source, cell.destination);
        if matches!(operation, Operation::CopyPages | Operation::ZeroPages) {
            (source.offset, destination.offset) = (0, 0);
        }
        // Two operands at one level share it.
        let share = if two && source.level == destination.level { 0.5 } else { 1.0 };
        let slots = |at: Placement| match at.level {
            Some(level) => Slots::placed(level, size, at.offset, share, &caches),
            None => Slots::reused(size, at.offset, &caches),
        };
        let room = |at: Placement| slots(at).map(|slots| slots.bytes());
        let place =
            |arena: &Arc<Arena>, from, at: Placement| Operand::new(arena, from, slots(at)?, seed);
        // The source first: the distances of interest are those of a destination above it.
        let from = if two { room(source)?.max(cell.apart) } else { 0 };
        let arena = self.arena_on(from + room(destination)?, cell.pages)?;
        let source = two.then(|| place(&arena, 0, source)).transpose()?;
        let destination = place(&arena, from, destination)?.restored(cell.restore);
        Ok((destination, source, arena))
    }

    /// An arena of at least that size; the old one goes first, so that peaks do not add up.
    fn arena_on(&mut self, bytes: usize, pages: PagePolicy) -> Result<Arc<Arena>, LabError> {
        if let Some(arena) = &self.arena
            && arena.len() >= bytes
            && arena.policy() == pages
        {
            return Ok(Arc::clone(arena));
        }
        self.arena = None;
        let arena = Arc::new(Arena::new(bytes, pages, self.seed)?);
        self.arena = Some(Arc::clone(&arena));
        Ok(arena)
    }
}

const fn has_source(operation: Operation) -> bool {
    !matches!(operation, Operation::Fill | Operation::Zero | Operation::ZeroPages)
}

/// One call on a destination of other bytes, and what the candidate itself says of the outcome.
fn check(candidate: &mut dyn Candidate, place: &Place) -> Result<(), LabError> {
    if !std::ptr::eq(place.dst, place.src) {
        // SAFETY: both are valid for n bytes, and apart.
        unsafe { std::ptr::copy_nonoverlapping(place.src, place.dst, place.n) };
    }
    // SAFETY: n initialised bytes that nobody else uses meanwhile; the slice ends before the call.
    let held = unsafe { from_raw_parts_mut(place.dst, place.n) };
    let (words, rest) = held.as_chunks_mut::<8>();
    // Neither the source's byte nor, the arena's bytes being odd, 0 or 0xFF.
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ 0x1010_1010_1010_1010).to_ne_bytes();
    }
    rest.iter_mut().for_each(|byte| *byte ^= 0x10);
    candidate.set_up(std::slice::from_ref(place));
    candidate.call(place);
    candidate
        .check(place)
        .map_err(|what| LabError::WrongBytes(format!("{}: {what}", candidate.name())))
}
