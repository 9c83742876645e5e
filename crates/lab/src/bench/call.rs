//! A candidate made of closures: a routine on the operands as they are, or whatever an experiment
//! calls in its place.

use super::OVERLAP;
use crate::callee::Callee;
use crate::routines::Routine;
use cachewise_kernels::{Function, Kernel};
use cachewise_measure::{Candidate, Place};

type Calls<'c> = Box<dyn FnMut(&[Place]) + 'c>;
type Check<'c> = Box<dyn Fn(&Place) -> Result<(), String> + 'c>;

/// One candidate.
pub struct Call<'c> {
    /// What results call it.
    pub name: String,
    function: Option<Function>,
    setup: Option<Calls<'c>>,
    calls: Calls<'c>,
    check: Option<Check<'c>>,
    stays: bool,
    group: u8,
}

impl<'c> Call<'c> {
    /// One whose `calls` make one call per place, back to back; nothing else is timed.
    pub fn new(name: impl Into<String>, calls: impl FnMut(&[Place]) + 'c) -> Call<'c> {
        Call {
            name: name.into(),
            function: None,
            setup: None,
            calls: Box::new(calls),
            check: None,
            stays: true,
            group: 0,
        }
    }

    /// A routine on the operands as they are, its bytes checked.
    pub fn of(routine: &Routine) -> Call<'c> {
        let function = routine.function;
        let kernel = cachewise_kernels::find(&routine.name);
        let callee = Callee::new(function);
        Call {
            function: Some(function),
            // The best with temporal stores has to be known even where non-temporal ones are far ahead.
            group: u8::from(kernel.is_some_and(Kernel::is_non_temporal)),
            ..Call::new(routine.name.clone(), move |places: &[Place]| callee.run(places))
        }
    }

    /// A move by `OVERLAP` bytes inside one buffer, in turn upwards and downwards.
    pub fn overlapping(routine: &Routine) -> Call<'c> {
        let Function::Move(function) = routine.function else { return Call::of(routine) };
        let callee = Callee::new(routine.function);
        let mut upwards = false;
        let call = Call::new(routine.name.clone(), move |places: &[Place]| {
            let mut moves = [Place { dst: std::ptr::null_mut(), src: std::ptr::null(), n: 0 }; 64];
            for some in places.chunks(moves.len()) {
                for (one, place) in moves.iter_mut().zip(some) {
                    upwards = !upwards;
                    // The slot is OVERLAP bytes longer than n, and a move takes overlap.
                    let (low, high) = (place.dst, place.dst.wrapping_add(OVERLAP));
                    let (dst, src) = if upwards { (high, low) } else { (low, high) };
                    *one = Place { dst, src, n: place.n };
                }
                callee.run(&moves[..some.len()]);
            }
        });
        call.checked(move |place| {
            // SAFETY: a slot of a written arena, OVERLAP bytes longer than n; nobody else uses it.
            let bytes = unsafe { std::slice::from_raw_parts_mut(place.dst, place.n + OVERLAP) };
            for (to, from) in [(OVERLAP, 0), (0, OVERLAP)] {
                let mut expected = bytes.to_vec();
                expected.copy_within(from..from + place.n, to);
                let start = bytes.as_mut_ptr();
                // SAFETY: both places are inside the slot for n bytes, and a move takes overlap.
                unsafe { function(start.wrapping_add(to), start.wrapping_add(from), place.n) };
                if let Some(at) = (0..expected.len()).find(|&at| bytes[at] != expected[at]) {
                    let moved = to as isize - from as isize;
                    let (found, wanted) = (bytes[at], expected[at]);
                    return Err(format!(
                        "{} bytes moved by {moved} bytes: byte {at} is {found}, expected {wanted}",
                        place.n
                    ));
                }
            }
            Ok(())
        })
    }

    /// After one untimed call on a destination that held other bytes, `check` looks at the result and
    /// says what is wrong with it.
    #[must_use]
    pub fn checked(mut self, check: impl Fn(&Place) -> Result<(), String> + 'c) -> Call<'c> {
        self.check = Some(Box::new(check));
        self
    }

    /// What it needs before each sample beyond the operands' state, untimed.
    #[must_use]
    pub fn set_up(mut self, setup: impl FnMut(&[Place]) + 'c) -> Call<'c> {
        self.setup = Some(Box::new(setup));
        self
    }

    /// Whether its bytes are checked, as the routine's it was made of.
    #[must_use]
    pub fn verified(mut self, verified: bool) -> Call<'c> {
        self.function = self.function.filter(|_| verified);
        self.check = self.check.filter(|_| verified);
        self
    }

    /// Whether it stays to the end however slow it is.
    #[must_use]
    pub fn staying(mut self, stays: bool) -> Call<'c> {
        self.stays = stays;
        self
    }
}

/// Candidates of one kind, as they are given to a bench.
pub fn each<C: Candidate>(all: &mut [C]) -> Vec<&mut dyn Candidate> {
    all.iter_mut().map(|one| one as &mut dyn Candidate).collect()
}

/// Whether the destination holds the source's bytes.
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

/// Whether the destination holds zeros.
pub fn is_zeroed(place: &Place) -> Result<(), String> {
    is_filled(place, 0)
}

/// Whether the destination holds that byte everywhere.
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
        if let Some(setup) = &mut self.setup {
            setup(places);
        }
    }

    fn function(&self) -> Option<Function> {
        self.function
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
