//! Against NumPy and SciPy (numbers made by `tests/scipy/make_fixtures.py`), and the edges.

use super::*;
use serde_json::Value;

fn fixtures() -> Value {
    serde_json::from_str(include_str!("../tests/scipy/fixtures.json")).expect("JSON")
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().expect("numbers").iter().map(|x| x.as_f64().expect("a number")).collect()
}

#[track_caller]
fn near(found: f64, expected: &Value) {
    let expected = expected.as_f64().expect("a number");
    let tolerance = 1e-10 * expected.abs().max(1e-3);
    assert!((found - expected).abs() <= tolerance, "{found} is not {expected}");
}

#[test]
fn order_statistics_are_numpys() {
    for case in fixtures()["samples"].as_array().expect("cases") {
        let values = numbers(&case["values"]);
        near(median(&values), &case["median"]);
        near(geometric_mean(&values), &case["geometric_mean"]);
        for (q, expected) in case["quantiles"].as_object().expect("quantiles") {
            near(quantile(&values, q.parse().expect("a number")), expected);
        }
    }
}

#[test]
fn trend_tests_are_scipys() {
    for case in fixtures()["trends"].as_array().expect("cases") {
        let values = numbers(&case["values"]);
        near(mann_kendall(&values), &case["p"]);
        near(sen_slope(&values), &case["sen_slope"]);
    }
}

#[test]
fn bootstrap_intervals_are_numpys_for_the_same_draws() {
    for case in fixtures()["pairs"].as_array().expect("cases") {
        let (a, b) = (numbers(&case["a"]), numbers(&case["b"]));
        let ratios: Vec<f64> = a.iter().zip(&b).map(|(x, y)| x / y).collect();
        let draws = case["draws"].as_array().expect("draws").iter().map(numbers);
        let drawn = draws.map(|draw| draw.into_iter().map(|at| ratios[at as usize]).collect());
        let (low, high) = middle(drawn.map(|values: Vec<f64>| median(&values)));
        near(low, &case["drawn_low"]);
        near(high, &case["drawn_high"]);
        // With draws of its own, within what 2000 draws can differ from SciPy's 100 000.
        let own = PairedRatio::new(&a, &b, 42);
        near(own.median, &case["ratio_median"]);
        let (low, high) = (&case["scipy_low"], &case["scipy_high"]);
        let (low, high) = (low.as_f64().expect("low"), high.as_f64().expect("high"));
        let width = high - low;
        assert!((own.low - low).abs() < 0.25 * width, "{own:?}, SciPy {low} to {high}");
        assert!((own.high - high).abs() < 0.25 * width, "{own:?}, SciPy {low} to {high}");
        assert_eq!(own, PairedRatio::new(&a, &b, 42), "the seed decides");
    }
}

#[test]
fn verdicts_need_interval_and_margin() {
    let ratio = |median, low, high| PairedRatio { median, low, high, rounds: 15 };
    assert_eq!(ratio(0.8, 0.7, 0.9).verdict(0.02), Verdict::Faster);
    assert_eq!(ratio(1.2, 1.1, 1.3).verdict(0.02), Verdict::Slower);
    assert_eq!(ratio(0.8, 0.7, 1.01).verdict(0.02), Verdict::CannotTell);
    assert_eq!(ratio(0.99, 0.985, 0.995).verdict(0.02), Verdict::CannotTell);
    assert_eq!(ratio(0.99, 0.985, 0.995).verdict(0.0), Verdict::Faster);
    let few = PairedRatio { rounds: 5, ..ratio(0.5, 0.4, 0.6) };
    assert_eq!(few.verdict(0.0), Verdict::CannotTell);
    let none = PairedRatio::new(&[], &[], 1);
    assert!(none.median.is_nan() && none.rounds == 0);
    assert_eq!(none.verdict(0.0), Verdict::CannotTell);
}

#[test]
fn one_outlier_moves_no_verdict() {
    let reference = vec![100.0; 15];
    let mut candidate = vec![80.0; 15];
    candidate[7] = 100_000.0;
    let ratio = PairedRatio::new(&candidate, &reference, 1);
    assert_eq!((ratio.median, ratio.verdict(0.05)), (0.8, Verdict::Faster));
}

#[test]
fn rounds_without_time_give_no_ratio() {
    assert_eq!(PairedRatio::new(&[1.0, 2.0, 3.0, 4.0], &[0.0, 2.0, 3.0, 4.0], 1).rounds, 3);
    // Noise of less than nothing in more than a quarter of the rounds: nothing can be said.
    let mut lost = [5.0; 16];
    lost[..5].fill(-3.0);
    let none = PairedRatio::new(&lost, &[1.0; 16], 1);
    assert!(none.rounds == 0 && none.verdict(0.0) == Verdict::CannotTell && !none.is_sound());
}

#[test]
fn drift_is_told_from_noise() {
    let wobble = [0.0, 0.3, -0.2, 0.1, -0.3, 0.2, -0.1, 0.25, -0.15, 0.05, 0.12, -0.22];
    let steady: Vec<f64> = wobble.iter().map(|w| 100.0 + w).collect();
    let rising: Vec<f64> = wobble.iter().enumerate().map(|(i, w)| 100.0 + w + i as f64).collect();
    assert!(matches!(DriftVerdict::of_rounds(&[&steady]), DriftVerdict::Steady { .. }));
    let DriftVerdict::Drifting { p, change } = DriftVerdict::of_rounds(&[&rising, &rising[..3]])
    else {
        panic!("a rise of 11 % is a drift")
    };
    assert!(p < 0.001 && (0.09..0.13).contains(&change), "{p} {change}");
    assert_eq!(DriftVerdict::of_rounds(&[&steady[..7]]), DriftVerdict::TooFewRounds);
    assert_eq!(DriftVerdict::of_rounds(&[]), DriftVerdict::TooFewRounds);
}

#[test]
fn means_leave_out_what_has_no_logarithm() {
    let mean = GeometricMean::new(&[0.5, 2.0, f64::NAN, 0.0, -1.0], 3);
    assert_eq!((mean.mean, mean.count), (1.0, 2));
    assert!(GeometricMean::new(&[], 3).mean.is_nan());
}

#[test]
fn an_exact_interval_is_that_of_the_median_of_the_ratios() {
    let ratios: Vec<f64> = (1..=20).map(f64::from).collect();
    let exact = PairedRatio::exact(&ratios, &[1.0; 20]);
    assert_eq!((exact.low, exact.median, exact.high, exact.rounds), (6.0, 10.5, 15.0, 20));
    let six = PairedRatio::exact(&[3.0, 1.0, 2.0, 6.0, 5.0, 4.0], &[1.0; 6]);
    assert_eq!((six.low, six.high), (1.0, 6.0));
    // Every other round was another's; a time of 0 is no time.
    let turns: Vec<f64> = (0..20).map(|n| if n % 2 == 0 { 2.0 } else { f64::NAN }).collect();
    let shared = PairedRatio::exact(&turns, &[1.0; 20]);
    assert_eq!((shared.median, shared.rounds), (2.0, 10));
    let zeros = turns.iter().map(|time| time.max(0.0)).collect::<Vec<f64>>();
    assert_eq!(PairedRatio::exact(&zeros, &[1.0; 20]).rounds, 0);
    let none = PairedRatio::exact(&[1.0], &[0.0]);
    assert!(none.low.is_nan() && none.high.is_nan() && none.median.is_nan());
    assert_eq!(none.verdict(0.02), Verdict::CannotTell);
}

#[test]
fn an_exact_interval_holds_the_median_in_95_of_100_cases() {
    let mut random = fastrand::Rng::with_seed(5);
    for rounds in [6, 7, 8, 10, 15, 20] {
        let held = (0..2000).filter(|_| {
            // A long tail to one side; its median is 1.
            let mut draw = || (random.f64() / 0.5).powi(4);
            let times: Vec<f64> = (0..rounds).map(|_| draw()).collect();
            let PairedRatio { low, high, .. } = PairedRatio::exact(&times, &vec![1.0; rounds]);
            (low..=high).contains(&1.0)
        });
        // 95 % less three standard errors of 2000 cases.
        let held = held.count();
        assert!(held >= 1870, "{rounds} rounds: {held} of 2000");
    }
}

#[test]
fn a_signed_rank_interval_has_the_ranks_of_the_tables() {
    // Hollander, Wolfe and Chicken, table A.4: the sum of ranks of 10 rounds is at or below 8 with
    // a probability of 2.4 %, of 15 at or below 25 with 2.4 %, of 6 at or below 0 with 1.6 %.
    for (rounds, outside) in [(5, 0), (6, 0), (10, 8), (15, 25)] {
        assert_eq!(signed_ranks_outside(rounds), outside, "{rounds} rounds");
    }
    // The approximation goes on where the exact count ends.
    let (exact, approximate) = (signed_ranks_outside(200), signed_ranks_outside(201));
    // One round more moves the middle by 100 and the end by some 88.
    assert!((80..96).contains(&(approximate - exact)), "{exact}, {approximate}");
}

#[test]
fn an_interval_of_turns_is_of_logarithms() {
    // Six rounds leave none of the 21 means of 0, 0, 0, 0, ln 2 and ln 2 outside.
    let turns = PairedRatio::in_turns(&[1.0, 2.0, 1.0, 1.0, 2.0, 1.0], &[1.0; 6]);
    assert!((turns.low - 1.0).abs() < 1e-12, "{turns:?}");
    assert!((turns.high - 2.0).abs() < 1e-12, "{turns:?}");
    let inverse = PairedRatio::in_turns(&[1.0; 6], &[1.0, 2.0, 1.0, 1.0, 2.0, 1.0]);
    assert!((turns.median * inverse.median - 1.0).abs() < 1e-12, "{turns:?} {inverse:?}");
    let none = PairedRatio::in_turns(&[1.0], &[0.0]);
    assert!(none.low.is_nan() && none.high.is_nan() && none.median.is_nan());
    assert_eq!(none.rounds, 0);
}

#[test]
fn an_interval_of_turns_holds_a_factor_in_95_of_100_cases_and_is_the_narrower_one() {
    let mut random = fastrand::Rng::with_seed(5);
    for rounds in [6, 10, 20, 60] {
        let (mut held, mut wide, mut wider) = (0, 0.0, 0.0);
        for _ in 0..2000 {
            // Symmetric noise of logarithms with bursts, around a factor of 1.1.
            let mut draw = || {
                let usual: f64 = (0..4).map(|_| random.f64() - 0.5).sum();
                let burst = if random.u32(..12) == 0 { 8.0 } else { 1.0 };
                1.1 * (0.05 * usual * burst).exp()
            };
            let times: Vec<f64> = (0..rounds).map(|_| draw()).collect();
            let turns = PairedRatio::in_turns(&times, &vec![1.0; rounds]);
            held += usize::from((turns.low..=turns.high).contains(&1.1));
            let exact = PairedRatio::exact(&times, &vec![1.0; rounds]);
            wide += turns.high - turns.low;
            wider += exact.high - exact.low;
        }
        assert!(held >= 1870, "{rounds} rounds: {held} of 2000");
        assert!(rounds < 20 || wide < wider, "{rounds} rounds: {wide} {wider}");
    }
}

#[test]
fn the_interval_of_a_median_has_the_ranks_of_the_tables() {
    // Conover, Practical Nonparametric Statistics, table A3: 95 % for n = 15 is ranks 4 and 12.
    let of = |n: i32| median_interval(&(1..=n).map(f64::from).collect::<Vec<_>>());
    assert_eq!([15, 6, 5].map(of), [(4.0, 12.0), (1.0, 6.0), (1.0, 5.0)]);
    let (low, high) = of(2000);
    assert!((950.0..960.0).contains(&low) && (1040.0..1050.0).contains(&high), "{low} {high}");
    assert!(median_interval(&[]).0.is_nan());
}

#[test]
fn the_median_is_the_quantile_of_a_half() {
    let mut random = fastrand::Rng::with_seed(5);
    for length in 1..40 {
        let values: Vec<f64> = (0..length).map(|_| f64::from(random.i16(-9..9)) / 7.0).collect();
        assert_eq!(median(&values).to_bits(), quantile(&values, 0.5).to_bits(), "{values:?}");
    }
    assert!(median(&[]).is_nan());
}
