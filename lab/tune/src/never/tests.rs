//! Rulings of the referee on a number under `never`, from rounds alone.

use super::*;
use crate::field::tests::{AROUND, facts, field};
use crate::seam::Sample;
use cachewise_kernels::Operation;

/// Rounds of the library at a size, each slower than libc by that part of libc's operation.
fn see(evidence: &mut Evidence, size: usize, slower: f64, rounds: usize) {
    for _ in 0..rounds {
        let cell = hints::cell(Operation::Zero, size, &facts());
        let libc = Sample { operation: 100.0, reader: 0.0, bystander: 50.0 };
        let ours = Sample { bystander: 50.0 + 100.0 * slower, ..libc };
        evidence.push(Purpose::Never, cell, libc, [("zero.around", ours)]);
    }
}

#[test]
fn both_ends_and_every_octave_between_are_looked_at() {
    let field = field(64 << 20, &[]);
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let from = From { size: 1 << 20, arm: AROUND };
        let points = points(&field, from, &mut random);
        assert_eq!((points[0], points[points.len() - 1]), (1 << 20, 64 << 20));
        let between = &points[1..points.len() - 1];
        // Octaves to 8 MiB, and every other one from the largest down.
        let above = [2 << 20, 4 << 20, 8 << 20, 16 << 20, 64 << 20];
        let above = &above[above.len() - between.len()..];
        for (point, above) in between.iter().zip(above) {
            assert!((above / 2 + 1..*above).contains(point), "{points:?}");
        }
        let only = super::points(&field, From { size: 64 << 20, arm: AROUND }, &mut random);
        assert_eq!(only, [64 << 20]);
    }
}

/// Rules on a size's own rounds, by the rule of every referee.
#[test]
fn rounds_are_ruled_on_when_they_are_enough() {
    let field = field(64 << 20, &[]);
    let (kept, lost) = (Some(Ruling::Kept), Some(Ruling::Lost));
    // Their error is the floor, 0.004.
    for (slower, rounds, early, late) in [
        (0.0, 3, None, None),
        (0.0099, 4, kept, kept),
        (0.0159, 4, None, kept),
        (0.0161, 4, None, lost),
        (0.0281, 4, lost, lost),
    ] {
        let mut evidence = Evidence::default();
        see(&mut evidence, 1 << 20, slower, rounds);
        see(&mut evidence, 2 << 20, 9.0, 20);
        let found = [false, true].map(|last| ruling(&field, &evidence, 1 << 20, AROUND, last));
        assert_eq!(found, [early, late], "{rounds} rounds, slower by {slower}");
    }
}

#[test]
fn a_number_rises_to_where_the_library_lost_nowhere_above() {
    let from = From { size: 1, arm: AROUND };
    let left = |lost: &[usize]| upheld(from, &[1, 2, 4, 8], |size| !lost.contains(&size));
    assert_eq!(left(&[]), Some(from));
    assert_eq!(left(&[2]), Some(From { size: 4, ..from }));
    assert_eq!(left(&[1, 4]), Some(From { size: 8, ..from }));
    assert_eq!(left(&[8]), None);
    // Found again in a record: what was not looked at is not refused.
    let field = field(64 << 20, &[]);
    let again = |seen: &[(usize, f64)], from: usize| {
        let mut evidence = Evidence::default();
        for (size, slower) in seen {
            see(&mut evidence, *size, *slower, 6);
        }
        super::again(&field, &evidence, From { size: from, arm: AROUND }).map(|from| from.size)
    };
    assert_eq!(again(&[], 1 << 20), Some(1 << 20));
    assert_eq!(again(&[(2 << 20, 0.0)], 1 << 20), Some(1 << 20));
    assert_eq!(again(&[(2 << 20, 0.5), (4 << 20, 0.0)], 1 << 20), Some(4 << 20));
    assert_eq!(again(&[(1 << 20, 0.5), (4 << 20, 0.0)], 1 << 20), Some(4 << 20));
    assert_eq!(again(&[(1 << 19, 0.5), (4 << 20, 0.0)], 1 << 20), Some(1 << 20), "below it");
    assert_eq!(again(&[(4 << 20, 0.5)], 1 << 20), None);
}

#[test]
fn a_size_is_told_once() {
    let field = field(64 << 20, &[]);
    let mut evidence = Evidence::default();
    see(&mut evidence, 1 << 20, 0.5, 6);
    see(&mut evidence, 4 << 20, -0.25, 6);
    see(&mut evidence, 8 << 20, 0.0, 3);
    let from = From { size: 1 << 20, arm: AROUND };
    let never = |shown| Never { default: None, shown: Some(shown) };
    let left = never(From { size: 4 << 20, ..from });
    let told = refereed(&field, &evidence, &never(from), &left);
    let told: Vec<_> =
        told.iter().map(|s| (s.cell.size, s.ratio, s.rounds, s.verdict, s.in_use)).collect();
    let lost = (1 << 20, 1.5, 6, Ruling::Lost, false);
    assert_eq!(told, [lost, (4 << 20, 0.75, 6, Ruling::Kept, true)]);
}
