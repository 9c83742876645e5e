//! The judge's words and the agreement of two choices: the rules are those of `cachewise_judge`.

use crate::buffer::{Access, Buffer, alike};
use cachewise_measure::agreement::{self, LogRatio};
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

/// Median of the logarithms of times over those of a reference, over the rounds that have both, and its standard
/// error; none where no round has.
#[pyfunction]
pub(crate) fn log_ratio(times: Vec<f64>, reference: Vec<f64>) -> Option<(f64, f64)> {
    LogRatio::of_rounds(&times, &reference).map(|LogRatio { log, error }| (log, error))
}

/// Times that differ by no more than this count as the same choice.
#[pyfunction]
pub(crate) fn tolerance() -> f64 {
    agreement::TOLERANCE
}

/// For each of two arrays of `float32`, logarithms of a time over another's and their standard errors: 1 where the 95 %
/// interval allows that the time is at most 3 % longer, else 0.
#[pyfunction]
pub(crate) fn may_lose_nothing(
    log: &Bound<'_, PyAny>,
    error: &Bound<'_, PyAny>,
) -> PyResult<Vec<u8>> {
    let log = Buffer::of(log, "log", Access::Read)?;
    let error = Buffer::of(error, "error", Access::Read)?;
    alike(&log, &error, ["log", "error"])?;
    let pairs = log.floats("log")?.zip(error.floats("error")?);
    let answer = |(log, error)| u8::from(LogRatio { log, error }.may_lose_nothing());
    Ok(pairs.map(answer).collect())
}
