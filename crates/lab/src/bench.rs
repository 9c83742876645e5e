//! The bench: one machine, one clock, one arena, and a way to ask it a question.
//!
//! Every experiment and the tuner put [`Question`]s; the answer is rows for the record. Nothing
//! else in the laboratory touches a clock.

use crate::LabError;
use crate::routines::Routine;
use crate::watch::{Lookout, Observer};
use cachewise_kernels::{Features, Function, Operation, PAGE_SIZE};
use cachewise_measure::{
    Arena, Bystander, Caches, Candidate, Cell, CellKey, CellResult, Clock, Contents, Delay, Header,
    Latencies, Level, Machine, MemoryBudget, NoiseSnapshot, Operand, PagePolicy, PairedRatio,
    Place, Plan, Proof, ReaderSpec, Row, Samples, Warning, sampler,
};
use std::collections::BTreeMap;
use std::sync::Arc;

mod entrants;
pub mod script;

pub use entrants::{Contest, Entrant, Found, Spot, run_all};

/// Differences of less than this are of no interest: a verdict needs more.
pub const MARGIN: f64 = 0.01;

/// Where the operands are when the operation starts, and who comes after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum State {
    /// One pair of buffers over and over, left where the previous call left them.
    Warm,
    /// The same, misaligned against each other and to every vector (destination at byte 24 of a
    /// line, source at byte 9).
    Askew,
    /// The same, the destination 32 bytes above the source plus a power of two: the slow case of
    /// `rep movsb` on AMD CPUs.
    Above,
    /// As `Warm`, both sixteen bytes into a page: what an allocator hands out that maps large blocks
    /// one by one.
    Alike,
    /// As `Alike`, no page of the destination ever touched before: each call pays its page faults, and
    /// meets what the operating system's zeroing left in the caches.
    Fresh,
    /// Buffers that overlap by all but 192 bytes, in turn upwards and downwards.
    Overlap,
    /// As `Warm`; afterwards the destination is read, every line.
    Read,
    /// Operands in memory; afterwards a bystander walks what was its warm working set.
    Beside {
        /// Bytes of the bystander's working set.
        bystander: usize,
    },
    /// Composed by an experiment.
    Scene(Scene),
    /// Operands placed and proved, with an optional reader (fraction of lines) and bystander.
    At {
        /// Where the source is.
        source: Level,
        /// Where the destination is.
        destination: Level,
        /// Fraction of the destination's lines read afterwards.
        reader: Option<f64>,
        /// Bytes of the bystander's working set.
        bystander: Option<usize>,
    },
}

/// A state that an experiment composes: each operand reused or placed, and who comes after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scene {
    /// The label in records.
    pub label: &'static str,
    /// Where the source is; one buffer that every call uses where it is at no level.
    pub source: Option<Level>,
    /// Where the destination is; likewise.
    pub destination: Option<Level>,
    /// Whether both start at a page, as in a kernel; otherwise they keep clear of 4 KiB aliasing.
    pub page_aligned: bool,
    /// Who reads the destination, and after what.
    pub reader: Option<ReaderSpec>,
    /// Bytes of the bystander's working set.
    pub bystander: Option<usize>,
}

impl Scene {
    /// One pair of buffers over and over, nobody coming afterwards.
    #[must_use]
    pub const fn reused(label: &'static str) -> Scene {
        Scene {
            label,
            source: None,
            destination: None,
            page_aligned: false,
            reader: None,
            bystander: None,
        }
    }

    /// A reader of that fraction of the destination's lines, after `delay`.
    #[must_use]
    pub const fn read_after(self, delay: Delay, touched_fraction: f64) -> Scene {
        Scene { reader: Some(ReaderSpec { touched_fraction, delay }), ..self }
    }
}

impl State {
    /// The label in records.
    #[must_use]
    pub fn label(&self) -> &'static str {
        match self {
            State::Warm => "warm",
            State::Askew => "misaligned",
            State::Above => "above 2^n",
            State::Alike => "4K-aliased",
            State::Fresh => "fresh",
            State::Overlap => "overlap",
            State::Read => "read",
            State::Beside { .. } => "beside",
            State::At { .. } => "placed",
            State::Scene(scene) => scene.label,
        }
    }

    fn bystander(&self) -> Option<usize> {
        match self {
            State::Beside { bystander } => Some(*bystander),
            State::At { bystander, .. } => *bystander,
            State::Scene(scene) => scene.bystander,
            _ => None,
        }
    }

    fn reader(&self) -> Option<ReaderSpec> {
        let at_once = |touched_fraction| ReaderSpec { touched_fraction, delay: Delay::None };
        match self {
            State::Read => Some(at_once(1.0)),
            State::At { reader, .. } => reader.map(at_once),
            State::Scene(scene) => scene.reader,
            _ => None,
        }
    }

    /// Levels of source and destination; none for a buffer that is reused.
    fn levels(&self) -> (Option<Level>, Option<Level>) {
        match self {
            State::Beside { .. } => (Some(Level::Dram), Some(Level::Dram)),
            State::At { source, destination, .. } => (Some(*source), Some(*destination)),
            State::Scene(scene) => (scene.source, scene.destination),
            _ => (None, None),
        }
    }
}

/// How far apart overlapping buffers start: not a multiple of any vector's group.
const OVERLAP: usize = 192;

/// One cell to be measured.
pub struct Question<'q> {
    /// Name of the experiment, for the record.
    pub experiment: &'q str,
    /// What is done.
    pub operation: Operation,
    /// Bytes per call.
    pub size: usize,
    /// Where the operands are and who comes after.
    pub state: State,
    /// Who competes; the first is the reference.
    pub routines: &'q [Routine],
    /// How it is sampled.
    pub plan: Plan,
    /// Whether the candidates' bytes are checked on these buffers first; an experiment that asks
    /// for several states of one size checks in the first.
    pub verify: bool,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// One row per candidate, in the order of the question.
    pub rows: Vec<Row>,
    /// Whether the user stopped it before it was done.
    pub interrupted: bool,
    /// Whether the time limit did.
    pub out_of_time: bool,
}

/// One machine, ready to be asked.
pub struct Bench {
    /// What it is.
    pub machine: Machine,
    /// How time is told.
    pub clock: Clock,
    /// What its levels take.
    pub latencies: Latencies,
    /// What it can run.
    pub features: Features,
    /// Seed of every random choice.
    pub seed: u64,
    noise: NoiseSnapshot,
    arena: Option<Arc<Arena>>,
    fresh: Option<Arc<Arena>>,
    bystanders: BTreeMap<usize, Bystander>,
    asked: u64,
}

/// Timings of an emulated CPU mean nothing; whoever is about to take some asks here.
///
/// # Errors
/// [`LabError::Emulated`] on such a machine.
pub fn refuse_emulation(machine: &Machine) -> Result<(), LabError> {
    match &machine.emulated {
        Some(emulator) => Err(LabError::Emulated { by: emulator.clone() }),
        None => Ok(()),
    }
}

impl Bench {
    /// Describes the machine, calibrates clock and latencies; about a second. `memory` bounds what
    /// may be used at once, a quarter of RAM at most.
    ///
    /// # Errors
    /// When the machine is an emulator, whose timings would mean nothing, or memory is refused.
    pub fn new(seed: u64, memory: Option<usize>) -> Result<Bench, LabError> {
        let noise = NoiseSnapshot::take();
        let mut machine = Machine::describe();
        refuse_emulation(&machine)?;
        let budget = MemoryBudget::process();
        let quarter = budget.limit();
        budget.set_limit(memory.unwrap_or(1 << 30).min(quarter));
        // Two operands share the level; each is rounded up, and bystanders come beside them.
        let least = machine.caches.dram_bytes() + machine.caches.llc.bytes + (16 << 20);
        if budget.limit() < least {
            return Err(LabError::TooLittleMemory { found: budget.limit(), least });
        }
        let clock = Clock::calibrate();
        let latencies = Latencies::shared(&clock, &machine.caches)?;
        machine.caches.note_usable(&latencies);
        Ok(Bench {
            features: Features::detect(),
            machine,
            clock,
            latencies,
            seed,
            noise,
            arena: None,
            fresh: None,
            bystanders: BTreeMap::new(),
            asked: 0,
        })
    }

    /// The record's first line as of now.
    #[must_use]
    pub fn header(&self, settings: BTreeMap<String, serde_json::Value>) -> Header {
        let tool = concat!("cachewise ", env!("CARGO_PKG_VERSION"));
        let mut header = Header::now(tool, self.machine.clone(), self.clock.facts(), self.seed);
        header.settings = settings;
        header.latencies = Some(self.latencies);
        header.warnings = self.warnings();
        if cfg!(debug_assertions) {
            header.flags.insert("profile".into(), "dev".into());
        } else {
            header.flags.insert("profile".into(), "release".into());
        }
        if let Ok(tunables) = std::env::var("GLIBC_TUNABLES") {
            header.flags.insert("GLIBC_TUNABLES".into(), tunables);
        }
        header
    }

    /// What has disturbed the bench since it was set up.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        cachewise_measure::warnings(&self.noise, &NoiseSnapshot::take(), &self.machine)
    }

    /// Most bytes per operation that the memory budget allows with two operands in memory.
    #[must_use]
    pub fn largest_size(&self) -> usize {
        // Two slots per operand and level DRAM, beside the bystander.
        let left = MemoryBudget::process().limit().saturating_sub(self.largest_bystander());
        (left / 4) & !(PAGE_SIZE - 1)
    }

    fn largest_bystander(&self) -> usize {
        self.bystander_bytes(usize::MAX)
    }

    /// The bystander that an operation of this size is measured beside: as large as what the
    /// operation can evict, so that what it loses does not drown in its own walk; at least half of
    /// L2, at most half of what one core has of the last level. A power of two, so that neighbouring
    /// sizes share one.
    #[must_use]
    pub fn bystander_bytes(&self, size: usize) -> usize {
        let caches = &self.machine.caches;
        let least = caches.l2.bytes / 2;
        let usable = caches.llc_usable.unwrap_or(caches.llc.bytes);
        let most = (usable / 2).max(least);
        let wanted = size.saturating_mul(2).clamp(least, most);
        1 << wanted.ilog2()
    }

    /// Measures one cell.
    ///
    /// # Errors
    /// Wrong bytes, a size that does not fit its level or the budget.
    pub fn ask(
        &mut self,
        question: &Question<'_>,
        observer: &mut dyn Observer,
    ) -> Result<Answer, LabError> {
        self.ask_beside(question, None, observer)
    }

    /// As [`ask`](Bench::ask), with one more candidate after the question's routines.
    ///
    /// # Errors
    /// As [`ask`](Bench::ask).
    pub fn ask_beside(
        &mut self,
        question: &Question<'_>,
        other: Option<&mut dyn Candidate>,
        observer: &mut dyn Observer,
    ) -> Result<Answer, LabError> {
        let mut runners: Vec<Runner<'_>> = question
            .routines
            .iter()
            .enumerate()
            .map(|(index, routine)| Runner {
                routine,
                reference: index == 0,
                verify: question.verify && question.state != State::Overlap,
                overlap: question.state == State::Overlap,
                fresh: question.state == State::Fresh,
                upwards: false,
            })
            .collect();
        let mut candidates: Vec<&mut dyn Candidate> =
            runners.iter_mut().map(|runner| runner as &mut dyn Candidate).collect();
        if let Some(other) = other {
            candidates.push(other);
        }
        self.ask_with(question, &mut candidates, observer)
    }

    /// As [`ask`](Bench::ask), with candidates of the experiment's own in place of the question's
    /// routines, which are not looked at; the first is the reference. What their kernels do to
    /// operands of the question's operation and size is checked as they
    /// [name them](Candidate::function).
    ///
    /// # Errors
    /// As [`ask`](Bench::ask).
    pub fn ask_with(
        &mut self,
        question: &Question<'_>,
        candidates: &mut [&mut dyn Candidate],
        observer: &mut dyn Observer,
    ) -> Result<Answer, LabError> {
        let bystander_bytes = question.state.bystander();
        if let Some(bytes) = bystander_bytes
            && !self.bystanders.contains_key(&bytes)
        {
            self.bystanders.insert(bytes, Bystander::new(bytes, self.seed)?);
        }
        let (destination, source) = self.operands(question)?;
        self.asked += 1;
        let mut plan = question.plan.clone();
        plan.seed = self.seed.wrapping_add(self.asked);
        if question.state == State::Fresh {
            // A second call would meet the pages of the first. What the caches hold is the operating
            // system's doing, and dozens of calls would be as many times the faults.
            plan.calls = Some(1);
            plan.settles = false;
        }
        if question.verify && question.state == State::Overlap {
            for routine in question.routines {
                check_overlap(routine, &destination)?;
            }
        }
        let reads_only = matches!(question.operation, Operation::Compare | Operation::Equal);
        let mut cell = Cell {
            size: question.size,
            destination,
            source,
            contents: if reads_only { Contents::Equal } else { Contents::Overwritten },
            reader: question.state.reader(),
            bystander: bystander_bytes.and_then(|bytes| self.bystanders.get_mut(&bytes)),
        };
        let mut lookout = Lookout::new(observer);
        let result = sampler::run(&mut cell, candidates, &plan, &self.clock, &mut lookout)?;
        Ok(self.answer(question, &result))
    }

    /// Operands for a question, from the shared arena.
    fn operands(
        &mut self,
        question: &Question<'_>,
    ) -> Result<(Operand, Option<Operand>), LabError> {
        let caches = self.machine.caches.clone();
        let two =
            !matches!(question.operation, Operation::Fill | Operation::Zero | Operation::ZeroPages)
                && question.state != State::Overlap;
        let pages = matches!(question.operation, Operation::CopyPages | Operation::ZeroPages);
        let size = question.size + if question.state == State::Overlap { OVERLAP } else { 0 };
        // The source starts 512 bytes into a page where the destination starts at a page, so that a
        // load never has the low twelve bits of a store shortly before it.
        let (destination_offset, source_offset) = match question.state {
            State::Askew => (24, 512 + 9),
            State::Alike | State::Fresh => (16, 16),
            _ if pages => (0, 0),
            State::Scene(Scene { page_aligned: true, .. }) => (0, 0),
            _ => (0, 512),
        };
        match question.state {
            State::Above => return self.operands_above(size, &caches),
            State::Fresh => return self.operands_fresh(size, two, source_offset, &caches),
            _ => {}
        }
        let (source_level, destination_level) = question.state.levels();
        // Two operands at one level share it.
        let shared = two && source_level == destination_level;
        let share = if shared { 0.5 } else { 1.0 };
        let room = |level: Option<Level>, offset: usize| match level {
            Some(level) => Operand::footprint(level, size, offset, share, &caches),
            None => Ok((size + offset).next_multiple_of(PAGE_SIZE)),
        };
        let second = room(destination_level, destination_offset)?;
        let needed = second + if two { room(source_level, source_offset)? } else { 0 };
        let arena = self.arena(needed)?;
        let place = |from, level: Option<Level>, offset| match level {
            Some(level) => {
                Operand::in_arena(&arena, from, level, size, offset, share, &caches, self.seed)
            }
            None => Operand::reused(&arena, from, size, offset, &caches, self.seed),
        };
        let source = two.then(|| place(second, source_level, source_offset)).transpose()?;
        Ok((place(0, destination_level, destination_offset)?, source))
    }

    /// Source at the arena's start, destination a power of two and 32 bytes above it.
    fn operands_above(
        &mut self,
        size: usize,
        caches: &Caches,
    ) -> Result<(Operand, Option<Operand>), LabError> {
        let distance = size.next_power_of_two().max(PAGE_SIZE);
        let arena = self.arena(distance + (size + 32).next_multiple_of(PAGE_SIZE))?;
        let place = |from, offset| Operand::reused(&arena, from, size, offset, caches, self.seed);
        Ok((place(distance, 32)?, Some(place(0, 0)?)))
    }

    /// The destination in an arena of its own, on the pages that a program gets which says nothing:
    /// giving back part of a huge page would break up the one that other questions use.
    fn operands_fresh(
        &mut self,
        size: usize,
        two: bool,
        offset: usize,
        caches: &Caches,
    ) -> Result<(Operand, Option<Operand>), LabError> {
        let bytes = (size + offset).next_multiple_of(PAGE_SIZE);
        let kept = self.fresh.take().filter(|arena| arena.len() >= bytes);
        let fresh = match kept {
            Some(arena) => arena,
            None => Arc::new(Arena::new(bytes, PagePolicy::Default, self.seed)?),
        };
        self.fresh = Some(Arc::clone(&fresh));
        let destination = Operand::reused(&fresh, 0, size, offset, caches, self.seed)?;
        if !two {
            return Ok((destination, None));
        }
        let arena = self.arena(bytes)?;
        let source = Operand::reused(&arena, 0, size, offset, caches, self.seed)?;
        Ok((destination, Some(source)))
    }

    fn arena(&mut self, bytes: usize) -> Result<Arc<Arena>, LabError> {
        self.arena_on(bytes, PagePolicy::Huge)
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

    fn answer(&self, question: &Question<'_>, result: &CellResult) -> Answer {
        let reference = &result.candidates[0];
        let (source, destination) = question.state.levels();
        let has_source =
            !matches!(question.operation, Operation::Fill | Operation::Zero | Operation::ZeroPages);
        let cell = CellKey {
            operation: question.operation.name().to_owned(),
            size: question.size as u64,
            source: source.filter(|_| has_source).map(|level| level.to_string()),
            destination: destination.map(|level| level.to_string()),
            state: question.state.label().into(),
            reader: question.state.reader().map(|reader| reader.touched_fraction),
            bystander: question.state.bystander().map(|bytes| bytes as u64),
            axes: BTreeMap::new(),
        };
        let proofs: Vec<Proof> =
            [&result.proofs.0, &result.proofs.1].into_iter().flatten().cloned().collect();
        let row = |samples: &Samples| {
            let pair = |ours: &[f64], theirs: &[f64]| {
                PairedRatio::new(ours, &theirs[..ours.len().min(theirs.len())], self.seed)
            };
            let ratio = pair(&samples.operation_ns, &reference.operation_ns);
            let parts = question.state.reader().is_some() || question.state.bystander().is_some();
            Row {
                experiment: question.experiment.to_owned(),
                cell: cell.clone(),
                candidate: samples.name.clone(),
                reference: reference.name.clone(),
                calls: result.calls_per_sample,
                operation_ns: samples.operation_ns.clone(),
                reader_ns: samples.reader_ns.clone(),
                bystander_ns: samples.bystander_ns.clone(),
                ratio: Some(ratio),
                verdict: Some(ratio.verdict(MARGIN)),
                total_ratio: parts.then(|| pair(&samples.total_ns(), &reference.total_ns())),
                proofs: if samples.name == reference.name { proofs.clone() } else { Vec::new() },
                drift: (samples.name == reference.name).then_some(result.drift),
                dropped: samples.dropped_after.is_some(),
                extra: BTreeMap::new(),
                histogram: None,
            }
        };
        Answer {
            rows: result.candidates.iter().map(row).collect(),
            interrupted: result.interrupted,
            out_of_time: result.out_of_time,
        }
    }
}

/// A routine as the sampler's candidate.
struct Runner<'a> {
    routine: &'a Routine,
    reference: bool,
    verify: bool,
    overlap: bool,
    fresh: bool,
    upwards: bool,
}

impl Candidate for Runner<'_> {
    fn name(&self) -> &str {
        &self.routine.name
    }

    fn arrange(&mut self, places: &[Place]) {
        if self.fresh {
            for place in places {
                give_back(place);
            }
        }
    }

    fn call(&mut self, place: &Place) {
        self.call_all(std::slice::from_ref(place));
    }

    fn call_all(&mut self, places: &[Place]) {
        // The match stands outside the loops, so that what is timed is a call and nothing else.
        macro_rules! calls {
            ($place:ident => $call:expr) => {
                for $place in places {
                    // SAFETY: the sampler hands out places that are valid for n bytes, source and
                    // destination apart, and the routine runs on this CPU.
                    std::hint::black_box(unsafe { $call });
                }
            };
        }
        let order = |bytes: usize| (bytes / PAGE_SIZE).max(1).ilog2();
        match self.routine.function {
            Function::Move(f) if self.overlap => {
                for place in places {
                    self.upwards = !self.upwards;
                    let (low, high) = (place.dst, place.dst.wrapping_add(OVERLAP));
                    let (dst, src) = if self.upwards { (high, low) } else { (low, high) };
                    // SAFETY: the slot is OVERLAP bytes longer than n, and a move takes overlap.
                    std::hint::black_box(unsafe { f(dst, src, place.n) });
                }
            }
            Function::Copy(f) | Function::Move(f) => calls!(p => f(p.dst, p.src, p.n)),
            Function::Fill(f) => {
                calls!(p => f(p.dst, i32::from(crate::routines::FILL_BYTE), p.n))
            }
            Function::Zero(f) => calls!(p => f(p.dst, p.n)),
            Function::Compare(f) | Function::Equal(f) => calls!(p => f(p.dst, p.src, p.n)),
            Function::CopyPages(f) => calls!(p => f(p.dst, p.src, order(p.n))),
            Function::ZeroPages(f) => calls!(p => f(p.dst, order(p.n))),
        }
    }

    fn function(&self) -> Option<Function> {
        self.verify.then_some(self.routine.function)
    }

    fn stays(&self) -> bool {
        self.reference
    }

    /// Ways around the cache are a league of their own: what is best through it has to be known even
    /// where they are far ahead (`Evidence::may_fit_again`).
    fn league(&self) -> u8 {
        let kernel = cachewise_kernels::find(&self.routine.name);
        u8::from(kernel.is_some_and(cachewise_kernels::Kernel::is_non_temporal))
    }
}

/// Gives the pages of a place's destination back to the operating system: the next access faults.
fn give_back(place: &Place) {
    let lead = place.dst as usize % PAGE_SIZE;
    let bytes = (lead + place.n).next_multiple_of(PAGE_SIZE);
    let page = place.dst.wrapping_sub(lead).cast();
    // SAFETY: whole pages of a private anonymous arena that only this destination lies in; nobody
    // reads what they held, since the call to come writes all of the place.
    let refused = unsafe { libc::madvise(page, bytes, libc::MADV_DONTNEED) };
    debug_assert_eq!(refused, 0);
}

/// Moves by [`OVERLAP`] bytes up and down inside the operand's first slot and checks every byte.
fn check_overlap(routine: &Routine, operand: &Operand) -> Result<(), LabError> {
    let Function::Move(function) = routine.function else { return Ok(()) };
    let slot = operand.visit(0);
    let n = operand.size() - OVERLAP;
    // SAFETY: a slot of a written arena; nobody else uses it meanwhile.
    let bytes = unsafe { std::slice::from_raw_parts_mut(slot, operand.size()) };
    for (to, from) in [(OVERLAP, 0), (0, OVERLAP)] {
        let mut expected = bytes.to_vec();
        expected.copy_within(from..from + n, to);
        let start = bytes.as_mut_ptr();
        // SAFETY: both places are inside the slot for n bytes, and a move takes overlap.
        unsafe { function(start.wrapping_add(to), start.wrapping_add(from), n) };
        if let Some(at) = (0..expected.len()).find(|&at| bytes[at] != expected[at]) {
            return Err(LabError::WrongBytes {
                what: format!(
                    "{}: {n} bytes moved by {} bytes: byte {at} is {}, expected {}",
                    routine.name,
                    to as isize - from as isize,
                    bytes[at],
                    expected[at]
                ),
            });
        }
    }
    Ok(())
}
