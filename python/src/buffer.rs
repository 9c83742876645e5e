//! The memory of a Python object, by the buffer protocol: contiguous, without references to other
//! objects, and writable where it is written.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::ptr::NonNull;

/// Use of an argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// An object's memory, which stays where it is for as long as this is held.
pub(crate) struct Buffer<'py> {
    // In a box: exporters may keep its address (`PyBuffer_FillInfo` points into it).
    view: Box<ffi::Py_buffer>,
    /// True if it has no gaps in C's order of elements; below, in Fortran's.
    c_order: bool,
    fortran_order: bool,
    _attached: Python<'py>,
}

impl<'py> Buffer<'py> {
    /// The memory of that argument; `name` is for messages.
    pub(crate) fn of(
        object: &Bound<'py, PyAny>,
        name: &str,
        access: Access,
    ) -> PyResult<Buffer<'py>> {
        let refused = match Buffer::exported(object, name, access) {
            Err(error) if is_array(object) => error,
            other => return other,
        };
        // NumPy does not export dates, other libraries' types and fields with a colon in their names, but gives their
        // bytes as a view of type void. What has no such view is refused with the first error.
        let size: usize = object.getattr("itemsize")?.extract()?;
        let Ok(bytes) = object.call_method1("view", (format!("V{size}"),)) else {
            return Err(refused);
        };
        Buffer::exported(&bytes, name, access)
    }

    fn exported(object: &Bound<'py, PyAny>, name: &str, access: Access) -> PyResult<Buffer<'py>> {
        // SAFETY: always callable with an object.
        if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 0 {
            let kind = object.get_type();
            let found = kind.name()?;
            // Some libraries' `numpy()` returns a copy, which is no destination.
            let instead = match kind.module()? == "torch" {
                true => "; its numpy() is one",
                false => "",
            };
            return Err(PyTypeError::new_err(format!(
                "{name}: expected an object with the buffer protocol (bytearray, \
                 memoryview, numpy.ndarray, array.array, mmap.mmap and the like), found {found}{instead}"
            )));
        }
        let mut view = Box::new(ffi::Py_buffer::new());
        // Read-only memory is accepted here and refused below, with a sentence.
        // SAFETY: an object, and a structure to fill.
        let failed =
            unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, ffi::PyBUF_FULL_RO) };
        if failed != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        let contiguous = |order: u8| {
            // SAFETY: a view that was filled.
            unsafe { ffi::PyBuffer_IsContiguous(&raw const *view, order as _) != 0 }
        };
        let (c_order, fortran_order) = (contiguous(b'C'), contiguous(b'F'));
        let buffer = Buffer { view, c_order, fortran_order, _attached: object.py() };
        buffer.check(name, access)?;
        Ok(buffer)
    }

    fn check(&self, name: &str, access: Access) -> PyResult<()> {
        if access == Access::Write && self.view.readonly != 0 {
            return Err(PyValueError::new_err(format!(
                "{name}: expected writable memory, found read-only memory"
            )));
        }
        if !self.c_order && !self.fortran_order {
            // A copy of a destination would be written in its place.
            let instead = match access {
                Access::Read => "numpy.ascontiguousarray copies it",
                Access::Write => "a contiguous array to write to, and then NumPy's own assignment",
            };
            return Err(PyValueError::new_err(format!(
                "{name}: found elements with gaps between them, or in another order than in memory; \
                 accepted contiguous memory ({instead})"
            )));
        }
        if self.format().is_some_and(holds_objects) {
            return Err(PyTypeError::new_err(format!(
                "{name}: expected plain data, found references to Python objects: copying their \
                 addresses would not count them"
            )));
        }
        Ok(())
    }

    /// The elements' format in the language of `struct`; none is unsigned bytes.
    fn format(&self) -> Option<&[u8]> {
        let format = NonNull::new(self.view.format)?;
        // SAFETY: a string that ends in NUL and lives as long as the view.
        Some(unsafe { CStr::from_ptr(format.as_ptr()) }.to_bytes())
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.view.len).unwrap_or(0)
    }

    /// Its first byte. Null is possible where there is none.
    pub(crate) fn start(&self) -> *mut u8 {
        self.view.buf.cast()
    }

    fn shape(&self) -> &[ffi::Py_ssize_t] {
        let dimensions = usize::try_from(self.view.ndim).unwrap_or(0);
        match NonNull::new(self.view.shape) {
            // SAFETY: `ndim` numbers, which live as long as the view.
            Some(shape) => unsafe { std::slice::from_raw_parts(shape.as_ptr(), dimensions) },
            None => &[],
        }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: a view that was filled, by a thread that is attached to the interpreter.
        unsafe { ffi::PyBuffer_Release(&raw mut *self.view) };
    }
}

/// Returns whether it is an array as NumPy has them, of plain data.
fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let plain = || -> PyResult<bool> {
        let objects: bool = object.getattr("dtype")?.getattr("hasobject")?.extract()?;
        Ok(!objects && object.hasattr("itemsize")? && object.hasattr("view")?)
    };
    plain().unwrap_or(false)
}

/// Returns whether elements of that format refer to Python objects: `O` outside of a field's name, which stands
/// between colons.
fn holds_objects(format: &[u8]) -> bool {
    let mut in_name = false;
    format.iter().any(|letter| {
        in_name ^= *letter == b':';
        !in_name && *letter == b'O'
    })
}

/// Two buffers of one operation: as many bytes, in one order.
pub(crate) fn alike(a: &Buffer<'_>, b: &Buffer<'_>, names: [&str; 2]) -> PyResult<()> {
    if a.len() != b.len() {
        let [of_a, of_b] = names;
        return Err(PyValueError::new_err(format!(
            "{of_a} has {} bytes and {of_b} has {}; accepted equal sizes",
            a.len(),
            b.len()
        )));
    }
    let one_order =
        (a.c_order && b.c_order) || (a.fortran_order && b.fortran_order && a.shape() == b.shape());
    if !one_order {
        let [of_a, of_b] = names;
        return Err(PyValueError::new_err(format!(
            "{of_a} and {of_b}: expected the same order of elements, found one in C order and one in \
             Fortran order, or two shapes in Fortran order"
        )));
    }
    Ok(())
}
