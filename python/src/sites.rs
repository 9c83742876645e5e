//! Named call sites.

use crate::buffer::{Access, Buffer};
use crate::operations::{Address, apart, byte, detached, pair};
use cachewise::Site as Named;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The library keeps names for ever, so that each is kept once.
static NAMES: Mutex<Option<HashMap<String, &'static Named>>> = Mutex::new(None);

/// A named place of a program that copies: made by `site`.
///
/// Its large calls are tried by temporal and non-temporal stores, and then go the way that makes the
/// program's own time the shorter one. Calls below 64 KiB do as the profile says.
#[pyclass(frozen, module = "cachewise")]
pub(crate) struct Site {
    named: &'static Named,
}

/// The site of that name: where nobody knows whether a copy is read soon, the program's time tells.
///
/// The name is what the site is known by in the next process, if `save_sites` was called in this one.
/// Sites of one name are one. Names are kept for ever: use few, not one for each object.
///
/// Parameters
/// ----------
/// name : str
///     1 to 64 printable characters of ASCII, no blank at either end.
///
/// Returns
/// -------
/// Site
///
/// Raises
/// ------
/// ValueError
///     Another name.
///
/// Examples
/// --------
/// >>> import cachewise
/// >>> snapshot = cachewise.site("publish snapshot")
/// >>> state, copied = bytes(100_000), bytearray(b"x" * 100_000)
/// >>> snapshot.copy(copied, state)
/// >>> copied == state
/// True
#[pyfunction]
pub(crate) fn site(name: &str) -> PyResult<Site> {
    let printable = name.bytes().all(|letter| letter.is_ascii_graphic() || letter == b' ');
    if !(1..=64).contains(&name.len()) || !printable || name.trim() != name {
        return Err(PyValueError::new_err(format!(
            "name: found \"{}\", accepted 1 to 64 printable characters of ASCII, no blank at either end",
            name.escape_debug()
        )));
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(named) = names.get(name) {
        return Ok(Site { named });
    }
    let kept: &'static str = Box::leak(name.into());
    let named: &'static Named = Box::leak(Box::new(Named::new(kept)));
    names.insert(name.to_owned(), named);
    Ok(Site { named })
}

/// Keeps what the sites have learned, for the next process of this program to start from.
///
/// It writes the user's file for this program, or the one that ``CACHEWISE_PROGRAM`` names. All scripts
/// of one interpreter are one program: name a file for each.
///
/// Raises
/// ------
/// OSError
///     The file cannot be read or written, is damaged, or another CPU's.
#[pyfunction]
pub(crate) fn save_sites(py: Python<'_>) -> PyResult<()> {
    py.detach(cachewise::save_sites).map_err(|error| PyOSError::new_err(error.to_string()))
}

#[pymethods]
impl Site {
    /// Its name.
    #[getter]
    fn name(&self) -> &'static str {
        self.named.name()
    }

    /// As `cachewise.copy`.
    fn copy(&self, py: Python<'_>, dst: &Bound<'_, PyAny>, src: &Bound<'_, PyAny>) -> PyResult<()> {
        let (dst, src) = apart(dst, src)?;
        let (to, from, n) = (Address(dst.start()), Address(src.start()), dst.len());
        detached(py, n, || {
            // SAFETY: both buffers have n bytes, which stay while they are held, and lie apart.
            unsafe { self.named.copy_nonoverlapping(to.get(), from.get(), n) };
        });
        Ok(())
    }

    /// As `cachewise.move`.
    fn r#move(
        &self,
        py: Python<'_>,
        dst: &Bound<'_, PyAny>,
        src: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (dst, src) = pair(dst, src)?;
        let (to, from, n) = (Address(dst.start()), Address(src.start()), dst.len());
        detached(py, n, || {
            // SAFETY: both buffers have n bytes, which stay while they are held.
            unsafe { self.named.copy_overlapping(to.get(), from.get(), n) };
        });
        Ok(())
    }

    /// As `cachewise.fill`.
    fn fill(
        &self,
        py: Python<'_>,
        dst: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let value = byte(value)?;
        let dst = Buffer::of(dst, "dst", Access::Write)?;
        let (to, n) = (Address(dst.start()), dst.len());
        let name = cachewise::site::Name::new(self.named.name().as_bytes());
        detached(py, n, || {
            // SAFETY: the buffer has n bytes, which stay while it is held.
            unsafe { cachewise::site::fill(name, to.get(), value, n) };
        });
        Ok(())
    }

    /// As `cachewise.zero`.
    fn zero(&self, py: Python<'_>, dst: &Bound<'_, PyAny>) -> PyResult<()> {
        let dst = Buffer::of(dst, "dst", Access::Write)?;
        let (to, n) = (Address(dst.start()), dst.len());
        let name = cachewise::site::Name::new(self.named.name().as_bytes());
        detached(py, n, || {
            // SAFETY: the buffer has n bytes, which stay while it is held.
            unsafe { cachewise::site::zero(name, to.get(), n) };
        });
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("cachewise.site({:?})", self.named.name())
    }
}
