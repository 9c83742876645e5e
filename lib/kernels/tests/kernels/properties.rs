//! Random cases for a randomly chosen kernel; a failure shrinks and is printed in full.

use crate::runner::{self, Effort};
use crate::support::cases::{Case, Edge, LONGEST, Place};
use crate::support::watch;
use cachewise_kernels::{Features, Kernel, TABLE};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRng, TestRunner};

/// Short lengths most of the time, where the special cases are.
fn length() -> impl Strategy<Value = usize> + Clone {
    prop_oneof![3 => 0..300usize, 2 => 0..5_000usize, 1 => 0..=LONGEST]
}

fn distance() -> impl Strategy<Value = isize> {
    let longest = LONGEST as isize;
    prop_oneof![3 => -130..=130isize, 2 => -5_000..=5_000isize, 1 => -longest..=longest]
}

fn place() -> impl Strategy<Value = Place> {
    let edges = select(vec![Edge::Middle, Edge::Start, Edge::End]);
    (edges, prop_oneof![Just(0u8), 0..64u8]).prop_map(|(edge, shift)| Place { edge, shift })
}

fn case() -> impl Strategy<Value = Case> {
    let edits = prop::collection::vec((length(), any::<u8>()), 0..4);
    let parts = (length(), place(), place(), any::<u16>(), distance(), any::<i32>(), edits);
    parts.prop_map(|(n, dst, src, seed, distance, byte, edits)| Case {
        n,
        dst,
        src,
        seed,
        distance,
        byte,
        edits,
    })
}

#[test]
fn calls_of_any_length_place_overlap_value_and_difference() {
    watch::explain_crashes();
    let available = Features::detect();
    let runs = |kernel: &&Kernel| runner::is_asked_for(kernel) && kernel.runs_on(available);
    let kernels: Vec<&'static Kernel> = TABLE.iter().filter(runs).collect();
    if kernels.is_empty() {
        return;
    }
    let config = Config {
        cases: Effort::chosen().pick(600, 9_000, 240_000),
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&runner::seed().to_le_bytes());
    let random = TestRng::from_seed(config.rng_algorithm, &seed);
    let outcome = TestRunner::new_with_rng(config, random).run(
        &(case(), any::<Index>()),
        |(case, kernel)| {
            let kernel: &'static Kernel = kernel.get::<&'static Kernel>(&kernels);
            let checked = case.check(kernel);
            checked.map_err(|complaint| TestCaseError::fail(String::from(complaint)))
        },
    );
    if let Err(failure) = outcome {
        panic!("CACHEWISE_TEST_SEED={}: {failure}", runner::seed());
    }
}
