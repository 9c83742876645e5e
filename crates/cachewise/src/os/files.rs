//! Files that are read whole, paths, clocks, and lists in pages: what keeping a program's section
//! asks of Linux beside `saving.rs`.

use super::{Errno, File, Scratch, checked};
use core::ffi::{CStr, c_int};
use core::fmt::Write as _;
use core::{mem, slice};

/// A list that does not grow beyond what it was made for.
pub(crate) struct List<T: Copy> {
    memory: Scratch,
    length: usize,
    capacity: usize,
    of: core::marker::PhantomData<T>,
}

impl<T: Copy> List<T> {
    pub(crate) fn new(capacity: usize) -> Result<List<T>, Errno> {
        let memory = Scratch::new(capacity.max(1) * size_of::<T>())?;
        Ok(List { memory, length: 0, capacity, of: core::marker::PhantomData })
    }

    /// Adds an item; one too many is dropped.
    pub(crate) fn push(&mut self, item: T) {
        if self.length < self.capacity {
            let place = self.memory.start.cast::<T>().wrapping_add(self.length);
            // SAFETY: inside the mapping, which begins at a page and so is aligned for a T.
            unsafe { place.write(item) };
            self.length += 1;
        }
    }

    pub(crate) fn items(&self) -> &[T] {
        // SAFETY: so many were written, and `&self` keeps the mapping.
        unsafe { slice::from_raw_parts(self.memory.start.cast(), self.length) }
    }

    /// Keeps them for the life of the process.
    pub(crate) fn leak(self) -> &'static [T] {
        let (start, length) = (self.memory.start.cast(), self.length);
        mem::forget(self);
        // SAFETY: so many were written, and nobody gives them back.
        unsafe { slice::from_raw_parts(start, length) }
    }
}

/// Reads a file until it ends or `into` is full; the number of bytes.
pub(crate) fn read_file(path: &CStr, into: &mut [u8]) -> Result<usize, Errno> {
    File::open(path)?.read(into)
}

/// Does nothing for so many nanoseconds, or until a signal comes.
pub(crate) fn pause(nanoseconds: core::ffi::c_long) {
    let pause = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    // SAFETY: `pause` is readable; what is left of it is not asked for.
    unsafe { libc::syscall(libc::SYS_nanosleep, &pause, 0) };
}

/// Takes a file away.
pub(crate) fn remove(path: &CStr) -> Result<(), Errno> {
    // SAFETY: the path ends in NUL.
    let removed = unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, path.as_ptr(), 0) };
    checked(removed).map(|_| ())
}

/// Makes a directory of the first `length` bytes of a path; it may be there.
pub(crate) fn make_directory(path: &mut [u8], length: usize) {
    let Some(place) = path.get_mut(length) else { return };
    let kept = mem::replace(place, 0);
    // SAFETY: a NUL was just put behind the path.
    unsafe { libc::syscall(libc::SYS_mkdirat, libc::AT_FDCWD, path.as_ptr(), 0o755) };
    if let Some(place) = path.get_mut(length) {
        *place = kept;
    }
}

/// The absolute path of a relative one, in `into`; ends in NUL.
pub fn absolute<'a>(path: &CStr, into: &'a mut [u8]) -> Option<&'a CStr> {
    let mut length = 0;
    if !path.to_bytes().starts_with(b"/") {
        // SAFETY: `into` is writable for its length.
        let call = unsafe { libc::syscall(libc::SYS_getcwd, into.as_mut_ptr(), into.len()) };
        // The length counts the NUL, in whose place the slash goes.
        length = checked(call).ok()?;
        *into.get_mut(length.checked_sub(1)?)? = b'/';
    }
    let path = path.to_bytes_with_nul();
    into.get_mut(length..)?.get_mut(..path.len())?.copy_from_slice(path);
    CStr::from_bytes_until_nul(into).ok()
}

/// The path of the program; empty where it cannot be had.
pub fn program(into: &mut [u8]) -> &[u8] {
    let path = link(c"/proc/self/exe", into);
    // A file that was replaced meanwhile, by a new version mostly.
    path.strip_suffix(b" (deleted)").unwrap_or(path)
}

/// The path of the file that was executed, behind all links: the script where there was one, else
/// the program. To be asked early: a relative path means another file once the program has gone
/// elsewhere.
pub(crate) fn executed(into: &mut [u8]) -> &[u8] {
    // SAFETY: always callable; reads the auxiliary vector.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const core::ffi::c_char;
    if !name.is_null() {
        // SAFETY: the kernel's promise: a string that ends in NUL, for the process's life.
        let name = unsafe { CStr::from_ptr(name) };
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        if let Ok(file) = File::open_with(libc::AT_FDCWD, name, flags, 0) {
            let mut path = [0; 32];
            let mut path = crate::cursor::Cursor::new(&mut path);
            // 26 bytes at most, and zeros behind them.
            let _ = write!(path, "/proc/self/fd/{}\0", file.number());
            if let Ok(path) = CStr::from_bytes_with_nul(path.written())
                && link(path, &mut into[..]).starts_with(b"/")
            {
                return link(path, into);
            }
        }
    }
    program(into)
}

/// Where a link leads.
fn link<'a>(path: &CStr, into: &'a mut [u8]) -> &'a [u8] {
    link_in(libc::AT_FDCWD, path, into)
}

/// The same in an opened directory.
pub(crate) fn link_in<'a>(directory: c_int, path: &CStr, into: &'a mut [u8]) -> &'a [u8] {
    // SAFETY: the path ends in NUL, and `into` is writable for its length.
    let length = unsafe {
        libc::syscall(libc::SYS_readlinkat, directory, path.as_ptr(), into.as_mut_ptr(), into.len())
    };
    into.get(..checked(length).unwrap_or(0)).unwrap_or(&[])
}

/// The time of day, for people.
pub(crate) fn seconds_since_1970() -> u64 {
    clock(libc::CLOCK_REALTIME) / 1_000_000_000
}

/// Nanoseconds of a clock that never goes back, by the vDSO where there is one.
pub(crate) fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable for a timespec.
    unsafe { libc::clock_gettime(which, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Zeroed pages for the life of the process, that every forked child finds zeroed again.
pub(crate) fn pages_of_each_process(length: usize) -> Result<*mut u8, Errno> {
    let pages = Scratch::new(length)?.leak();
    // SAFETY: the mapping is ours. Where the kernel is older than 4.14, a child finds its parent's
    // bytes.
    unsafe { libc::madvise(pages.as_mut_ptr().cast(), length, libc::MADV_WIPEONFORK) };
    Ok(pages.as_mut_ptr())
}
