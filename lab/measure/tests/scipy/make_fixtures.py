"""Writes fixtures.json: what NumPy and SciPy say, for src/stats_tests.rs to agree with.

    pip install numpy scipy && python make_fixtures.py
"""

import json
import pathlib

import numpy
from scipy import stats

rng = numpy.random.default_rng(20240229)


def sample(values):
    quantiles = ["0", "0.025", "0.1", "0.25", "0.5", "0.75", "0.9", "0.975", "1"]
    return {
        "values": list(values),
        "median": float(numpy.median(values)),
        "geometric_mean": float(stats.gmean(values)),
        "quantiles": {q: float(numpy.quantile(values, float(q))) for q in quantiles},
    }


def trend(values):
    """Mann-Kendall by its textbook formulas, checked against kendalltau where nothing ties."""
    values = numpy.asarray(values)
    n = len(values)
    s = sum(
        numpy.sign(values[j] - values[i]) for i in range(n) for j in range(i + 1, n)
    )
    _, ties = numpy.unique(values, return_counts=True)
    variance = (
        n * (n - 1) * (2 * n + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()
    ) / 18
    p = float(2 * stats.norm.sf((abs(s) - 1) / variance**0.5)) if s else 1.0
    if len(ties) == n:
        tau = stats.kendalltau(range(n), values).statistic
        assert abs(tau - s / (n * (n - 1) / 2)) < 1e-12
    slope = stats.theilslopes(values, range(n)).slope
    return {"values": values.tolist(), "p": p, "sen_slope": float(slope)}


def pair(a, b):
    ratios = a / b
    draws = rng.integers(0, len(ratios), size=(200, len(ratios)))
    drawn = numpy.median(ratios[draws], axis=1)
    scipy_interval = stats.bootstrap(
        (ratios,),
        numpy.median,
        n_resamples=100_000,
        method="percentile",
        rng=numpy.random.default_rng(1),
    ).confidence_interval
    return {
        "a": a.tolist(),
        "b": b.tolist(),
        "draws": draws.tolist(),
        "ratio_median": float(numpy.median(ratios)),
        "drawn_low": float(numpy.quantile(drawn, 0.025)),
        "drawn_high": float(numpy.quantile(drawn, 0.975)),
        "scipy_low": float(scipy_interval.low),
        "scipy_high": float(scipy_interval.high),
    }


def skewed(n):
    return (100 * rng.lognormal(0, 0.1, n)).round(4)


def main():
    tied = numpy.array([3.0, 3, 4, 4, 4, 5, 2, 6, 6, 7, 8, 8])
    a, b = skewed(25), skewed(25)
    c = skewed(15)
    with_ties = numpy.array([10.0, 11, 12, 13, 14, 15, 16, 17])
    other = numpy.array([10.0, 12, 11, 15, 12, 18, 13, 20])
    fixtures = {
        "samples": [
            sample(values.tolist())
            for values in (skewed(1), skewed(2), skewed(15), skewed(40), tied)
        ],
        "trends": [
            trend(values)
            for values in (skewed(15), skewed(20) + numpy.arange(20), -tied, tied)
        ],
        "pairs": [pair(a, b), pair(0.9 * c, c * rng.lognormal(0, 0.02, 15)), pair(with_ties, other)],
    }
    path = pathlib.Path(__file__).with_name("fixtures.json")
    path.write_text(json.dumps(fixtures, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
