//! Agreement of two choices, for `cachewise.fleet`: the rules are those of `cachewise_measure`.

use crate::buffer::{Access, Buffer, alike};
use cachewise_measure::agreement::{self, LogRatio};
use pyo3::prelude::*;

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
