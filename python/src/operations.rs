//! The operations on buffers.

use crate::buffer::{Access, Buffer, alike};
use cachewise::{Reuse, raw};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// From so many bytes on an operation lets other threads of Python run. Below, it is over before
/// another thread could have begun, and waiting for one that did would take longer.
const LARGE: usize = 256 << 10;

/// Does the work, attached to the interpreter only if it is short.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    bytes: usize,
    work: impl FnOnce() -> T + Send,
) -> T {
    if bytes < LARGE { work() } else { py.detach(work) }
}

/// Addresses, which a closure may take to where no interpreter is attached.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) *mut u8);

// SAFETY: an address; the thread that uses it holds the buffer.
unsafe impl Send for Address {}
// SAFETY: a shared one gives out the address, as one's own does.
unsafe impl Sync for Address {}

impl Address {
    /// The address.
    pub(crate) fn get(self) -> *mut u8 {
        self.0
    }
}

/// `reuse=`.
fn hint(word: Option<&str>) -> PyResult<Reuse> {
    let Some(word) = word else { return Ok(Reuse::Unknown) };
    Reuse::from_name(word).ok_or_else(|| {
        PyValueError::new_err(format!(
            "reuse: expected \"soon\", \"never\", None, found \"{}\"",
            word.escape_debug()
        ))
    })
}

/// A byte to fill with.
pub(crate) fn byte(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    let number = value.extract::<i64>();
    match number.as_ref().map(|number| u8::try_from(*number)) {
        Ok(Ok(byte)) => Ok(i32::from(byte)),
        _ if number.is_err() && !value.hasattr("__index__")? => Err(PyTypeError::new_err(format!(
            "value: expected a whole number from 0 to 255, found {}",
            value.repr()?
        ))),
        _ => {
            Err(PyValueError::new_err(format!("value: expected 0 to 255, found {}", value.repr()?)))
        }
    }
}

/// Destination and source of a copy, as many bytes each.
pub(crate) fn pair<'py>(
    dst: &Bound<'py, PyAny>,
    src: &Bound<'py, PyAny>,
) -> PyResult<(Buffer<'py>, Buffer<'py>)> {
    let dst = Buffer::of(dst, "dst", Access::Write)?;
    let src = Buffer::of(src, "src", Access::Read)?;
    alike(&dst, &src, ["dst", "src"])?;
    Ok((dst, src))
}

/// [`pair`], and no byte in both.
pub(crate) fn apart<'py>(
    dst: &Bound<'py, PyAny>,
    src: &Bound<'py, PyAny>,
) -> PyResult<(Buffer<'py>, Buffer<'py>)> {
    let (dst, src) = pair(dst, src)?;
    if dst.start().addr().abs_diff(src.start().addr()) < dst.len() {
        return Err(PyValueError::new_err(
            "dst and src overlap; accepted memory apart (move copies where they overlap)",
        ));
    }
    Ok((dst, src))
}

/// Copies the bytes of `src` to `dst`.
///
/// Both are contiguous buffers of the same number of bytes (`bytearray`, `memoryview`,
/// `numpy.ndarray`, ...); their types of elements and, in C order, their shapes may differ. They must not
/// overlap.
///
/// Parameters
/// ----------
/// dst : writable buffer
/// src : buffer
///     As many bytes as `dst`.
/// reuse : {"soon", "never"}, optional
///     When `dst` is read next: soon, or not again by this CPU. By default it is not known.
///
/// Raises
/// ------
/// ValueError
///     Unequal sizes, memory that is read-only, overlapping or not contiguous, unequal orders.
/// TypeError
///     No buffer, or one of Python objects.
///
/// Examples
/// --------
/// >>> import cachewise
/// >>> page = bytearray(5)
/// >>> cachewise.copy(page, b"hello", reuse="soon")
/// >>> page
/// bytearray(b'hello')
#[pyfunction]
#[pyo3(signature = (dst, src, *, reuse=None))]
pub(crate) fn copy(
    py: Python<'_>,
    dst: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    reuse: Option<&str>,
) -> PyResult<()> {
    let reuse = hint(reuse)?;
    let (dst, src) = apart(dst, src)?;
    let (to, from, n) = (Address(dst.start()), Address(src.start()), dst.len());
    detached(py, n, || {
        // SAFETY: both buffers have n bytes, which stay while they are held, and lie apart.
        unsafe { raw::copy_nonoverlapping_with(reuse, to.get(), from.get(), n) };
    });
    Ok(())
}

/// Copies the bytes of `src` to `dst`, which may overlap.
///
/// Parameters
/// ----------
/// dst : writable buffer
/// src : buffer
///     As many bytes as `dst`.
/// reuse : {"soon", "never"}, optional
///     As for `copy`.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As for `copy`, overlapping apart.
///
/// Examples
/// --------
/// >>> import cachewise
/// >>> line = bytearray(b"abcdef")
/// >>> view = memoryview(line)
/// >>> cachewise.move(view[2:], view[:4])
/// >>> line
/// bytearray(b'ababcd')
#[pyfunction]
#[pyo3(signature = (dst, src, *, reuse=None))]
pub(crate) fn r#move(
    py: Python<'_>,
    dst: &Bound<'_, PyAny>,
    src: &Bound<'_, PyAny>,
    reuse: Option<&str>,
) -> PyResult<()> {
    let reuse = hint(reuse)?;
    let (dst, src) = pair(dst, src)?;
    let (to, from, n) = (Address(dst.start()), Address(src.start()), dst.len());
    detached(py, n, || {
        // SAFETY: both buffers have n bytes, which stay while they are held.
        unsafe { raw::copy_with(reuse, to.get(), from.get(), n) };
    });
    Ok(())
}

/// Stores the byte `value` everywhere in `dst`.
///
/// Parameters
/// ----------
/// dst : writable buffer
/// value : int
///     0 to 255. It is a byte: a float64 array filled with 1 holds 7.7e-304, not 1.0.
/// reuse : {"soon", "never"}, optional
///     As for `copy`.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As for `copy`; a value that is not a byte.
///
/// Examples
/// --------
/// >>> import cachewise
/// >>> page = bytearray(4)
/// >>> cachewise.fill(page, 0x2A)
/// >>> page
/// bytearray(b'****')
#[pyfunction]
#[pyo3(signature = (dst, value, *, reuse=None))]
pub(crate) fn fill(
    py: Python<'_>,
    dst: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    reuse: Option<&str>,
) -> PyResult<()> {
    let (reuse, value) = (hint(reuse)?, byte(value)?);
    let dst = Buffer::of(dst, "dst", Access::Write)?;
    let (to, n) = (Address(dst.start()), dst.len());
    detached(py, n, || {
        // SAFETY: the buffer has n bytes, which stay while it is held.
        unsafe { raw::fill_with(reuse, to.get(), value, n) };
    });
    Ok(())
}

/// Stores zero everywhere in `dst`.
///
/// Parameters
/// ----------
/// dst : writable buffer
/// reuse : {"soon", "never"}, optional
///     As for `copy`.
///
/// Raises
/// ------
/// ValueError, TypeError
///     As for `copy`.
///
/// Examples
/// --------
/// >>> import cachewise
/// >>> page = bytearray(b"abc")
/// >>> cachewise.zero(page, reuse="never")
/// >>> page
/// bytearray(b'\x00\x00\x00')
#[pyfunction]
#[pyo3(signature = (dst, *, reuse=None))]
pub(crate) fn zero(py: Python<'_>, dst: &Bound<'_, PyAny>, reuse: Option<&str>) -> PyResult<()> {
    let reuse = hint(reuse)?;
    let dst = Buffer::of(dst, "dst", Access::Write)?;
    let (to, n) = (Address(dst.start()), dst.len());
    detached(py, n, || {
        // SAFETY: the buffer has n bytes, which stay while it is held.
        unsafe { raw::zero_with(reuse, to.get(), n) };
    });
    Ok(())
}

/// The order of two buffers' bytes: -1, 0 or 1.
///
/// Lexicographic order of unsigned bytes; the beginning of a longer buffer comes before it. It is the
/// order of bytes in memory and not of numbers: on floats it only tells equal from unequal bytes.
///
/// Parameters
/// ----------
/// a, b : buffer
///     Of any two sizes.
///
/// Returns
/// -------
/// int
///     -1 where `a` comes first, 0 where they are equal, 1 where `b` does.
///
/// Examples
/// --------
/// >>> import cachewise
/// >>> cachewise.compare(b"abc", b"abd")
/// -1
/// >>> cachewise.compare(b"abc", b"ab")
/// 1
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<i32> {
    let a = Buffer::of(a, "a", Access::Read)?;
    let b = Buffer::of(b, "b", Access::Read)?;
    let shared = a.len().min(b.len());
    if a.len() == b.len() {
        alike(&a, &b, ["a", "b"])?;
    }
    let (at_a, at_b) = (Address(a.start()), Address(b.start()));
    // SAFETY: both buffers have that many bytes, which stay while they are held.
    let order = detached(py, shared, || unsafe { raw::compare(at_a.get(), at_b.get(), shared) });
    Ok(order.cmp(&0).then(a.len().cmp(&b.len())) as i32)
}

/// Return whether two buffers have the same bytes.
///
/// Buffers of unequal sizes are unequal. Bytes are compared and not numbers: 0.0 and -0.0 differ, and a
/// NaN equals itself.
///
/// Parameters
/// ----------
/// a, b : buffer
///     Of any two sizes.
///
/// Examples
/// --------
/// >>> import cachewise
/// >>> cachewise.equal(bytearray(b"abc"), b"abc")
/// True
#[pyfunction]
pub(crate) fn equal(py: Python<'_>, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    let a = Buffer::of(a, "a", Access::Read)?;
    let b = Buffer::of(b, "b", Access::Read)?;
    if a.len() != b.len() {
        return Ok(false);
    }
    alike(&a, &b, ["a", "b"])?;
    let (at_a, at_b, n) = (Address(a.start()), Address(b.start()), a.len());
    // SAFETY: both buffers have n bytes, which stay while they are held.
    Ok(detached(py, n, || unsafe { raw::equal(at_a.get(), at_b.get(), n) }))
}
