//! What a workload of an experiment's own can rely on: its input is made before it is timed, its
//! reader replaces the cell's, its second kernel is checked, its loops are as many as it says.

use super::tests::{attempt, caches, operand, start};
use super::*;
use std::sync::Arc;

/// Counts what it is told.
#[derive(Default)]
struct Workload {
    announced: usize,
    called: usize,
    outstanding: usize,
    read: usize,
    reads_itself: bool,
    companion: Option<Function>,
}

impl Candidate for Workload {
    fn name(&self) -> &str {
        "workload"
    }

    fn call(&mut self, _: &Place) {
        self.outstanding -= 1;
        self.called += 1;
    }

    fn before(&mut self, places: &[Place], calls: usize) {
        assert!(!places.is_empty() && places.len() <= calls, "places repeat, calls do not");
        assert_eq!(self.outstanding, 0, "all that was announced was made");
        self.outstanding = calls;
        self.announced += calls;
    }

    fn read(&mut self, _: &Place) -> bool {
        self.read += 1;
        self.reads_itself
    }

    fn companion(&self) -> Option<Function> {
        self.companion
    }
}

fn run_it(cell: &mut Cell<'_>, workload: &mut Workload, plan: &Plan) -> CellResult {
    start(cell, std::slice::from_mut(workload), plan)
}

fn arena(bytes: usize) -> Arc<Arena> {
    Arc::new(Arena::new(bytes, PagePolicy::Small, 1).expect("an arena"))
}

fn reused(arena: &Arc<Arena>, from: usize, size: usize) -> Operand {
    Operand::reused(arena, from, size, 0, &caches(), 1).expect("an operand")
}

#[test]
fn every_call_is_announced_once() {
    let arena = arena(1 << 16);
    let reused = || reused(&arena, 0, 64);
    let reader = Some(ReaderSpec { touched_fraction: 1.0, delay: Delay::None });
    let mut bystander = Bystander::new(1 << 12, 3).expect("a bystander");
    let plan = Plan { calls: Some(7), ..Plan::default() };
    let mut cells = [
        Cell::new(operand(Level::L1, 64, 1.0, 1)),
        Cell::new(reused()),
        Cell { reader, ..Cell::new(reused()) },
        Cell::new(reused()).with_source(operand(Level::Dram, 64, 1.0, 2)),
        Cell { reader, ..Cell::new(reused()).with_source(operand(Level::L2, 64, 1.0, 2)) },
        Cell { bystander: Some(&mut bystander), ..Cell::new(operand(Level::L2, 64, 1.0, 1)) },
    ];
    for cell in &mut cells {
        let mut workload = Workload::default();
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
    for reads_itself in [true, false] {
        let mut workload = Workload { reads_itself, ..Workload::default() };
        let mut cell = Cell { reader, ..Cell::new(operand(Level::L1, 64, 1.0, 1)) };
        let result = run_it(&mut cell, &mut workload, &plan);
        assert_eq!(workload.read, 15 * 3);
        assert_eq!(result.candidates[0].reader_ns.len(), 15);
    }
    let mut workload = Workload::default();
    run_it(&mut Cell::new(operand(Level::L1, 64, 1.0, 1)), &mut workload, &plan);
    assert_eq!(workload.read, 0, "nobody asked for a reader");
}

#[test]
fn a_lead_in_leaves_a_placed_source_cold() {
    /// Notes which sources it is called on.
    struct Sources(Vec<(usize, *const u8)>, usize);
    impl Candidate for Sources {
        fn name(&self) -> &str {
            "sources"
        }
        fn call(&mut self, place: &Place) {
            self.0.push((self.1, place.src));
        }
        fn before(&mut self, _: &[Place], _: usize) {
            self.1 += 1;
        }
    }
    let destination = reused(&arena(1 << 16), 0, 4096);
    let mut cell = Cell::new(destination).with_source(operand(Level::Dram, 4096, 1.0, 2));
    let plan = Plan { calls: Some(5), ..Plan::default() };
    let mut candidate = [Sources(Vec::new(), 0)];
    start(&mut cell, &mut candidate, &plan);
    for pair in candidate[0].0.windows(2) {
        assert_ne!(pair[0].1, pair[1].1, "no source twice in a row: {pair:?}");
    }
}

#[test]
fn reused_operands_beyond_the_l2_wait_for_the_last_level() {
    let arena = arena(2 << 20);
    let target = |size: usize| Cell::new(reused(&arena, 0, size));
    let both = |size: usize| target(size).with_source(reused(&arena, 1 << 20, size));
    let mixed = target(1 << 20).with_source(operand(Level::Dram, 1 << 20, 1.0, 2));
    let once = Plan { calls: Some(1), screening_rounds: 0, ..Plan::default() };
    let often = Plan { calls: Some(100), ..once.clone() };
    let hasty = Plan { warm_up: false, ..once.clone() };
    // The made-up last level is of 4 MiB, the L2 of 512 KiB.
    for (mut cell, plan, untimed) in [
        (both(1 << 20), &once, 4),
        (both(256 << 10), &once, 16),
        (both(64 << 10), &once, 1),
        (both(256 << 10), &often, 0),
        (both(1 << 20), &hasty, 1),
        (mixed, &once, 1),
    ] {
        let mut workload = Workload::default();
        let result = run_it(&mut cell, &mut workload, plan);
        let timed = result.calls_per_sample as usize;
        assert_eq!(workload.called, 2 + result.rounds * (untimed + timed), "{cell:?}");
    }
}

#[test]
fn a_second_kernel_is_checked_too() {
    unsafe extern "C" fn nothing(dst: *mut u8, _: usize) -> *mut u8 {
        dst
    }
    let workload = Workload { companion: Some(Function::Zero(nothing)), ..Workload::default() };
    let mut cell = Cell::new(operand(Level::L1, 64, 1.0, 1));
    let error = attempt(&mut cell, &mut [workload], &Plan::default(), &|| false);
    assert!(matches!(error, Err(MeasureError::WrongBytes { .. })), "{error:?}");
}
