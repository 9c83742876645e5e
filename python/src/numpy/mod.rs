//! NumPy's arrays in memory of a page pool: NEP 49.
//!
//! - `api`: the four functions of NumPy's C interface that this takes.
//! - `handler`: what NumPy calls for an array's data.
//! - `pool`: the one pool, and how long each of its blocks is.
//!
//! NumPy keeps with each array the handler that its data is from, so the handler and the pool, once made, stay
//! until the process ends: an array may be freed long after `disable`, or never.

mod api;
mod handler;
mod pool;

use api::Api;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// Makes the pool of so many bytes, if there is none yet, and serves blocks of `smallest` bytes and more;
/// `array_api` is NumPy's.
///
/// Another size than that of the pool that is there is refused: its blocks are in use.
#[pyfunction]
pub(crate) fn pool_make(
    array_api: &Bound<'_, PyCapsule>,
    version: &str,
    bytes: usize,
    smallest: Option<usize>,
) -> PyResult<()> {
    let api = Api::of(array_api, version)?;
    api.default_handler().map(handler::hand_on_to)?;
    // Attached to the interpreter: Python forks nowhere in the middle.
    pool::make(bytes).map_err(|problem| match problem {
        pool::Problem::OtherSize(there) => PyRuntimeError::new_err(format!(
            "pool: found {bytes} bytes, accepted {there}: this process has a pool of that size, and \
             arrays may lie in it"
        )),
        pool::Problem::Refused(error) => PyValueError::new_err(format!("pool: {error}")),
    })?;
    pool::serve_from(smallest);
    Ok(())
}

/// Has NumPy take data from the pool in this context. Returns the handler it had.
#[pyfunction]
pub(crate) fn pool_use<'py>(array_api: &Bound<'py, PyCapsule>) -> PyResult<Bound<'py, PyAny>> {
    let ours = handler::capsule(array_api.py())?;
    Api::known(array_api)?.set_handler(&ours)
}

/// Has NumPy take data from that handler, or from its own, in this context. Returns the handler it had.
#[pyfunction]
pub(crate) fn handler_use<'py>(
    array_api: &Bound<'py, PyCapsule>,
    handler: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let api = Api::known(array_api)?;
    match handler {
        Some(handler) => api.set_handler(handler),
        None => api.set_default_handler(array_api.py()),
    }
}

/// Returns whether NumPy takes data from the pool in this context.
#[pyfunction]
pub(crate) fn pool_is_used(array_api: &Bound<'_, PyCapsule>) -> PyResult<bool> {
    let current = Api::known(array_api)?.handler(array_api.py())?;
    Ok(handler::is_ours(&current))
}

/// The pool's figures; none where none was made.
#[pyfunction]
pub(crate) fn pool_stats(py: Python<'_>) -> PyResult<Option<Bound<'_, PyDict>>> {
    let Some(figures) = pool::figures() else { return Ok(None) };
    let stats = PyDict::new(py);
    for (name, value) in figures {
        stats.set_item(name, value)?;
    }
    Ok(Some(stats))
}
