//! From rounds to one number: where non-temporal stores pay.

use super::*;
use crate::field::tests::{AROUND, FIRST, SECOND, facts, field, rounds as race};
use crate::seam::Sample;

/// Rounds beside a bystander: what the non-temporal arm and the best temporal one take over libc, as parts
/// of libc's operation.
fn see(evidence: &mut Evidence, size: usize, ours: f64, temporal: f64, rounds: usize) {
    let total = |over: f64| Sample { operation: 80.0, reader: 0.0, bystander: 20.0 + 80.0 * over };
    for _ in 0..rounds {
        let cell = cell(Operation::Zero, size, &facts());
        let others = [("zero.around", ours), ("zero.second", temporal)];
        let others = others.map(|(name, over)| (name, total(over)));
        evidence.push(Purpose::Hints, cell, total(0.0), others);
    }
}

#[test]
fn octaves_from_a_page_on_and_every_other_one_above_8_mib() {
    let sizes = |top| super::sizes(&field(top, &[]));
    assert_eq!(sizes(64 << 20)[..2], [4096, 8192]);
    assert_eq!(sizes(64 << 20)[9..], [2 << 20, 4 << 20, 8 << 20, 16 << 20, 64 << 20]);
    assert_eq!(sizes(32 << 20)[9..], [2 << 20, 4 << 20, 8 << 20, 32 << 20]);
    assert!(sizes(2048).is_empty());
}

#[test]
fn a_cut_gains_in_all_above_it_and_loses_nowhere() {
    let sizes = [1024, 2048, 4096, 8192];
    let one = |gains: [Option<f64>; 4]| {
        let found = cut(&[7], &sizes, |_, size| gains[(size / 1024).ilog2() as usize]);
        found.map(|from| (from.size, from.arm))
    };
    assert_eq!(one([Some(0.1), Some(-0.1), Some(-0.1), Some(-0.1)]), Some((2048, 7)));
    assert_eq!(one([Some(-0.1), None, Some(-0.1), Some(-0.1)]), Some((4096, 7)));
    // The loss in between is made up for.
    assert_eq!(one([Some(-0.2), Some(0.1), Some(-0.1), Some(-0.1)]), Some((1024, 7)));
    assert_eq!(one([Some(-0.05), Some(0.1), Some(-0.1), Some(-0.1)]), Some((4096, 7)));
    assert_eq!(one([Some(-0.1), Some(-0.1), Some(-0.1), None]), None);
    // As much as a change of arm has to gain, over all octaves.
    assert_eq!(one([None, None, None, Some(-0.059)]), None);
    assert_eq!(one([None, None, None, Some(-0.061)]), Some((8192, 7)));
    let better = cut(&[7, 8], &sizes, |arm, _| Some(if arm == 8 { -0.2 } else { -0.1 }));
    assert_eq!(better, Some(From { size: 1024, arm: 8 }));
    assert_eq!(cut(&[7], &[], |_, _| Some(-1.0)), None);
}

#[test]
fn a_tail_ends_what_is_below_it() {
    let range = |from, to, arm| Range { from, to, arm };
    let below = [range(256, 1023, 0), range(1024, 4095, 1), range(4096, u64::MAX, 2)];
    let tail = |size| with_tail(&below, Some(From { size, arm: 3 }));
    assert_eq!(tail(2048), [below[0], range(1024, 2047, 1), range(2048, u64::MAX, 3)]);
    assert_eq!(tail(1024), [below[0], range(1024, u64::MAX, 3)]);
    assert_eq!(tail(256), [range(256, u64::MAX, 3)]);
}

#[test]
fn never_begins_where_nothing_is_lost_to_libc_and_something_gained_on_every_other() {
    let field = field(16 << 10, &[]);
    let found = |at_4096: (f64, f64, usize), above: (f64, f64)| {
        let mut evidence = Evidence::default();
        see(&mut evidence, 4096, at_4096.0, at_4096.1, at_4096.2);
        for size in [8192, 16384] {
            see(&mut evidence, size, above.0, above.1, 6);
        }
        never(&field, &evidence).map(|from| (from.size, from.arm))
    };
    let gain = (-0.5, 0.0);
    assert_eq!(found((-0.5, 0.0, 6), gain), Some((4096, AROUND)));
    assert_eq!(found((-0.5, 0.0, 4), gain), Some((4096, AROUND)));
    // A cell of each state has its rounds.
    assert_eq!(found((-0.5, 0.0, 3), gain), Some((8192, AROUND)));
    // The best temporal kernel is as good there.
    assert_eq!(found((-0.5, -0.6, 6), gain), Some((8192, AROUND)));
    assert_eq!(found((0.0161, 0.9, 6), gain), Some((8192, AROUND)));
    assert_eq!(found((-0.5, 0.0, 6), (0.0161, 0.9)), None);
    // More than what a temporal kernel gains above it, in all; or less.
    assert_eq!(found((-0.5, 0.0, 6), (-0.5, -0.6)), Some((4096, AROUND)));
    assert_eq!(found((-0.5, 0.0, 6), (-0.5, -0.9)), None);
    // Slower than libc by less than the guard with its error: libc is the measure, and nothing is gained.
    assert_eq!(found((0.0159, 0.9, 6), gain), Some((8192, AROUND)));
}

#[test]
fn sizes_are_asked_for_from_the_largest_down_as_far_as_something_is_gained() {
    let field = field(16 << 10, &[]);
    let mut evidence = Evidence::default();
    let ask = |size: usize| Some((size, vec![AROUND]));
    assert_eq!(next(&field, &evidence), ask(16384));
    see(&mut evidence, 16384, -0.5, 0.0, 3);
    assert_eq!(next(&field, &evidence), ask(16384));
    see(&mut evidence, 16384, -0.5, 0.0, 1);
    assert_eq!(next(&field, &evidence), ask(8192));
    // Level: looked at until it is known as well as it will be.
    see(&mut evidence, 8192, -0.001, 0.0, 7);
    assert_eq!(next(&field, &evidence), ask(8192));
    see(&mut evidence, 8192, -0.001, 0.0, 1);
    assert_eq!(next(&field, &evidence), None);
    let mut evidence = Evidence::default();
    see(&mut evidence, 16384, 0.5, 0.0, 4);
    assert_eq!(next(&field, &evidence), None, "worse at the largest");
    for size in [16384, 8192, 4096] {
        see(&mut evidence, size, -0.5, 0.0, 40);
    }
    assert_eq!(next(&field, &evidence), None, "all are known");
}

#[test]
fn soon_counts_operation_and_reader_where_the_guard_is_kept() {
    let mut field = field(64 << 20, &[]);
    let top = field.sizes.len() - 1;
    race(&mut field, AROUND, top, 9, [-0.5, -0.5]);
    race(&mut field, FIRST, top, 9, [-0.1, -0.1]);
    let found = |field: &Field, temporal: usize| soon(field, &vec![temporal; field.sizes.len()]);
    assert_eq!(found(&field, FIRST), Some(From { size: 64 << 20, arm: AROUND }));
    race(&mut field, SECOND, top, 9, [-0.6, -0.6]);
    assert_eq!(found(&field, SECOND), None, "a temporal kernel is better");
}

#[test]
fn what_is_not_shown_leaves_the_default_as_it_is() {
    let mut field = field(64 << 20, &[]);
    let start = From { size: (1 << 20) + 1, arm: AROUND };
    field.never = Some(start);
    let found = |seen: &[(usize, f64, usize)]| {
        let mut evidence = Evidence::default();
        for (size, ours, rounds) in seen {
            see(&mut evidence, *size, *ours, 0.0, *rounds);
        }
        let found = default(&field, &evidence).expect("a default");
        assert_eq!(found.from, start);
        found.lost
    };
    assert_eq!(found(&[]), []);
    // Too few rounds, no difference, and a loss below it.
    assert_eq!(found(&[(4 << 20, 0.5, 3)]), []);
    assert_eq!(found(&[(4 << 20, 0.0, 8)]), []);
    assert_eq!(found(&[(1 << 20, 0.5, 8)]), []);
    // Shown to lose at one size, at two, at the largest: only there.
    assert_eq!(found(&[(4 << 20, 0.5, 8)]), [(4 << 20, (6 << 20) - 1)]);
    assert_eq!(found(&[(4 << 20, 0.5, 8), (8 << 20, 0.5, 8)]), [(4 << 20, (12 << 20) - 1)]);
    assert_eq!(found(&[(64 << 20, 0.5, 8)]), [(64 << 20, usize::MAX)]);
    field.never = None;
    assert_eq!(default(&field, &Evidence::default()), None);
}

#[test]
fn the_default_is_asked_for_where_it_may_lose() {
    let mut field = field(64 << 20, &[]);
    field.never = Some(From { size: (16 << 20) + 1, arm: AROUND });
    let mut evidence = Evidence::default();
    // Nothing is gained at the largest size.
    see(&mut evidence, 64 << 20, 0.01, 0.0, 8);
    assert_eq!(next(&field, &evidence), None);
    let mut evidence = Evidence::default();
    see(&mut evidence, 64 << 20, 0.025, 0.0, 8);
    assert_eq!(next(&field, &evidence), Some((64 << 20, vec![AROUND])), "it seems to lose");
    see(&mut evidence, 64 << 20, 0.025, 0.0, 8);
    assert_eq!(next(&field, &evidence), None, "often enough");
}

#[test]
fn the_default_stands_before_what_was_shown_over_libc_alone() {
    let of = |size, arm| From { size, arm };
    let default =
        |size, lost: &[(usize, usize)]| Some(Untuned { from: of(size, 3), lost: lost.to_vec() });
    let below = [Range { from: 256, to: u64::MAX, arm: 0 }];
    let ends = |never: &Never| -> Vec<(u64, usize)> {
        let ranges = never.over(&below);
        assert!(ranges.windows(2).all(|two| two[0].to + 1 == two[1].from), "{ranges:?}");
        assert_eq!((ranges[0].from, ranges[ranges.len() - 1].to), (256, u64::MAX));
        ranges.iter().map(|range| (range.from, range.arm)).collect()
    };
    let never = Never { default: default(4096, &[]), shown: Some(of(1024, 2)) };
    assert_eq!(ends(&never), [(256, 0), (1024, 2), (4096, 3)]);
    assert_eq!(
        [never.at(5000), never.at(2000), never.at(512)].map(|from| from.map(|from| from.arm)),
        [Some(3), Some(2), None]
    );
    assert_eq!(never.first(), Some(of(1024, 2)));
    let never = Never { default: default(1024, &[]), shown: Some(of(4096, 2)) };
    assert_eq!(ends(&never), [(256, 0), (1024, 3)]);
    let never = Never { default: default(1024, &[(2048, 4095)]), shown: None };
    assert_eq!(ends(&never), [(256, 0), (1024, 3), (2048, 0), (4096, 3)]);
    let never = Never { default: default(1024, &[(1024, 4095), (8192, usize::MAX)]), shown: None };
    assert_eq!(ends(&never), [(256, 0), (4096, 3), (8192, 0)]);
    assert_eq!(never.at(9000), None);
    let never = Never { default: None, shown: Some(of(1024, 2)) };
    assert_eq!(ends(&never), [(256, 0), (1024, 2)]);
}
