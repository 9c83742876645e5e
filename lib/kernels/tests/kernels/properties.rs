//! Random cases for a randomly chosen kernel, against the scalar oracle; a failure shrinks.
//!
//! A failing case is printed in full: add it to the fuzz corpus (see `corpus`) to keep it.

use crate::runner::{self, Effort};
use crate::support::cases::{
    Case, CompareCase, CopyCase, Edge, FillCase, LARGEST_ORDER, LONGEST, MoveCase, PagesCase,
    Place, ZeroCase,
};
use crate::support::watch;
use cachewise_kernels::Kernel;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestRng, TestRunner};
use std::fmt::Debug;

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

fn pages() -> impl Strategy<Value = Place> {
    place().prop_map(|place| Place { shift: place.shift % 8, ..place })
}

fn copy_case() -> impl Strategy<Value = CopyCase> {
    let parts = (length(), place(), place(), any::<u16>());
    parts.prop_map(|(n, dst, src, seed)| CopyCase { n, dst, src, seed })
}

fn move_case() -> impl Strategy<Value = MoveCase> {
    let parts = (length(), distance(), place(), any::<u16>());
    parts.prop_map(|(n, distance, span, seed)| MoveCase { n, distance, span, seed })
}

fn fill_case() -> impl Strategy<Value = FillCase> {
    let parts = (length(), place(), any::<i32>(), any::<u16>());
    parts.prop_map(|(n, dst, value, seed)| FillCase { n, dst, value, seed })
}

fn zero_case() -> impl Strategy<Value = ZeroCase> {
    (length(), place(), any::<u16>()).prop_map(|(n, dst, seed)| ZeroCase { n, dst, seed })
}

fn compare_case() -> impl Strategy<Value = CompareCase> {
    let edits = prop::collection::vec((length(), any::<u8>()), 0..4);
    let parts = (length(), place(), place(), any::<u16>(), edits);
    parts.prop_map(|(n, left, right, seed, edits)| CompareCase { n, left, right, seed, edits })
}

fn pages_case() -> impl Strategy<Value = PagesCase> {
    let parts = (0..=LARGEST_ORDER, pages(), pages(), any::<u16>());
    parts.prop_map(|(order, dst, src, seed)| PagesCase { order, dst, src, seed })
}

/// Draws cases and kernels; fails with the smallest case that a kernel gets wrong.
fn holds<C: Case + Debug + PartialEq>(cases: impl Strategy<Value = C>) {
    watch::explain_crashes();
    let kernels: Vec<&'static Kernel> =
        C::OPERATIONS.iter().flat_map(|&operation| runner::runnable(operation)).collect();
    if kernels.is_empty() {
        return;
    }
    let config = Config {
        cases: Effort::chosen().pick(100, 1500, 40_000),
        failure_persistence: None,
        ..Config::default()
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&runner::seed().to_le_bytes());
    let random = TestRng::from_seed(config.rng_algorithm, &seed);
    let outcome =
        TestRunner::new_with_rng(config, random).run(&(cases, any::<Index>()), |(case, kernel)| {
            prop_assert_eq!(&C::decode(&case.encode()), &case, "the spelling loses something");
            let kernel = kernel.get(&kernels);
            case.check(kernel).map_err(|complaint| TestCaseError::fail(String::from(complaint)))
        });
    if let Err(failure) = outcome {
        panic!("CACHEWISE_TEST_SEED={}: {failure}", runner::seed());
    }
}

#[test]
fn copies_of_any_length_and_place() {
    holds(copy_case());
}

#[test]
fn moves_by_any_distance() {
    holds(move_case());
}

#[test]
fn fills_with_any_value() {
    holds(fill_case());
}

#[test]
fn zeroes_of_any_length_and_place() {
    holds(zero_case());
}

#[test]
fn comparisons_with_any_differences() {
    holds(compare_case());
}

#[test]
fn page_blocks_of_any_order() {
    holds(pages_case());
}
