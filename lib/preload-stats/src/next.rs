//! The next definition of a function in the dynamic linker's order: the one that the program would have called.

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The next definition of a function, looked for once.
pub(crate) struct Next(AtomicPtr<c_void>, &'static CStr);

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Next {
        Next(AtomicPtr::new(ptr::null_mut()), name)
    }

    /// The definition, if it was looked for and found.
    pub(crate) fn known(&self) -> *mut c_void {
        self.0.load(Relaxed)
    }

    pub(crate) fn get(&self) -> *mut c_void {
        let known = self.known();
        if !known.is_null() {
            return known;
        }
        // Not by `dlsym`, which glibc moved from one library to another.
        let found = cachewise::next_definitions([self.1], ptr::from_ref(self).addr());
        let found = found.map_or(ptr::null_mut(), |[next]| next.cast());
        self.0.store(found, Relaxed);
        found
    }
}
