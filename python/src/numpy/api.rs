//! The functions of NumPy's C interface that set an array's memory handler, by their places in its table
//! (`numpy/__multiarray_api.h`, the same in 1.26 and 2.x).

use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::ffi::{c_uint, c_void};
use std::ptr::NonNull;

const ABI_VERSION: usize = 0;
const API_VERSION: usize = 211;
const SET_HANDLER: usize = 304;
const GET_HANDLER: usize = 305;
const DEFAULT_HANDLER: usize = 306;

/// Binary interfaces whose table is known: of NumPy 1.x and of 2.x.
const KNOWN_ABIS: [c_uint; 2] = [0x0100_0009, 0x0200_0000];
/// The interface of NumPy 1.25 and 1.26, as both call it; later ones only add to it.
const LEAST_API: c_uint = 0x11;

/// NumPy's table of functions, of a version that was found to be known.
#[derive(Clone, Copy)]
pub(super) struct Api(NonNull<*mut c_void>);

impl Api {
    /// The table in NumPy's capsule; `version` is for the message.
    pub(super) fn of(capsule: &Bound<'_, PyCapsule>, version: &str) -> PyResult<Api> {
        let api = Api::known(capsule)?;
        let (abi, level) = (api.number(ABI_VERSION), api.number(API_VERSION));
        if KNOWN_ABIS.contains(&abi) && level >= LEAST_API {
            return Ok(api);
        }
        Err(PyImportError::new_err(format!(
            "NumPy {version}: found binary interface {abi:#x}, level {level:#x}; accepted NumPy 1.26 and 2.x"
        )))
    }

    /// The table in a capsule that was looked at before.
    pub(super) fn known(capsule: &Bound<'_, PyCapsule>) -> PyResult<Api> {
        if capsule.name()?.is_some() {
            return Err(PyRuntimeError::new_err(
                "found another capsule, accepted NumPy's _ARRAY_API",
            ));
        }
        let table = capsule.pointer_checked(None)?;
        Ok(Api(table.cast()))
    }

    fn entry(self, at: usize) -> *mut c_void {
        // SAFETY: the table of NumPy 1.26 is longer, and later ones are never shorter.
        let place = unsafe { self.0.add(at) };
        // SAFETY: inside the table; NumPy never changes it.
        unsafe { place.read() }
    }

    fn number(self, at: usize) -> c_uint {
        type Number = unsafe extern "C" fn() -> c_uint;
        // SAFETY: the function at that place has this type.
        let call = unsafe { std::mem::transmute::<*mut c_void, Number>(self.entry(at)) };
        // SAFETY: always callable.
        unsafe { call() }
    }

    /// The handler of this context.
    pub(super) fn handler<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        type Get = unsafe extern "C" fn() -> *mut ffi::PyObject;
        // SAFETY: the function at that place has this type.
        let call = unsafe { std::mem::transmute::<*mut c_void, Get>(self.entry(GET_HANDLER)) };
        // SAFETY: called while attached to the interpreter.
        let found = unsafe { call() };
        // SAFETY: a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, found) }
    }

    /// Takes that handler for this context, and returns the one before.
    pub(super) fn set_handler<'py>(
        self,
        handler: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: an object.
        unsafe { self.set(handler.py(), handler.as_ptr()) }
    }

    /// Takes NumPy's own handler for this context, and returns the one before.
    pub(super) fn set_default_handler<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        // SAFETY: null stands for the default.
        unsafe { self.set(py, std::ptr::null_mut()) }
    }

    /// # Safety
    /// `handler` is null or an object.
    unsafe fn set<'py>(
        self,
        py: Python<'py>,
        handler: *mut ffi::PyObject,
    ) -> PyResult<Bound<'py, PyAny>> {
        type Set = unsafe extern "C" fn(*mut ffi::PyObject) -> *mut ffi::PyObject;
        // SAFETY: the function at that place has this type.
        let call = unsafe { std::mem::transmute::<*mut c_void, Set>(self.entry(SET_HANDLER)) };
        // SAFETY: the caller's promise; attached to the interpreter. It refuses what is no handler.
        let before = unsafe { call(handler) };
        // SAFETY: a new reference, or null with an exception set.
        unsafe { Bound::from_owned_ptr_or_err(py, before) }
    }

    /// NumPy's own handler, which lives as long as the process.
    pub(super) fn default_handler(self) -> PyResult<NonNull<c_void>> {
        let place = self.entry(DEFAULT_HANDLER).cast::<*mut ffi::PyObject>();
        // SAFETY: the address of NumPy's variable, set when it was imported.
        let capsule = unsafe { place.read() };
        // SAFETY: a capsule of that name.
        let found = unsafe { ffi::PyCapsule_GetPointer(capsule, c"mem_handler".as_ptr()) };
        NonNull::new(found)
            .ok_or_else(|| PyRuntimeError::new_err("NumPy has no memory handler of its own"))
    }
}
