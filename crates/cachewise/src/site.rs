//! Call sites with a name, whose large calls learn which way to go.
//!
//! Whether a copied buffer is used again soon is a property of the place that copies, not of the
//! size (seed 001.8). Where the caller knows, a [`Reuse`](crate::Reuse) hint says it. Where it does
//! not, it gives the place a name with [`site!`](crate::site!), and the time from one call of the
//! site to its next on the same thread decides: copy, reader and bystander are in it.
//! `docs/learning.md` says how, and what it costs: at most 2 % of the site's time for calls tried
//! the other way.
//!
//! - Calls below 64 KiB, and below the size from which the profile has two ways, do as the
//!   profile says and pay a comparison.
//! - Sizes of different octaves, and the four operations, are decided apart.
//! - What an earlier process has saved with [`save_sites`] is followed from the first call; so is
//!   what `CACHEWISE_PROGRAM` names. Nothing is saved by itself: a library has no moment for it.
//! - `CACHEWISE_LEARN=0` follows and does not try; `CACHEWISE_LEARN=trial` has no 2 % (2048 tried
//!   calls all the same).
//! - Nothing locks or allocates; any thread, signal handlers and forked children may call.
//! - Where the crate is built without the `os` feature, or for another system than Linux, sites do
//!   as the profile says.

#[cfg(all(feature = "os", target_os = "linux"))]
mod learner;
mod name;
mod state;

use crate::raw;
use cachewise_kernels::Operation;
#[cfg(all(feature = "os", target_os = "linux"))]
use core::fmt;
#[cfg(all(feature = "os", target_os = "linux"))]
use state::LARGE;

pub use name::{MAX_NAME, Name};
pub use state::{SiteOutcome, SiteState};

/// A named call site: made by [`site!`](crate::site!), or kept in a `static`.
///
/// ```
/// use cachewise::site;
///
/// fn publish(snapshot: &mut [u8], state: &[u8]) {
///     // Read soon? The programmer does not know; the time between calls decides.
///     site!("publish snapshot").copy(snapshot, state);
/// }
///
/// let state = vec![7u8; 300_000];
/// let mut snapshot = vec![0u8; 300_000];
/// for _ in 0..10 {
///     publish(&mut snapshot, &state);
/// }
/// assert_eq!(snapshot, state);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Site {
    name: Name<'static>,
}

/// The site of that name, as a `&'static Site`: `site!("snapshot")`.
///
/// The name identifies the site in the next process, so it should stay the same: sites
/// with the same name are one site. A name that [`Site::new`] refuses does not compile:
///
/// ```compile_fail
/// cachewise::site!("");
/// ```
#[macro_export]
macro_rules! site {
    ($name:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        &SITE
    }};
}

impl Site {
    /// A site with this name: 1 to 64 printable characters of ASCII, no blank at either end.
    ///
    /// # Panics
    /// On any other name; in a `static` such a name does not compile.
    #[must_use]
    pub const fn new(name: &'static str) -> Site {
        let bytes = name.as_bytes();
        assert!(!bytes.is_empty() && bytes.len() <= MAX_NAME, "a site's name has 1 to 64 bytes");
        assert!(
            bytes[0] != b' ' && bytes[bytes.len() - 1] != b' ',
            "a site's name has no blank at either end"
        );
        let mut at = 0;
        while at < bytes.len() {
            assert!(
                bytes[at].is_ascii_graphic() || bytes[at] == b' ',
                "a site's name is printable ASCII"
            );
            at += 1;
        }
        Site { name: Name::new(bytes) }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        core::str::from_utf8(self.name.bytes).unwrap_or("")
    }

    /// As [`copy`](crate::copy()).
    ///
    /// # Panics
    /// If the lengths differ.
    #[track_caller]
    pub fn copy(&self, dst: &mut [u8], src: &[u8]) {
        assert!(
            dst.len() == src.len(),
            "source has {} bytes, destination {}",
            src.len(),
            dst.len()
        );
        // SAFETY: both slices have that many bytes, and a mutable one overlaps no other.
        unsafe { copy(self.name, dst.as_mut_ptr(), src.as_ptr(), src.len()) };
    }

    /// As [`copy_within`](crate::copy_within()), the range being `start..end`.
    ///
    /// # Panics
    /// If the range or the place for it is not inside the buffer.
    #[track_caller]
    pub fn copy_within(&self, buffer: &mut [u8], range: core::ops::Range<usize>, dest: usize) {
        let n = buffer.get(range.clone()).map(<[u8]>::len);
        let Some(n) = n else { panic!("range {range:?} not inside the buffer") };
        assert!(dest <= buffer.len() - n, "{n} bytes do not fit from place {dest} on");
        let base = buffer.as_mut_ptr();
        // SAFETY: both ranges of n bytes are inside the buffer, whose borrow is exclusive.
        unsafe { r#move(self.name, base.wrapping_add(dest), base.wrapping_add(range.start), n) };
    }

    /// As [`fill`](crate::fill()).
    pub fn fill(&self, buffer: &mut [u8], byte: u8) {
        // SAFETY: the slice has that many bytes.
        unsafe { fill(self.name, buffer.as_mut_ptr(), i32::from(byte), buffer.len()) };
    }

    /// As [`zero`](crate::zero()).
    ///
    /// ```
    /// let mut buffer = vec![1u8; 100_000];
    /// cachewise::site!("frame cleared").zero(&mut buffer);
    /// assert!(buffer.iter().all(|byte| *byte == 0));
    /// ```
    pub fn zero(&self, buffer: &mut [u8]) {
        // SAFETY: the slice has that many bytes.
        unsafe { zero(self.name, buffer.as_mut_ptr(), buffer.len()) };
    }

    /// As [`raw::copy_nonoverlapping`].
    ///
    /// # Safety
    /// Its contract.
    pub unsafe fn copy_nonoverlapping(&self, dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { copy(self.name, dst, src, n) }
    }

    /// As [`raw::copy`].
    ///
    /// # Safety
    /// Its contract.
    pub unsafe fn copy_overlapping(&self, dst: *mut u8, src: *const u8, n: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { r#move(self.name, dst, src, n) }
    }

    /// The site's state for that operation and for sizes in `n`'s octave. `None` if there was no
    /// such call yet, if the profile has only one kind of stores at this size, or while another
    /// thread updates the site.
    ///
    /// ```
    /// use cachewise::SiteOutcome;
    /// use cachewise_kernels::Operation;
    ///
    /// let site = cachewise::site!("never called");
    /// assert!(site.state(Operation::Copy, 1 << 20).is_none());
    /// assert_eq!(SiteOutcome::NonTemporal.name(), "nt");
    /// ```
    #[must_use]
    pub fn state(&self, operation: Operation, n: usize) -> Option<SiteState> {
        state(self.name, operation, n)
    }
}

/// Why sites were not saved.
#[cfg(all(feature = "os", target_os = "linux"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SaveError(crate::programs::Problem);

#[cfg(all(feature = "os", target_os = "linux"))]
impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sites not saved: {}", self.0)
    }
}

#[cfg(all(feature = "os", target_os = "linux"))]
impl core::error::Error for SaveError {}

/// Saves what the sites have learned in the program's section, from which the next process starts:
/// the file that `CACHEWISE_PROGRAM` names, else the user's for this program, beside the profile.
/// Results that other processes saved meanwhile are kept. Does nothing if no site had a large call.
///
/// A service calls it now and then, other programs before they end. It reads and writes a file, and
/// waits up to half a second if other processes are saving; it is async-signal-safe.
///
/// # Errors
/// The file cannot be read or written, is damaged, or another CPU's; nothing was changed then.
#[cfg(all(feature = "os", target_os = "linux"))]
pub fn save_sites() -> Result<(), SaveError> {
    learner::save().map_err(SaveError)
}

macro_rules! operations {
    ($($name:ident($($argument:ident: $type:ty),*) = $at:literal, $functions:ident, $raw:ident;)*) => {$(
        /// As `raw` has it, at a site.
        ///
        /// # Safety
        /// As there.
        #[doc(hidden)]
        pub unsafe fn $name(name: Name<'_>, $($argument: $type,)* n: usize) -> *mut u8 {
            #[cfg(all(feature = "os", target_os = "linux"))]
            if n >= LARGE {
                let slot = learner::slot(name, $at, n);
                let kernel = crate::dispatch::$functions.get(slot).copied();
                // Slot 0 is the function that fills the table.
                let kernel = kernel.unwrap_or(crate::dispatch::$functions[0]);
                // SAFETY: the caller's promise; the table holds kernels that this CPU can run.
                return unsafe { kernel($($argument,)* n) };
            }
            let _ = name;
            // SAFETY: the caller's promise.
            unsafe { raw::$raw($($argument,)* n) }
        }
    )*};
}

operations! {
    copy(dst: *mut u8, src: *const u8) = 0, COPY, copy_nonoverlapping;
    r#move(dst: *mut u8, src: *const u8) = 1, MOVE, copy;
    fill(dst: *mut u8, byte: i32) = 2, FILL, fill;
    zero(dst: *mut u8) = 3, ZERO, zero;
}

/// See [`Site::state`].
#[doc(hidden)]
#[must_use]
pub fn state(name: Name<'_>, operation: Operation, n: usize) -> Option<SiteState> {
    #[cfg(all(feature = "os", target_os = "linux"))]
    return learner::state(name, operation, n);
    #[cfg(not(all(feature = "os", target_os = "linux")))]
    {
        let _ = (name, operation, n);
        None
    }
}
