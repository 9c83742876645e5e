//! The judge's words for tables of records: the rules are those of `cachewise_judge`.

use cachewise_measure::record::PART_NOISE;
use cachewise_measure::{MARGIN, PairedRatio, Verdict};
use pyo3::prelude::*;

/// The word for a ratio of times, as records spell it.
#[pyfunction]
pub(crate) fn verdict(median: f64, low: f64, high: f64, rounds: usize) -> &'static str {
    match (PairedRatio { median, low, high, rounds }).verdict(MARGIN) {
        Verdict::Unknown => "cannot-tell",
        known => known.name(),
    }
}

/// The part of an operation's time by which noise may make a reader or a bystander negative.
#[pyfunction]
pub(crate) fn part_noise() -> f64 {
    PART_NOISE
}
