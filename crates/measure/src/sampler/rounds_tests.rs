//! What a run does to its candidates, seen from the candidates.

use super::*;
use crate::Caches;
use std::cell::RefCell;
use std::rc::Rc;

pub(super) fn caches() -> Caches {
    crate::residency::tests::caches(4 << 20)
}

pub(super) fn operand(level: Level, size: usize, share: f64, seed: u64) -> Operand {
    Operand::new(level, size, 0, share, &caches(), seed).expect("an operand")
}

type Log = Rc<RefCell<Vec<(usize, Place, u8)>>>;

/// Notes who was called where and what the destination held, and spins.
struct Spy {
    id: usize,
    name: String,
    log: Log,
    nanoseconds: f64,
    clock: Clock,
    stays: bool,
    group: u8,
    function: Option<Function>,
}

impl Candidate for Spy {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&mut self, place: &Place) {
        // SAFETY: places hold at least one byte.
        let first = unsafe { place.dst.read() };
        self.log.borrow_mut().push((self.id, *place, first));
        // SAFETY: as above, writable.
        unsafe { place.dst.write(0) };
        self.clock.spin(self.nanoseconds);
    }

    fn function(&self) -> Option<Function> {
        self.function
    }

    fn stays(&self) -> bool {
        self.stays
    }
    fn group(&self) -> u8 {
        self.group
    }
}

/// Spies of such costs, and what they note.
fn spies(costs: &[f64]) -> (Log, Vec<Spy>) {
    let (log, clock) = (Log::default(), Clock::calibrate());
    let spy = |(id, nanoseconds): (usize, &f64)| Spy {
        id,
        name: format!("spy {id}"),
        log: Rc::clone(&log),
        nanoseconds: *nanoseconds,
        clock,
        stays: false,
        group: 0,
        function: None,
    };
    let spies = costs.iter().enumerate().map(spy).collect();
    (log, spies)
}

pub(super) fn attempt<C: Candidate>(
    cell: &mut Cell<'_>,
    candidates: &mut [C],
    plan: &Plan,
    stop: &dyn Fn() -> bool,
) -> Result<CellResult, MeasureError> {
    let mut candidates: Vec<&mut dyn Candidate> =
        candidates.iter_mut().map(|one| one as &mut dyn Candidate).collect();
    run(cell, &mut candidates, plan, &Clock::calibrate(), stop)
}

#[track_caller]
pub(super) fn start<C: Candidate>(
    cell: &mut Cell<'_>,
    candidates: &mut [C],
    plan: &Plan,
) -> CellResult {
    attempt(cell, candidates, plan, &|| false).expect("a result")
}

/// A destination and a source of one level, slots of 64 bytes.
fn pair(level: Level) -> Cell<'static> {
    Cell::new(operand(level, 64, 0.5, 1)).with_source(operand(level, 64, 0.5, 2))
}

#[test]
fn two_warm_up_calls_then_turns_in_shuffled_order() {
    let (log, mut three) = spies(&[60_000.0, 60_000.0, 60_000.0]);
    let mut cell = Cell::new(operand(Level::L1, 64, 0.5, 1));
    let plan = Plan { screening_rounds: 0, seed: 9, max_sample_ns: 1.0, ..Plan::default() };
    let result = start(&mut cell, &mut three, &plan);
    assert_eq!((result.rounds, result.calls_per_sample), (15, 1));
    assert!(result.proofs.1.is_some() && result.proofs.0.is_none());
    let order: Vec<usize> = log.borrow().iter().map(|(id, _, _)| *id).collect();
    assert_eq!(order[..6], [0, 0, 1, 1, 2, 2]);
    assert_eq!(order[6..9], [0, 1, 2], "one trial each");
    let rounds: Vec<&[usize]> = order[9..].chunks(3).collect();
    assert_eq!(rounds.len(), 15);
    for round in &rounds {
        let mut members = round.to_vec();
        members.sort_unstable();
        assert_eq!(members, [0, 1, 2]);
    }
    assert!(rounds.iter().any(|round| *round != rounds[0]), "the order varies");
    for samples in &result.candidates {
        assert_eq!(samples.operation_ns.len(), 15);
        assert!(samples.reader_ns.is_empty() && samples.bystander_ns.is_empty());
        assert!(samples.operation_ns.iter().all(|time| *time > 30_000.0), "{samples:?}");
    }
    let (log, mut again) = spies(&[60_000.0, 60_000.0, 60_000.0]);
    start(&mut cell, &mut again, &plan);
    let second: Vec<usize> = log.borrow().iter().map(|(id, _, _)| *id).collect();
    assert_eq!(second, order, "the seed decides");
}

#[test]
fn destinations_hold_something_else_each_time() {
    for level in [Level::L1, Level::Dram] {
        let (log, mut one) = spies(&[100_000.0]);
        start(&mut pair(level), &mut one, &Plan::default());
        assert!(log.borrow().iter().all(|(_, _, first)| *first != 0), "{level}");
    }
}

#[test]
fn slots_in_memory_are_not_met_again() {
    let (log, mut two) = spies(&[10.0, 10.0]);
    let far = |seed| operand(Level::Dram, 4096, 0.5, seed);
    let mut cell = Cell::new(far(1)).with_source(far(2));
    let plan = Plan { rounds: 15, screening_rounds: 0, ..Plan::default() };
    let result = start(&mut cell, &mut two, &plan);
    let slots = cell.destination.slots();
    assert!(result.visits_per_slot <= 0.5);
    let log = log.borrow();
    let recent: Vec<*mut u8> = log.iter().map(|(_, place, _)| place.dst).collect();
    for window in recent.windows(slots / 2) {
        let distinct: std::collections::HashSet<_> = window.iter().collect();
        assert_eq!(distinct.len(), window.len());
        if window.as_ptr() as usize > recent.as_ptr() as usize + 20 * 8 {
            break; // the check is quadratic; the beginning stands for the rest
        }
    }
}

#[test]
fn the_slow_are_dropped_but_the_reference_stays() {
    let (_, mut three) = spies(&[50_000.0, 1_000_000.0, 1_000_000.0]);
    three[2].stays = true;
    let mut cell = Cell::new(operand(Level::L1, 64, 1.0, 1));
    let plan = Plan { screening_rounds: 3, drop_ratio: 4.0, ..Plan::default() };
    let result = start(&mut cell, &mut three, &plan);
    let lengths: Vec<usize> = result.candidates.iter().map(|c| c.operation_ns.len()).collect();
    assert_eq!(lengths, [15, 3, 15]);
    assert_eq!(result.candidates[1].dropped_after, Some(3));
    assert_eq!(result.candidates[2].dropped_after, None);
}

#[test]
fn only_those_of_one_group_drop_each_other() {
    let (_, mut four) = spies(&[50_000.0, 1_000_000.0, 50_000.0, 1_000_000.0]);
    four[1].group = 1;
    let mut cell = Cell::new(operand(Level::L1, 64, 1.0, 1));
    let plan = Plan { screening_rounds: 3, drop_ratio: 4.0, ..Plan::default() };
    let result = start(&mut cell, &mut four, &plan);
    let dropped: Vec<bool> = result.candidates.iter().map(|c| c.dropped_after.is_some()).collect();
    assert_eq!(dropped, [false, false, false, true]);
}

#[test]
fn readers_and_bystanders_have_parts_of_their_own() {
    let (_, mut one) = spies(&[40_000.0]);
    let mut bystander = Bystander::new(64 << 10, 3).expect("a bystander");
    let mut cell = Cell {
        source: Some(operand(Level::Dram, 4096, 0.5, 2)),
        reader: Some(ReaderSpec { touched_fraction: 1.0, delay: Delay::Bytes(1 << 16) }),
        bystander: Some(&mut bystander),
        ..Cell::new(operand(Level::L2, 4096, 0.5, 1))
    };
    let result = start(&mut cell, &mut one, &Plan::default());
    let samples = &result.candidates[0];
    assert_eq!(samples.reader_ns.len(), 15);
    assert_eq!(samples.bystander_ns.len(), 15);
    assert!(samples.reader_ns.iter().all(|time| *time >= 0.0));
    let total = samples.operation_ns[4] + samples.reader_ns[4] + samples.bystander_ns[4];
    assert_eq!(samples.total_ns()[4], total);
    assert!(result.proofs.0.is_some());
}

#[test]
fn being_stopped_is_an_error() {
    let (_, mut two) = spies(&[40_000.0, 40_000.0]);
    let mut cell = Cell::new(operand(Level::L1, 64, 1.0, 1));
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) == 9;
    let stopped = attempt(&mut cell, &mut two, &Plan::default(), &stop);
    assert!(matches!(stopped, Err(MeasureError::Interrupted)), "{stopped:?}");
}

/// What string instructions and non-temporal stores do to a destination, made up: a call leaves its
/// mark, and one that is sticky takes three times as long where it finds a non-temporal one's.
struct Sticky {
    name: &'static str,
    non_temporal: bool,
    clock: Clock,
}

impl Candidate for Sticky {
    fn name(&self) -> &str {
        self.name
    }

    fn call(&mut self, place: &Place) {
        const EVICTED: u8 = 0;
        // SAFETY: places hold at least one byte.
        let found = unsafe { place.dst.read() };
        self.clock.spin(if found == EVICTED && !self.non_temporal { 90_000.0 } else { 30_000.0 });
        if self.non_temporal {
            // SAFETY: as above, writable.
            unsafe { place.dst.write(EVICTED) };
        }
    }
}

#[test]
fn who_ran_before_does_not_change_a_figure_where_the_destination_is_restored() {
    let clock = Clock::calibrate();
    let arena = std::sync::Arc::new(Arena::new(1 << 16, PagePolicy::Small, 1).expect("an arena"));
    let median_of = |restore: Restore| {
        let destination = Operand::reused(&arena, 0, 64, 0, &caches(), 1).expect("an operand");
        let mut cell = Cell::new(destination.restored(restore));
        let string = Sticky { name: "string", non_temporal: false, clock };
        let around = Sticky { name: "around", non_temporal: true, clock };
        let plan = Plan { calls: Some(2), screening_rounds: 0, ..Plan::default() };
        let result = start(&mut cell, &mut [string, around], &plan);
        // The least, so that a busy machine changes nothing: it can only take longer.
        result.candidates[0].operation_ns.iter().copied().fold(f64::INFINITY, f64::min)
    };
    // Restored, no call of it finds the other's mark; left alone, every one does.
    assert!(median_of(Restore::Cached) < 80_000.0);
    assert!(median_of(Restore::Evicted) < 80_000.0);
    assert!(median_of(Restore::Left) >= 90_000.0);
}

#[test]
fn compared_buffers_are_equal_up_to_where_they_should_be() {
    struct Compare(Option<usize>);
    impl Candidate for Compare {
        fn name(&self) -> &str {
            "compare"
        }
        fn call(&mut self, place: &Place) {
            // SAFETY: places are valid for n bytes.
            let a = unsafe { std::slice::from_raw_parts(place.dst, place.n) };
            // SAFETY: as above.
            let b = unsafe { std::slice::from_raw_parts(place.src, place.n) };
            assert_eq!(a.iter().zip(b).position(|(x, y)| x != y), self.0);
        }
        fn function(&self) -> Option<Function> {
            cachewise_kernels::find("compare.bytes").map(|kernel| kernel.function)
        }
    }
    for (a, b) in [(Level::L1, Level::L2), (Level::L2, Level::L1), (Level::L1, Level::Dram)] {
        for (contents, first) in [(Contents::Equal, None), (Contents::DiffersAt(77), Some(77))] {
            let source = Some(operand(b, 200, 0.3, 2));
            let mut cell = Cell { source, contents, ..Cell::new(operand(a, 200, 0.5, 1)) };
            start(&mut cell, &mut [Compare(first)], &Plan::default());
        }
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    let refused = |cell: &mut Cell<'_>, plan: &Plan, candidates: usize| {
        let (log, mut all) = spies(&vec![1.0; candidates]);
        let error = attempt(cell, &mut all, plan, &|| false).expect_err("a refusal");
        assert!(log.borrow().is_empty(), "nobody was called");
        error.to_string()
    };
    let plan = Plan::default();
    let cell = || Cell::new(operand(Level::L1, 64, 1.0, 1));
    assert_eq!(refused(&mut cell(), &plan, 0), "number of candidates is 0; accepted: 1 or more");
    let few = Plan { rounds: 3, ..plan.clone() };
    assert_eq!(refused(&mut cell(), &few, 1), "number of rounds is 3; accepted: 15 or more");
    let reader = Some(ReaderSpec { touched_fraction: 1.5, delay: Delay::None });
    for (mut cell, told) in [
        (Cell { size: 65, ..cell() }, "size of a cell is 65; accepted: up to 64, a slot"),
        (Cell { reader, ..cell() }, "touched fraction is 1.5"),
        (Cell { contents: Contents::Equal, ..cell() }, "contents"),
    ] {
        assert!(refused(&mut cell, &plan, 1).contains(told), "{told}");
    }
}

#[test]
fn wrong_bytes_stop_the_run() {
    unsafe extern "C" fn nothing(dst: *mut u8, _: *const u8, _: usize) -> *mut u8 {
        dst
    }
    let (_, mut one) = spies(&[1.0]);
    one[0].function = Some(Function::Copy(nothing));
    let error = attempt(&mut pair(Level::L1), &mut one, &Plan::default(), &|| false);
    assert!(matches!(error, Err(MeasureError::WrongBytes { .. })), "{error:?}");
}

/// Takes as long as it says.
struct Elsewhere(Vec<usize>);

impl Candidate for Elsewhere {
    fn name(&self) -> &str {
        "elsewhere"
    }

    fn call(&mut self, _: &Place) {}

    fn timed_elsewhere(&mut self, places: &[Place], calls: usize) -> Option<f64> {
        assert!(!places.is_empty());
        self.0.push(calls);
        Some(7.0 * calls as f64)
    }
}

#[test]
fn a_candidate_elsewhere_is_billed_what_it_says_and_makes_as_many_calls() {
    let mut cell = Cell::new(operand(Level::L1, 64, 1.0, 1));
    let mut elsewhere = [Elsewhere(Vec::new())];
    let plan = Plan { screening_rounds: 0, ..Plan::default() };
    let found = start(&mut cell, &mut elsewhere, &plan);
    assert!(found.candidates[0].operation_ns.iter().all(|time| *time == 7.0));
    let all = &elsewhere[0].0;
    let asked = &all[all.len() - found.rounds..];
    assert!(asked.iter().all(|calls| *calls == found.calls_per_sample as usize), "{asked:?}");
}
