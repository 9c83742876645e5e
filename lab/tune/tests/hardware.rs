//! The machine these tests run on, behind the tuner's seam: what a machine owes, as far as it can be
//! seen without trusting a timing.

use cachewise::Reuse;
use cachewise::profile::{Decision, MAX_SIZE, OPERATIONS};
use cachewise_kernels::Operation;
use cachewise_measure::LabError;
use cachewise_tune::hardware::{Hardware, Setup};
use cachewise_tune::seam::{
    After, Arm, Ask, Class, Contents, Destination, Layout, Machine, Script, TuningCell,
};
use std::cell::Cell as Counter;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The library's decision table is the process's: one test at a time.
static TABLE: Mutex<()> = Mutex::new(());

fn with_hardware(stop: &dyn Fn() -> bool, test: impl FnOnce(Result<Hardware<'_>, LabError>)) {
    let _one = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    test(Hardware::new(Setup {
        begun: Instant::now(),
        memory: Some(48 << 20),
        budget: 60.0,
        distribution: None,
        stop,
        progress: &mut |_, _| {},
    }));
}

fn ask(cell: TuningCell, arm: Arm) -> Ask {
    Ask { cell, arm, samples: 2, draw: 7 }
}

#[test]
fn every_arm_is_visited_in_every_state_as_the_library_calls_it() {
    with_hardware(&|| false, |made| {
        let mut hardware = made.expect("a machine");
        let facts = hardware.facts();
        assert!(facts.l1 > 0 && facts.l2 > facts.l1 && facts.largest > 4 << 20, "{facts:?}");
        assert!(facts.largest < 48 << 20, "within the memory that was given: {facts:?}");
        for operation in OPERATIONS {
            let arms = hardware.arms(operation);
            assert_eq!(arms[0].name, "libc");
            assert!(arms.len() > 1 && arms[1..].iter().all(|arm| arm.class != Class::Libc));
            let stores = !matches!(operation, Operation::Compare | Operation::Equal);
            for (number, arm) in arms.iter().enumerate() {
                for destination in Destination::ALL {
                    for size in [300, 5000, 200_000] {
                        let after = if stores { After::Reader } else { After::Nothing };
                        // Calls on the same operands have one place at which those could differ.
                        let unequal = !stores && destination != Destination::Repeated;
                        let contents = if unequal { Contents::Unequal } else { Contents::Equal };
                        let plain = TuningCell::new(operation, size, destination);
                        let asked =
                            ask(TuningCell { after, contents, ..plain }, Arm::Kernel(number));
                        let visit = hardware.visit(&asked).expect("a visit");
                        assert_eq!(visit.samples.len() + visit.disturbed, 2);
                        for sample in visit.samples {
                            assert!(sample.operation > 0.0 && sample.total() >= sample.operation);
                        }
                        if number > 0 {
                            let decided = cachewise::decision(operation, Reuse::Unknown, 5000);
                            assert_eq!(decided.name(), arm.name);
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn layouts_bystanders_scripts_and_the_library_itself() {
    with_hardware(&|| false, |made| {
        let mut hardware = made.expect("a machine");
        let decide = |operation| Decision::new(operation, Reuse::Unknown, (256, MAX_SIZE), "libc");
        hardware.follow(&OPERATIONS.map(decide)).expect("followed");
        let moved = TuningCell::new(Operation::Move, 3000, Destination::Cached);
        for layout in Layout::ALL {
            for arm in [Arm::LIBC, Arm::Kernel(1), Arm::Library] {
                let visit =
                    hardware.visit(&ask(TuningCell { layout, ..moved }, arm)).expect("a visit");
                assert!(!visit.samples.is_empty());
            }
        }
        assert_eq!(cachewise::decision(Operation::Move, Reuse::Unknown, 3000).name(), "libc");
        let beside = After::Bystander(1 << 20);
        let copy = TuningCell::new(Operation::Copy, 1 << 20, Destination::Evicted);
        hardware
            .visit(&ask(TuningCell { after: beside, ..copy }, Arm::Kernel(1)))
            .expect("a visit");
        for operation in OPERATIONS {
            for (hot, size) in [(true, 16 << 10), (false, 8 << 20)] {
                let script = Some(Script { hot });
                let cell =
                    TuningCell { script, ..TuningCell::new(operation, size, Destination::Cached) };
                for arm in [Arm::LIBC, Arm::Library] {
                    let visit = hardware.visit(&ask(cell, arm)).expect("a visit");
                    assert!(visit.samples.iter().all(|sample| sample.operation > 0.0));
                }
            }
        }
        let beyond =
            TuningCell::new(Operation::Zero, hardware.facts().largest + 1, Destination::Cached);
        let refused = hardware.visit(&ask(beyond, Arm::LIBC));
        assert!(matches!(refused, Err(LabError::TooLarge { .. })), "{refused:?}");
    });
}

#[test]
fn the_user_stops_it_between_samples() {
    let (made, asked) = (Counter::new(false), Counter::new(0));
    let stop = || {
        asked.set(asked.get() + i32::from(made.get()));
        asked.get() > 1
    };
    with_hardware(&stop, |hardware| {
        made.set(true);
        let cell = TuningCell::new(Operation::Zero, 4096, Destination::Cached);
        let long = Ask { samples: 1000, ..ask(cell, Arm::LIBC) };
        let stopped = hardware.expect("a machine").visit(&long);
        assert!(matches!(stopped, Err(LabError::Interrupted)), "{stopped:?}");
    });
    assert_eq!(asked.get(), 2);
}

#[test]
fn the_user_stops_it_while_the_machine_is_calibrated() {
    with_hardware(&|| true, |made| assert!(matches!(made, Err(LabError::Interrupted))));
}
