//! Files that are read, replaced and locked, and memory for a while.

use super::statistics::{Failed, checked, close, give_back, open_to_append, pages};
use core::ffi::{CStr, c_int};
use core::{mem, slice};

/// Runs `body`, then sets `errno` back: `memcpy` does not change it.
pub(crate) fn preserving_errno(body: impl FnOnce()) {
    // SAFETY: always callable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: libc's promise: a valid place for the calling thread.
    let before = unsafe { *place };
    body();
    // SAFETY: as above.
    unsafe { *place = before };
}

/// Zeroed bytes, given back when dropped.
pub(crate) struct Mapped {
    start: *mut u8,
    length: usize,
}

impl Mapped {
    pub(crate) fn new(length: usize) -> Option<Mapped> {
        pages(length).map(|start| Mapped { start, length })
    }

    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `pages` gave that many zeroed bytes; the borrow is exclusive.
        unsafe { slice::from_raw_parts_mut(self.start, self.length) }
    }

    /// Keeps them for the life of the process.
    pub(crate) fn leak(self) -> &'static mut [u8] {
        let (start, length) = (self.start, self.length);
        mem::forget(self);
        // SAFETY: as in `bytes`, and nobody gives them back.
        unsafe { slice::from_raw_parts_mut(start, length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: ours, and no borrow is left.
        unsafe { give_back(self.start, self.length) };
    }
}

/// A list that does not grow beyond what it was made for.
pub(crate) struct List<T: Copy> {
    memory: Mapped,
    length: usize,
    capacity: usize,
    of: core::marker::PhantomData<T>,
}

impl<T: Copy> List<T> {
    pub(crate) fn new(capacity: usize) -> Option<List<T>> {
        let memory = Mapped::new(capacity * size_of::<T>())?;
        Some(List { memory, length: 0, capacity, of: core::marker::PhantomData })
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
pub(crate) fn read_file(path: &CStr, into: &mut [u8]) -> Result<usize, Failed> {
    // Non-blocking, so that a pipe of that name does not stop the program.
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: the path ends in NUL; the call reads nothing else of ours.
    let file = checked(unsafe {
        libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0)
    })? as c_int;
    let mut length = 0;
    let mut result = Ok(());
    while let Some(free) = into.get_mut(length..).filter(|free| !free.is_empty()) {
        // SAFETY: `free` is writable for its length.
        let read = unsafe { libc::syscall(libc::SYS_read, file, free.as_mut_ptr(), free.len()) };
        match checked(read) {
            Ok(0) => break,
            Ok(bytes) => length += bytes,
            Err(error) if error.is_interruption() => {}
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    close(file);
    result.map(|()| length)
}

/// Takes a file's lock, waiting for so many milliseconds at most; closing it gives it back.
pub(crate) fn lock(file: c_int, patience: u32) -> bool {
    for _ in 0..=patience / 10 {
        // SAFETY: no memory of ours.
        let locked = unsafe { libc::syscall(libc::SYS_flock, file, libc::LOCK_EX | libc::LOCK_NB) };
        if locked == 0 {
            return true;
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        // SAFETY: `pause` is readable; what is left of it is not asked for.
        unsafe { libc::syscall(libc::SYS_nanosleep, &pause, 0) };
    }
    false
}

/// Writes a file under a new name and puts it in place of the old one; nothing is changed where any
/// step fails.
pub(crate) fn replace(path: &CStr, new: &CStr, content: &[u8]) -> Option<()> {
    let file = open_to_append(new).ok()?;
    let mut rest = content;
    while !rest.is_empty() {
        // SAFETY: `rest` is readable for its length.
        let written = unsafe { libc::syscall(libc::SYS_write, file, rest.as_ptr(), rest.len()) };
        match checked(written) {
            Ok(bytes) if bytes > 0 => rest = rest.get(bytes..)?,
            Err(error) if error.is_interruption() => {}
            _ => break,
        }
    }
    close(file);
    if rest.is_empty() {
        // SAFETY: both paths end in NUL.
        let renamed = unsafe {
            libc::syscall(
                libc::SYS_renameat2,
                libc::AT_FDCWD,
                new.as_ptr(),
                libc::AT_FDCWD,
                path.as_ptr(),
                0,
            )
        };
        if renamed == 0 {
            return Some(());
        }
    }
    // SAFETY: the path ends in NUL; the file is the one made above.
    unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, new.as_ptr(), 0) };
    None
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

/// The time of day, for people.
pub(crate) fn seconds_since_1970() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable for a timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut time) };
    time.tv_sec as u64
}
