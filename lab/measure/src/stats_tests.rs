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
