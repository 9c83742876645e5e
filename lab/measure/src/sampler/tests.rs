//! Tests of a run as its candidates see it, and of the promises that a workload of an experiment's
//! own can rely on: its input is made before it is timed, its reader replaces the cell's, its second
//! kernel is checked, its loops are as many as it says.

use super::*;
use crate::residency::tests::{caches as caches_of, operand as try_operand, reused};
use crate::verify::tests::lost_copy;
use crate::{Caches, CellResult};
use std::cell::RefCell;

fn caches() -> Caches {
    caches_of(4 << 20)
}

fn operand(level: Level, size: usize, share: f64, seed: u64) -> Operand {
    try_operand(level, size, 0, share, &caches(), seed).expect("an operand")
}

/// With a destination only, to be written; of its slots' size.
fn cell<'b>(destination: Operand) -> SampledCell<'b> {
    SampledCell {
        size: destination.size(),
        destination,
        source: None,
        contents: Contents::Overwritten,
        reader: None,
        bystander: None,
    }
}

/// A destination and a source of one level, slots of 64 bytes.
fn pair<'b>(level: Level) -> SampledCell<'b> {
    SampledCell { source: Some(operand(level, 64, 0.5, 2)), ..cell(operand(level, 64, 0.5, 1)) }
}

type Calls<'s> = Box<dyn FnMut(&Place) + 's>;

/// A candidate of a closure that counts what it is told.
#[derive(Default)]
struct Spy<'s> {
    name: String,
    calls: Option<Calls<'s>>,
    stays: bool,
    group: u8,
    function: Option<Function>,
    companion: Option<Function>,
    announced: usize,
    called: usize,
    outstanding: usize,
    read: usize,
    reads_itself: bool,
    /// Nanoseconds of a call elsewhere, and how many were asked for at a time.
    elsewhere: Option<(f64, Vec<usize>)>,
}

impl<'s> Spy<'s> {
    fn new(name: &str, calls: impl FnMut(&Place) + 's) -> Spy<'s> {
        Spy { name: name.to_owned(), calls: Some(Box::new(calls)), ..Spy::default() }
    }
}

impl Candidate for Spy<'_> {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&mut self, place: &Place) {
        self.outstanding -= 1;
        self.called += 1;
        if let Some(calls) = &mut self.calls {
            calls(place);
        }
    }

    fn before(&mut self, places: &[Place], calls: usize) {
        assert!(!places.is_empty() && places.len() <= calls, "places repeat, calls do not");
        assert_eq!(self.outstanding, 0, "all that was announced was made");
        self.outstanding = calls;
        self.announced += calls;
    }

    fn timed_elsewhere(&mut self, places: &[Place], calls: usize) -> Option<f64> {
        assert!(!places.is_empty());
        let (nanoseconds, asked) = self.elsewhere.as_mut()?;
        asked.push(calls);
        self.outstanding = 0;
        Some(*nanoseconds * calls as f64)
    }

    fn read(&mut self, _: &Place) -> bool {
        self.read += 1;
        self.reads_itself
    }

    fn function(&self) -> Option<Function> {
        self.function
    }

    fn companion(&self) -> Option<Function> {
        self.companion
    }

    fn stays(&self) -> bool {
        self.stays
    }

    fn group(&self) -> u8 {
        self.group
    }
}

type Log = RefCell<Vec<(usize, Place, u8)>>;

/// Spies that spin for such times, and note who was called where and what the destination held.
fn spies<'l>(costs: &[f64], log: &'l Log) -> Vec<Spy<'l>> {
    let clock = Clock::calibrate();
    let spy = |(id, &nanoseconds): (usize, &f64)| {
        Spy::new(&format!("spy {id}"), move |place| {
            // SAFETY: places hold at least one byte.
            let first = unsafe { place.dst.read() };
            log.borrow_mut().push((id, *place, first));
            // SAFETY: as for reading it, and it is writable.
            unsafe { place.dst.write(0) };
            clock.spin(nanoseconds);
        })
    };
    costs.iter().enumerate().map(spy).collect()
}

fn attempt<C: Candidate>(
    cell: &mut SampledCell<'_>,
    candidates: &mut [C],
    plan: &Plan,
    stop: &dyn Fn() -> bool,
) -> Result<CellResult, MeasureError> {
    let mut candidates: Vec<&mut dyn Candidate> =
        candidates.iter_mut().map(|one| one as &mut dyn Candidate).collect();
    run(cell, &mut candidates, plan, &Clock::calibrate(), stop)
}

#[track_caller]
fn start<C: Candidate>(
    cell: &mut SampledCell<'_>,
    candidates: &mut [C],
    plan: &Plan,
) -> CellResult {
    attempt(cell, candidates, plan, &|| false).expect("a result")
}

#[test]
fn two_warm_up_calls_then_turns_in_shuffled_order() {
    let mut cell = cell(operand(Level::L1, 64, 0.5, 1));
    let plan = Plan { screening_rounds: 0, seed: 9, max_sample_ns: 1.0, ..Plan::default() };
    let mut run = || {
        let log = Log::default();
        let result = start(&mut cell, &mut spies(&[60_000.0; 3], &log), &plan);
        (result, log.take().into_iter().map(|(id, _, _)| id).collect::<Vec<usize>>())
    };
    let (result, order) = run();
    assert_eq!((result.rounds, result.calls_per_sample), (15, 1));
    assert!(result.proofs.1.is_some() && result.proofs.0.is_none());
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
    assert_eq!(run().1, order, "the seed decides");
}

#[test]
fn destinations_hold_something_else_each_time() {
    for level in [Level::L1, Level::Dram] {
        let log = Log::default();
        start(&mut pair(level), &mut spies(&[100_000.0], &log), &Plan::default());
        assert!(log.borrow().iter().all(|(_, _, first)| *first != 0), "{level}");
    }
}

#[test]
fn slots_in_memory_are_not_met_again() {
    let log = Log::default();
    let far = |seed| operand(Level::Dram, 4096, 0.5, seed);
    let mut cell = SampledCell { source: Some(far(2)), ..cell(far(1)) };
    let plan = Plan { screening_rounds: 0, ..Plan::default() };
    let result = start(&mut cell, &mut spies(&[10.0, 10.0], &log), &plan);
    assert!(result.visits_per_slot <= 0.5);
    let recent: Vec<*mut u8> = log.borrow().iter().map(|(_, place, _)| place.dst).collect();
    // The check is quadratic; the beginning stands for the rest.
    for window in recent.windows(cell.destination.slots() / 2).take(20) {
        let distinct: std::collections::HashSet<_> = window.iter().collect();
        assert_eq!(distinct.len(), window.len());
    }
}

#[test]
fn the_slow_of_a_group_are_dropped_but_the_reference_stays() {
    let log = Log::default();
    let mut five = spies(&[50_000.0, 1e6, 1e6, 1e6, 1e6], &log);
    five[2].stays = true;
    five[3].group = 1;
    let plan = Plan { screening_rounds: 3, drop_ratio: 4.0, ..Plan::default() };
    let result = start(&mut cell(operand(Level::L1, 64, 1.0, 1)), &mut five, &plan);
    let left = result.candidates.iter().map(|one| (one.operation_ns.len(), one.dropped_after));
    let (kept, dropped) = ((15, None), (3, Some(3)));
    assert_eq!(left.collect::<Vec<_>>(), [kept, dropped, kept, kept, dropped]);
}

#[test]
fn readers_and_bystanders_have_parts_of_their_own() {
    let log = Log::default();
    let mut bystander = Bystander::new(64 << 10, 3).expect("a bystander");
    for delay in [Delay::Bytes(1 << 16), Delay::Nanoseconds(50.0)] {
        let mut cell = SampledCell {
            source: Some(operand(Level::Dram, 4096, 0.5, 2)),
            reader: Some(ReaderSpec { touched_fraction: 1.0, delay }),
            bystander: Some(&mut bystander),
            ..cell(operand(Level::L2, 4096, 0.5, 1))
        };
        let result = start(&mut cell, &mut spies(&[40_000.0], &log), &Plan::default());
        let Samples { operation_ns, reader_ns, bystander_ns, .. } = &result.candidates[0];
        assert_eq!([operation_ns, reader_ns, bystander_ns].map(Vec::len), [15; 3]);
        assert!(operation_ns.iter().chain(reader_ns).all(|time| time.is_finite() && *time >= 0.0));
        let total = operation_ns[4] + reader_ns[4] + bystander_ns[4];
        assert_eq!(result.candidates[0].total_ns()[4], total);
        let proofs = result.proofs.0.iter().chain(&result.proofs.1).map(|proof| proof.level);
        assert_eq!(proofs.collect::<Vec<_>>(), [Level::Dram, Level::L2]);
    }
}

#[test]
fn being_stopped_is_an_error() {
    let log = Log::default();
    let asked = std::cell::Cell::new(0);
    let stop = || asked.replace(asked.get() + 1) == 9;
    let mut two = spies(&[40_000.0, 40_000.0], &log);
    let stopped = attempt(&mut pair(Level::L1), &mut two, &Plan::default(), &stop);
    assert!(matches!(stopped, Err(MeasureError::Interrupted)), "{stopped:?}");
}

/// Imitates the effect of string instructions and non-temporal stores on a destination: a call leaves its
/// mark, and one that is sticky takes three times as long where it finds a non-temporal one's.
#[test]
fn who_ran_before_does_not_change_a_figure_where_the_destination_is_restored() {
    const EVICTED: u8 = 0;
    let clock = Clock::calibrate();
    let least_of = |restore: Destination| {
        let mut cell = cell(reused(1 << 16, 0, 64, &caches()).restored(restore));
        let string = Spy::new("string", |place: &Place| {
            // SAFETY: places hold at least one byte.
            let found = unsafe { place.dst.read() };
            clock.spin(if found == EVICTED { 90_000.0 } else { 30_000.0 });
        });
        let around = Spy::new("around", |place: &Place| {
            clock.spin(30_000.0);
            // SAFETY: places hold at least one writable byte.
            unsafe { place.dst.write(EVICTED) };
        });
        let plan = Plan { calls: Some(2), screening_rounds: 0, ..Plan::default() };
        let result = start(&mut cell, &mut [string, around], &plan);
        // The least, so that a busy machine changes nothing: it can only take longer.
        result.candidates[0].operation_ns.iter().copied().fold(f64::INFINITY, f64::min)
    };
    // Restored, no call of it finds the other's mark; left alone, every one does.
    assert!(least_of(Destination::Cached) < 80_000.0);
    assert!(least_of(Destination::Evicted) < 80_000.0);
    assert!(least_of(Destination::Repeated) >= 90_000.0);
}

#[test]
fn compared_buffers_are_equal_up_to_where_they_should_be() {
    let function = cachewise_kernels::find("compare.bytes").map(|kernel| kernel.function);
    for (a, b) in [(Level::L1, Level::L2), (Level::L2, Level::L1), (Level::L1, Level::Dram)] {
        for (contents, first) in [(Contents::Equal, None), (Contents::DiffersAt(77), Some(77))] {
            let compare = Spy::new("compare", |place: &Place| {
                // SAFETY: places are valid for n bytes.
                let a = unsafe { std::slice::from_raw_parts(place.dst, place.n) };
                // SAFETY: as for the destination.
                let b = unsafe { std::slice::from_raw_parts(place.src, place.n) };
                assert_eq!(a.iter().zip(b).position(|(x, y)| x != y), first);
            });
            let source = Some(operand(b, 200, 0.3, 2));
            let mut cell = SampledCell { source, contents, ..cell(operand(a, 200, 0.5, 1)) };
            start(&mut cell, &mut [Spy { function, ..compare }], &Plan::default());
        }
    }
}

#[test]
fn what_contradicts_itself_is_refused() {
    let refused = |cell: &mut SampledCell<'_>, plan: &Plan, candidates: usize| {
        let log = Log::default();
        let mut all = spies(&vec![1.0; candidates], &log);
        let error = attempt(cell, &mut all, plan, &|| false).expect_err("a refusal");
        assert!(log.borrow().is_empty(), "nobody was called");
        error.to_string()
    };
    let plan = Plan::default();
    let cell = || cell(operand(Level::L1, 64, 1.0, 1));
    assert_eq!(refused(&mut cell(), &plan, 0), "number of candidates is 0; accepted: 1 or more");
    let few = Plan { rounds: 3, ..plan.clone() };
    assert_eq!(refused(&mut cell(), &few, 1), "number of rounds is 3; accepted: 15 or more");
    let reader = Some(ReaderSpec { touched_fraction: 1.5, delay: Delay::None });
    for (mut cell, told) in [
        (SampledCell { size: 65, ..cell() }, "size of a cell is 65; accepted: up to 64, a slot"),
        (SampledCell { reader, ..cell() }, "touched fraction is 1.5"),
        (SampledCell { contents: Contents::Equal, ..cell() }, "contents"),
    ] {
        assert!(refused(&mut cell, &plan, 1).contains(told), "{told}");
    }
}

fn run_it(cell: &mut SampledCell<'_>, workload: &mut Spy<'_>, plan: &Plan) -> CellResult {
    start(cell, std::slice::from_mut(workload), plan)
}

#[test]
fn wrong_bytes_stop_the_run() {
    let wrong = Function::Copy(lost_copy);
    let one = Spy { function: Some(wrong), ..Spy::new("spy", |_| {}) };
    let first = attempt(&mut pair(Level::L1), &mut [one], &Plan::default(), &|| false);
    let two = Spy { companion: Some(wrong), ..Spy::default() };
    let second = attempt(&mut pair(Level::L1), &mut [two], &Plan::default(), &|| false);
    for error in [first, second] {
        assert!(matches!(error, Err(MeasureError::WrongBytes { .. })), "{error:?}");
    }
}

#[test]
fn a_candidate_elsewhere_is_billed_what_it_says_and_makes_as_many_calls() {
    let mut workload = Spy { elsewhere: Some((7.0, Vec::new())), ..Spy::default() };
    let plan = Plan { screening_rounds: 0, ..Plan::default() };
    let found = run_it(&mut cell(operand(Level::L1, 64, 1.0, 1)), &mut workload, &plan);
    assert!(found.candidates[0].operation_ns.iter().all(|time| *time == 7.0));
    let all = workload.elsewhere.expect("as it was made").1;
    let asked = &all[all.len() - found.rounds..];
    assert!(asked.iter().all(|calls| *calls == found.calls_per_sample as usize), "{asked:?}");
}

#[test]
fn every_call_is_announced_once() {
    let reused = || reused(1 << 16, 0, 64, &caches());
    let source = |level| Some(operand(level, 64, 1.0, 2));
    let reader = Some(ReaderSpec { touched_fraction: 1.0, delay: Delay::None });
    let mut bystander = Bystander::new(1 << 12, 3).expect("a bystander");
    let plan = Plan { calls: Some(7), ..Plan::default() };
    for cell in &mut [
        cell(operand(Level::L1, 64, 1.0, 1)),
        cell(reused()),
        SampledCell { reader, ..cell(reused()) },
        SampledCell { source: source(Level::Dram), ..cell(reused()) },
        SampledCell { reader, source: source(Level::L2), ..cell(reused()) },
        SampledCell { bystander: Some(&mut bystander), ..cell(operand(Level::L2, 64, 1.0, 1)) },
    ] {
        let mut workload = Spy::default();
        let result = run_it(cell, &mut workload, &plan);
        assert_eq!(result.calls_per_sample, 7, "{cell:?}");
        assert_eq!((workload.announced, workload.outstanding), (workload.called, 0), "{cell:?}");
        assert!(workload.called >= 2 + 15 * 7);
    }
}

#[test]
fn a_workload_reads_where_the_cell_has_a_reader() {
    let reader = Some(ReaderSpec { touched_fraction: 1.0, delay: Delay::None });
    let plan = Plan { calls: Some(3), ..Plan::default() };
    for (reader, reads_itself) in [(reader, true), (reader, false), (None, true)] {
        let mut workload = Spy { reads_itself, ..Spy::default() };
        let mut cell = SampledCell { reader, ..cell(operand(Level::L1, 64, 1.0, 1)) };
        let result = run_it(&mut cell, &mut workload, &plan);
        let rounds = if reader.is_some() { 15 } else { 0 };
        assert_eq!(workload.read, rounds * 3);
        assert_eq!(result.candidates[0].reader_ns.len(), rounds);
    }
}

#[test]
fn a_lead_in_leaves_a_placed_source_cold() {
    let source = Some(operand(Level::Dram, 4096, 1.0, 2));
    let mut cell = SampledCell { source, ..cell(reused(1 << 16, 0, 4096, &caches())) };
    let plan = Plan { calls: Some(5), ..Plan::default() };
    let log = Log::default();
    start(&mut cell, &mut spies(&[0.0], &log), &plan);
    for two in log.borrow().windows(2) {
        assert_ne!(two[0].1.src, two[1].1.src, "no source twice in a row: {two:?}");
    }
}

#[test]
fn reused_operands_beyond_the_l2_wait_for_the_last_level() {
    let target = |size: usize| cell(reused(2 << 20, 0, size, &caches()));
    let both = |size: usize| SampledCell {
        source: Some(reused(2 << 20, 1 << 20, size, &caches())),
        ..target(size)
    };
    let far = Some(operand(Level::Dram, 1 << 20, 1.0, 2));
    let mixed = SampledCell { source: far, ..target(1 << 20) };
    let once = Plan { calls: Some(1), screening_rounds: 0, ..Plan::default() };
    let often = Plan { calls: Some(100), ..once.clone() };
    // The made-up last level is of 4 MiB, the L2 of 512 KiB.
    for (mut cell, plan, untimed) in [
        (both(1 << 20), &once, 4),
        (both(256 << 10), &once, 16),
        (both(64 << 10), &once, 1),
        (both(256 << 10), &often, 0),
        (mixed, &once, 1),
    ] {
        let mut workload = Spy::default();
        let result = run_it(&mut cell, &mut workload, plan);
        let timed = result.calls_per_sample as usize;
        assert_eq!(workload.called, 2 + result.rounds * (untimed + timed), "{cell:?}");
        // Reused operands have no proofs.
        assert_eq!(result.proofs.1, None);
        assert_eq!(result.visits_per_slot, timed as f64);
    }
}
