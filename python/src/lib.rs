//! `cachewise._core`: what the Python package has in machine code. The package's own modules
//! (`python/cachewise`) give it names, types and examples.
//!
//! - `agreement`: whether two choices of kernels come to the same.
//! - `buffer`: an object's memory, checked.
//! - `operations`: copy, move, fill, zero, compare, equal.

mod agreement;
mod buffer;
mod operations;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::agreement::{log_ratio, may_lose_nothing, part_noise, tolerance, verdict};
    #[pymodule_export]
    use crate::operations::{compare, copy, equal, fill, r#move, zero};
    #[pymodule_export]
    use crate::user_profile;

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        pyo3::types::PyModuleMethods::add(module, "__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// This CPU's profile of the user's; none where neither HOME nor XDG_CONFIG_HOME is an absolute path.
#[pyfunction]
fn user_profile() -> Option<std::path::PathBuf> {
    cachewise::profile::user_path()
}
