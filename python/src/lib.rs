//! `cachewise._core`: what the Python package has in machine code. The package's own modules
//! (`python/cachewise`) give it names, types and examples.
//!
//! - `buffer`: an object's memory, checked.
//! - `operations`: copy, move, fill, zero, compare, equal.
//! - `words`: the judge's words for tables of records.

mod buffer;
mod operations;
mod words;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::operations::{compare, copy, equal, fill, r#move, zero};
    #[pymodule_export]
    use crate::words::{part_noise, verdict};

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        pyo3::types::PyModuleMethods::add(module, "__version__", env!("CARGO_PKG_VERSION"))
    }
}
