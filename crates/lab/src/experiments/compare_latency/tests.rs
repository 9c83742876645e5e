//! Verdicts on made-up rows.

use super::super::support::made_up;
use super::*;
use cachewise_measure::CallTimes;

fn page(candidate: &str, ns: f64) -> Row {
    let mut row =
        made_up::row(key("compare", 4096, (None, None), "pages", &[]), candidate, LIBC, ns);
    for (name, part) in WITHIN.iter().zip([0.5, 0.6, 0.7]) {
        row.extra.insert((*name).to_owned(), part);
    }
    row
}

fn swept(candidate: &str, position: f64, ns: f64) -> Row {
    let cell = key("compare", 4096, (None, None), "sweep", &[(FIRST_DIFFERENCE, position)]);
    made_up::row(cell, candidate, LIBC, ns)
}

fn called(candidate: &str, launch: f64, share: f64, times: &CallTimes) -> Row {
    let cell = key("compare", 4096, (None, None), "calls to 1000 ns", &[(LAUNCH, launch)]);
    let mut row = made_up::row(cell, candidate, LIBC, 50.0);
    row.extra.insert(BELOW_100.into(), share);
    row.histogram = Some(times.histogram(1000.0, 1));
    row
}

#[test]
fn positions_lie_inside_and_end_with_none() {
    for size in [1, 2, 16, 17, 64, 4096] {
        for quick in [true, false] {
            let positions = positions(size, quick);
            assert_eq!(positions.last(), Some(&size));
            assert!(positions.is_sorted() && positions.contains(&(size - 1)), "{positions:?}");
        }
    }
}

#[test]
fn the_best_pre_check_is_named_or_denied() {
    let pages = [
        page("compare.gpr64", 90.0),
        page(LIBC, 50.05),
        page("compare.avx2", 60.0),
        page("compare.avx2.pre16", 50.0),
        page("compare.avx2.pre64", 55.0),
    ];
    let said = pre_check(&pages.iter().collect::<Vec<_>>());
    assert!(said.contains("compare.avx2.pre16 is fastest with 50.0 ns"), "{said}");
    assert!(said.contains("compare.gpr64 takes 80 % longer, libc is no different"), "{said}");
    assert!(said.contains("best pre-check 16 B (0 B takes 20 % longer, 64 B takes 10"), "{said}");
    let same = [page("compare.avx2", 50.0), page("compare.avx2.pre64", 50.05)];
    assert!(pre_check(&same.iter().collect::<Vec<_>>()).contains("makes no difference"));
    assert!(pre_check(&[]).contains("cannot tell"));
}

#[test]
fn the_found_distribution_stands_beside_the_seeds() {
    let said = verdicts(&[page("compare.avx2", 1.0)]);
    assert!(
        said[1].contains("50, 60, 70 % of the cases here; seed 004.6 counted 76, 83, 84 %"),
        "{said:?}"
    );
}

#[test]
fn positions_have_their_break_even() {
    let rows = [
        swept("compare.gpr64", 0.0, 2.0),
        swept("compare.avx2", 0.0, 4.0),
        swept("compare.gpr64", 64.0, 10.0),
        swept("compare.avx2", 64.0, 5.0),
        swept("compare.gpr64", 4096.0, 300.0),
        swept("compare.avx2", 4096.0, 60.0),
        swept("compare.avx2.pre64", 4096.0, 66.0),
    ];
    let said = by_position(&rows.iter().collect::<Vec<_>>());
    assert!(
        said[0].starts_with("compare of 4096 B: compare.avx2 beats compare.gpr64 from about"),
        "{said:?}"
    );
    assert!(said[1].contains("costs 10"), "{said:?}");
}

#[test]
fn claims_about_short_calls_are_judged_over_launches() {
    let times = CallTimes::default();
    let judge = |integers: [f64; 2], vectors: [f64; 2]| {
        let rows = [
            called("compare.gpr64", 1.0, integers[0], &times),
            called("compare.gpr64", 2.0, integers[1], &times),
            called("compare.avx2.pre64", 1.0, vectors[0], &times),
            called("compare.avx2.pre64", 2.0, vectors[1], &times),
        ];
        below_100(&rows.iter().collect::<Vec<_>>()).expect("a sentence")
    };
    assert!(judge([0.5, 0.6], [0.7, 0.8]).ends_with("still true"));
    assert!(judge([0.7, 0.8], [0.5, 0.6]).ends_with("no longer true here"));
    assert!(judge([0.5, 0.7], [0.6, 0.8]).ends_with("cannot tell"));
}

#[test]
fn a_spike_is_seen_and_a_smooth_tail_is_not() {
    let mut smooth = CallTimes::default();
    for step in 0..1000_u32 {
        smooth.record(f64::from(step));
    }
    assert_eq!(spike(&smooth.histogram(1000.0, 1)), None);
    let mut spiky = smooth.clone();
    (0..200).for_each(|_| spiky.record(603.0));
    assert_eq!(spike(&spiky.histogram(1000.0, 1)), Some(600.0));
    let here = [called("libc", 2.0, 0.5, &spiky), called("libc", 1.0, 0.5, &smooth)];
    let said = spikes(&here.iter().collect::<Vec<_>>()).expect("a sentence");
    assert!(said.ends_with("here too: libc at 600 ns in launch 2"), "{said}");
    assert!(spikes(&[&here[1]]).expect("a sentence").contains("not here"));
}
