//! A candidate made of closures: a routine on the operands as they are, or whatever an experiment
//! calls in its place.

use crate::callee::{Callee, STORED, once};
use crate::routines::Routine;
use cachewise_kernels::{Function, Kernel};
use cachewise_measure::{Candidate, CellKey, Place, Row};
use fastrand::Rng;
use std::cell::RefCell;
use std::rc::Rc;

type Calls<'c> = Box<dyn FnMut(&[Place]) + 'c>;
type Before<'c> = Box<dyn FnMut(&[Place], usize) + 'c>;
type Read<'c> = Box<dyn FnMut(&Place) + 'c>;
type Check<'c> = Box<dyn Fn(&Place) -> Result<(), String> + 'c>;
type Told<'c> = Box<dyn Fn(Row) -> Row + 'c>;

pub struct Call<'c> {
    pub name: String,
    function: Option<Function>,
    companion: Option<Function>,
    before: Option<Before<'c>>,
    read: Option<Read<'c>>,
    setup: Option<Calls<'c>>,
    calls: Calls<'c>,
    check: Option<Check<'c>>,
    stays: bool,
    group: u8,
    /// Its name and its reference's in its row, and that one's place among the candidates.
    names: Option<(String, String)>,
    reference: usize,
    told: Option<Told<'c>>,
}

impl<'c> Call<'c> {
    /// One whose `calls` make one call per place, back to back; nothing else is timed.
    pub fn new(name: impl Into<String>, calls: impl FnMut(&[Place]) + 'c) -> Call<'c> {
        Call {
            name: name.into(),
            function: None,
            companion: None,
            before: None,
            read: None,
            setup: None,
            calls: Box::new(calls),
            check: None,
            stays: true,
            group: 0,
            names: None,
            reference: 0,
            told: None,
        }
    }

    /// Calls of a function on whatever places `of` makes of each of the operands', nothing checked.
    pub fn on<I: IntoIterator<Item = Place>>(
        name: impl Into<String>,
        function: Function,
        of: impl Fn(&Place) -> I + 'c,
    ) -> Call<'c> {
        Call::new(name, move |places: &[Place]| {
            for place in places {
                of(place).into_iter().for_each(|part| once(function, &part));
            }
        })
    }

    /// A routine on the operands as they are, its bytes checked.
    pub fn of(routine: &Routine) -> Call<'c> {
        let kernel = cachewise_kernels::find(&routine.name);
        let callee = Callee::new(routine.function);
        Call {
            function: Some(routine.function),
            // The best with temporal stores has to be known even where non-temporal ones are far ahead.
            group: u8::from(kernel.is_some_and(Kernel::is_non_temporal)),
            ..Call::new(routine.name.clone(), move |places: &[Place]| callee.run(places))
        }
    }

    /// A routine whose operands are met by what programs have around a call: the source is stored by stores of that width just
    /// before, where one is given, and a part of the result is loaded at once, before the next call begins. The operands hold
    /// one byte everywhere.
    pub fn at_once(routine: &Routine, stored: Option<usize>, seed: u64) -> Call<'c> {
        let callee = Callee::new(routine.function);
        let from = Rc::new(RefCell::new(Vec::new()));
        let loads = Rc::clone(&from);
        let call = Call::new(routine.name.clone(), move |places: &[Place]| {
            if from.borrow().len() < places.len() {
                from.replace(crate::callee::loads(places, &mut Rng::with_seed(seed)));
            }
            callee.run_at_once(places, &from.borrow()[..places.len()], stored);
        });
        call.set_up(move |places| {
            for Place { dst, src, n } in places {
                for operand in [*dst, src.cast_mut()] {
                    // SAFETY: n bytes of the operands, which nobody else uses.
                    unsafe { operand.write_bytes(STORED, *n) };
                }
            }
            loads.replace(crate::callee::loads(places, &mut Rng::with_seed(seed)));
        })
    }

    /// One for each routine; the first, which is the reference, stays to the end. Bytes are checked where
    /// `check` says so.
    pub fn of_all(routines: &[Routine], check: bool) -> Vec<Call<'c>> {
        let call = |(index, routine): (usize, &Routine)| {
            let function = Some(routine.function).filter(|_| check);
            Call { function, stays: index == 0, ..Call::of(routine) }
        };
        routines.iter().enumerate().map(call).collect()
    }

    /// The kernels behind it, whose bytes are checked.
    #[must_use]
    pub fn made_of(self, function: Function, companion: Option<Function>) -> Call<'c> {
        Call { function: Some(function), companion, ..self }
    }

    /// Sets whether it stays to the end however slow it is, as it does by default.
    #[must_use]
    pub fn staying(self, stays: bool) -> Call<'c> {
        Call { stays, ..self }
    }

    /// Has its input produced before the calls ([`Candidate::before`]).
    #[must_use]
    pub fn preceded(mut self, before: impl FnMut(&[Place], usize) + 'c) -> Call<'c> {
        self.before = Some(Box::new(before));
        self
    }

    /// Uses the destination in a way of its own where the cell has a reader.
    #[must_use]
    pub fn reading(mut self, read: impl FnMut(&Place) + 'c) -> Call<'c> {
        self.read = Some(Box::new(read));
        self
    }

    /// After one untimed call on a destination that held other bytes, `check` looks at the result and
    /// says what is wrong with it.
    #[must_use]
    pub fn checked(mut self, check: impl Fn(&Place) -> Result<(), String> + 'c) -> Call<'c> {
        self.check = Some(Box::new(check));
        self
    }

    /// Compared with the candidate at that place, which is the first where nothing is said.
    #[must_use]
    pub fn beside(self, reference: usize) -> Call<'c> {
        Call { reference, ..self }
    }

    /// A variant of a routine: its row has the routine's name, and the one that it is compared with, if that
    /// is another, the same with `other` added.
    #[must_use]
    pub fn variant(self, of: &Routine, reference: usize, other: &str) -> Call<'c> {
        let names = (of.name.clone(), format!("{}{other}", of.name));
        Call { names: Some(names), reference, ..self }
    }

    /// Has its row changed in what `told` says: its cell's name and coordinates, further figures.
    #[must_use]
    pub fn told(mut self, told: impl Fn(Row) -> Row + 'c) -> Call<'c> {
        self.told = Some(Box::new(told));
        self
    }

    /// Changes the cell of its rows alone.
    #[must_use]
    pub fn in_cell(self, told: impl Fn(CellKey) -> CellKey + 'c) -> Call<'c> {
        self.told(move |mut row| Row { cell: told(std::mem::take(&mut row.cell)), ..row })
    }

    /// The place of the candidate that it is compared with.
    pub(crate) fn reference(&self) -> usize {
        self.reference
    }

    /// The row of the candidate that had this place, as it tells it.
    pub(crate) fn tell(&self, place: usize, mut row: Row) -> Row {
        if let Some((candidate, other)) = &self.names {
            let reference = if place == self.reference { candidate } else { other };
            (row.candidate, row.reference) = (candidate.clone(), reference.clone());
        }
        self.told.iter().fold(row, |row, told| told(row))
    }

    /// Sets what it needs before each sample beyond the operands' state, untimed.
    #[must_use]
    pub fn set_up(mut self, setup: impl FnMut(&[Place]) + 'c) -> Call<'c> {
        self.setup = Some(Box::new(setup));
        self
    }
}

/// Candidates of one kind, as they are given to a bench.
pub fn each<C: Candidate>(all: &mut [C]) -> Vec<&mut dyn Candidate> {
    all.iter_mut().map(|one| one as &mut dyn Candidate).collect()
}

/// Checks that the destination holds the source's bytes.
pub fn is_copied(place: &Place) -> Result<(), String> {
    // SAFETY: n initialised bytes that nobody writes meanwhile.
    let ours = unsafe { std::slice::from_raw_parts(place.dst, place.n) };
    // SAFETY: as for the destination.
    let theirs = unsafe { std::slice::from_raw_parts(place.src, place.n) };
    if ours == theirs {
        return Ok(());
    }
    let at = ours.iter().zip(theirs).position(|(a, b)| a != b).unwrap_or(0);
    Err(format!("byte {at} of {} is {}, expected {}", place.n, ours[at], theirs[at]))
}

/// Checks that the destination holds zeros.
pub fn is_zeroed(place: &Place) -> Result<(), String> {
    is_filled(place, 0)
}

/// Checks that the destination holds that byte everywhere.
pub fn is_filled(place: &Place, byte: u8) -> Result<(), String> {
    // SAFETY: n initialised bytes that nobody writes meanwhile.
    let ours = unsafe { std::slice::from_raw_parts(place.dst, place.n) };
    match ours.iter().position(|found| *found != byte) {
        None => Ok(()),
        Some(at) => Err(format!("byte {at} of {} is {}, expected {byte}", place.n, ours[at])),
    }
}

impl Candidate for Call<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&mut self, place: &Place) {
        (self.calls)(std::slice::from_ref(place));
    }

    fn call_all(&mut self, places: &[Place]) {
        (self.calls)(places);
    }

    fn set_up(&mut self, places: &[Place]) {
        self.setup.iter_mut().for_each(|setup| setup(places));
    }

    fn before(&mut self, places: &[Place], calls: usize) {
        self.before.iter_mut().for_each(|before| before(places, calls));
    }

    fn read(&mut self, place: &Place) -> bool {
        self.read.iter_mut().for_each(|read| read(place));
        self.read.is_some()
    }

    fn function(&self) -> Option<Function> {
        self.function
    }

    fn companion(&self) -> Option<Function> {
        self.companion
    }

    fn is_checked(&self) -> bool {
        self.check.is_some()
    }

    fn check(&self, place: &Place) -> Result<(), String> {
        self.check.as_ref().map_or(Ok(()), |check| check(place))
    }

    fn stays(&self) -> bool {
        self.stays
    }

    fn group(&self) -> u8 {
        self.group
    }
}

/// One call of a function for each place; where the time counts, `Callee::run`.
pub fn run_all(function: Function, places: &[Place]) {
    Callee::new(function).run(places);
}
