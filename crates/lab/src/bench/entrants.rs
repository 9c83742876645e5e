//! Contests whose entrants are more than a routine on the operands as they lie: a kernel at an
//! offset, page by page, between saving and restoring registers.
//!
//! A [`Question`](super::Question) has routines; a [`Contest`] has [`Entrant`]s, each with its own
//! call, its own preparation and its own check. Sampling, proofs and statistics are the same.

use super::{Bench, MARGIN, Samples};
use crate::LabError;
use crate::routines::{FILL_BYTE, Routine};
use crate::watch::{Lookout, Observer};
use cachewise_kernels::{Function, PAGE_SIZE};
use cachewise_measure::{
    Arena, Candidate, Cell, CellKey, CellResult, Contents, Level, Operand, PagePolicy, PairedRatio,
    Place, Plan, Proof, Row, sampler,
};
use std::sync::Arc;

type Calls<'e> = Box<dyn FnMut(&[Place]) + 'e>;
type Judge<'e> = Box<dyn Fn(&Place) -> Result<(), String> + 'e>;

/// One who competes.
pub struct Entrant<'e> {
    /// What results call it.
    pub name: String,
    function: Option<Function>,
    arrange: Option<Calls<'e>>,
    calls: Calls<'e>,
    judge: Option<Judge<'e>>,
}

impl<'e> Entrant<'e> {
    /// One whose `calls` make one call per place, back to back; nothing else is timed.
    #[must_use]
    pub fn new(name: impl Into<String>, calls: impl FnMut(&[Place]) + 'e) -> Entrant<'e> {
        Entrant {
            name: name.into(),
            function: None,
            arrange: None,
            calls: Box::new(calls),
            judge: None,
        }
    }

    /// A routine on the operands as they are.
    #[must_use]
    pub fn plain(routine: &Routine) -> Entrant<'e> {
        let function = routine.function;
        Entrant::new(routine.name.clone(), move |places: &[Place]| run_all(function, places))
            .checked_as(function)
    }

    /// Its bytes are checked as this function's, at the cell's full size.
    #[must_use]
    pub fn checked_as(mut self, function: Function) -> Entrant<'e> {
        self.function = Some(function);
        self
    }

    /// After one untimed call on a destination that held other bytes, `judge` looks at the result
    /// and says what is wrong with it.
    #[must_use]
    pub fn judged(mut self, judge: impl Fn(&Place) -> Result<(), String> + 'e) -> Entrant<'e> {
        self.judge = Some(Box::new(judge));
        self
    }

    /// What it needs before each sample beyond the operands' state, untimed.
    #[must_use]
    pub fn arranged(mut self, arrange: impl FnMut(&[Place]) + 'e) -> Entrant<'e> {
        self.arrange = Some(Box::new(arrange));
        self
    }
}

impl Candidate for Entrant<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&mut self, place: &Place) {
        (self.calls)(std::slice::from_ref(place));
    }

    fn call_all(&mut self, places: &[Place]) {
        (self.calls)(places);
    }

    fn arrange(&mut self, places: &[Place]) {
        if let Some(arrange) = &mut self.arrange {
            arrange(places);
        }
    }

    fn function(&self) -> Option<Function> {
        self.function
    }

    // Entrants are compared with each other, not only with the first.
    fn stays(&self) -> bool {
        true
    }
}

/// One call of a routine per place, the match outside the loop.
pub fn run_all(function: Function, places: &[Place]) {
    macro_rules! calls {
        ($place:ident => $call:expr) => {
            for $place in places {
                // SAFETY: places are valid for n bytes, source and destination apart, and whoever
                // entered the routine saw to it that this CPU runs it.
                std::hint::black_box(unsafe { $call });
            }
        };
    }
    let order = |bytes: usize| (bytes / PAGE_SIZE).max(1).ilog2();
    match function {
        Function::Copy(f) | Function::Move(f) => calls!(p => f(p.dst, p.src, p.n)),
        Function::Fill(f) => calls!(p => f(p.dst, i32::from(FILL_BYTE), p.n)),
        Function::Zero(f) => calls!(p => f(p.dst, p.n)),
        Function::Compare(f) | Function::Equal(f) => calls!(p => f(p.dst, p.src, p.n)),
        Function::CopyPages(f) => calls!(p => f(p.dst, p.src, order(p.n))),
        Function::ZeroPages(f) => calls!(p => f(p.dst, order(p.n))),
    }
}

/// Where an operand of a contest lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// The level it is placed in and proved at; `None` is one buffer over and over.
    pub level: Option<Level>,
    /// Bytes into a page (a line, for operands below a page).
    pub offset: usize,
}

/// A cell to be competed in.
pub struct Contest<'q, 'e> {
    /// Bytes of a slot, and `n` of every place.
    pub size: usize,
    /// The destination.
    pub destination: Spot,
    /// The source, where there is one.
    pub source: Option<Spot>,
    /// Bytes between the beginnings of a reused destination and a reused source, a multiple of a
    /// page; as near as they fit when 0.
    pub distance: usize,
    /// On which pages they lie.
    pub pages: PagePolicy,
    /// What the destination holds.
    pub contents: Contents,
    /// How it is sampled. Nobody is dropped for slowness.
    pub plan: Plan,
    /// Fills the source's slots, each given once, before anything else; they keep it.
    pub write_source: Option<&'q dyn Fn(*mut u8, usize)>,
    /// Who competes.
    pub entrants: &'q mut [Entrant<'e>],
}

/// What a contest found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The samples and the proofs.
    pub result: CellResult,
    /// Which part of the arena is backed by huge pages, where that can be told.
    pub huge: Option<f64>,
    seed: u64,
}

impl Bench {
    /// Lets entrants compete in a cell.
    ///
    /// # Errors
    /// Wrong bytes, a size that does not fit its level or the budget.
    pub fn hold(
        &mut self,
        contest: Contest<'_, '_>,
        observer: &mut dyn Observer,
    ) -> Result<Found, LabError> {
        let (destination, source, arena) = self.spots(&contest)?;
        if let (Some(write), Some(source)) = (contest.write_source, &source) {
            for slot in 0..source.slots() {
                write(source.visit(slot), source.size());
            }
        }
        self.asked += 1;
        let mut plan = contest.plan.clone();
        plan.seed = self.seed.wrapping_add(self.asked);
        plan.screening_rounds = 0;
        for entrant in contest.entrants.iter_mut() {
            let dst = destination.visit(0);
            let src = source.as_ref().map_or(dst, |source| source.visit(0)).cast_const();
            judge(entrant, &Place { dst, src, n: contest.size })?;
        }
        let mut cell = Cell {
            size: contest.size,
            destination,
            source,
            contents: contest.contents,
            reader: None,
            bystander: None,
        };
        let mut candidates: Vec<&mut dyn Candidate> =
            contest.entrants.iter_mut().map(|entrant| entrant as &mut dyn Candidate).collect();
        let mut lookout = Lookout::new(observer);
        let result = sampler::run(&mut cell, &mut candidates, &plan, &self.clock, &mut lookout)?;
        if contest.write_source.is_some() {
            self.forget_contents();
        }
        Ok(Found { result, huge: arena.huge_fraction(), seed: self.seed })
    }

    /// Says that a contest left its own bytes in the arena: the next one gets incompressible ones.
    pub fn forget_contents(&mut self) {
        self.arena = None;
    }

    fn spots(
        &mut self,
        contest: &Contest<'_, '_>,
    ) -> Result<(Operand, Option<Operand>, Arc<Arena>), LabError> {
        let caches = self.machine.caches.clone();
        let (size, seed) = (contest.size, self.seed);
        let shared = contest.source.is_some_and(|source| source.level == contest.destination.level);
        let share = if shared { 0.5 } else { 1.0 };
        let room = |spot: Spot| match spot.level {
            None => Ok((size + spot.offset % PAGE_SIZE).next_multiple_of(PAGE_SIZE)),
            Some(level) => Operand::footprint(level, size, spot.offset, share, &caches),
        };
        let first = room(contest.destination)?;
        let (needed, source_from, destination_from) = match contest.source {
            None => (first, 0, 0),
            // The source first: the distances of interest are those of a destination above it.
            Some(source) => {
                let destination_from = room(source)?.max(contest.distance);
                (destination_from + first, 0, destination_from)
            }
        };
        let arena = self.arena_on(needed, contest.pages)?;
        let place = |from, spot: Spot| match spot.level {
            None => Operand::reused(&arena, from, size, spot.offset, &caches, seed),
            Some(level) => {
                Operand::in_arena(&arena, from, level, size, spot.offset, share, &caches, seed)
            }
        };
        let destination = place(destination_from, contest.destination)?;
        let source = contest.source.map(|spot| place(source_from, spot)).transpose()?;
        Ok((destination, source, arena))
    }
}

/// One call on a destination of other bytes, and the entrant's own opinion of the outcome.
fn judge(entrant: &mut Entrant<'_>, place: &Place) -> Result<(), LabError> {
    let Some(judge) = entrant.judge.take() else { return Ok(()) };
    if !std::ptr::eq(place.dst, place.src) {
        // SAFETY: both are valid for n bytes, and apart.
        unsafe { std::ptr::copy_nonoverlapping(place.src, place.dst, place.n) };
    }
    // SAFETY: n initialised bytes that nobody else uses meanwhile; the slice ends before the call.
    let held = unsafe { std::slice::from_raw_parts_mut(place.dst, place.n) };
    let (words, rest) = held.as_chunks_mut::<8>();
    // Neither the source's byte nor, the arena's bytes being odd, 0 or 0xFF.
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ 0x1010_1010_1010_1010).to_ne_bytes();
    }
    rest.iter_mut().for_each(|byte| *byte ^= 0x10);
    entrant.arrange(std::slice::from_ref(place));
    entrant.call(place);
    let outcome = judge(place);
    outcome.map_err(|what| LabError::WrongBytes { what: format!("{}: {what}", entrant.name) })
}

impl Found {
    /// Whether the user stopped it before it was done.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        self.result.interrupted
    }

    /// An entrant's samples.
    #[must_use]
    pub fn samples(&self, index: usize) -> &Samples {
        &self.result.candidates[index]
    }

    /// The row of one entrant, compared with another of the same contest. The residency's proofs and
    /// the drift stand on the first entrant's row.
    #[must_use]
    pub fn row(&self, experiment: &str, cell: CellKey, index: usize, reference: usize) -> Row {
        let (ours, theirs) = (self.samples(index), self.samples(reference));
        let ratio = PairedRatio::new(&ours.operation_ns, &theirs.operation_ns, self.seed);
        let proofs: Vec<Proof> = [&self.result.proofs.0, &self.result.proofs.1]
            .into_iter()
            .flatten()
            .filter(|_| index == 0)
            .cloned()
            .collect();
        Row {
            experiment: experiment.to_owned(),
            cell,
            candidate: ours.name.clone(),
            reference: theirs.name.clone(),
            calls: self.result.calls_per_sample,
            operation_ns: ours.operation_ns.clone(),
            reader_ns: Vec::new(),
            bystander_ns: Vec::new(),
            ratio: Some(ratio),
            verdict: Some(ratio.verdict(MARGIN)),
            total_ratio: None,
            proofs,
            drift: (index == 0).then_some(self.result.drift),
            dropped: false,
            extra: std::collections::BTreeMap::new(),
            histogram: None,
        }
    }
}
