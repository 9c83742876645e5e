//! Files that are read whole, locked and replaced, and lists in pages: what keeping a program's
//! section asks of Linux.

use super::{Errno, File, Scratch, checked};
use core::ffi::{CStr, c_int};
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

/// Opens a file to be written at its end, made where there is none; with `O_EXCL`, only there.
fn open_to_append(path: &CStr, exclusive: c_int) -> Result<File, Errno> {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    let flags = flags | libc::O_NOCTTY | libc::O_NONBLOCK | exclusive;
    // SAFETY: the path ends in NUL; the call reads nothing else of ours.
    let opened =
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o644) };
    checked(opened).map(File)
}

/// A file's lock, made where there is none, after waiting for so many milliseconds at most; dropping
/// it gives it back.
pub(crate) fn lock(path: &CStr, patience: u32) -> Result<Option<File>, Errno> {
    let file = open_to_append(path, 0)?;
    for _ in 0..=patience / 10 {
        // SAFETY: no memory of ours.
        let locked =
            unsafe { libc::syscall(libc::SYS_flock, file.0, libc::LOCK_EX | libc::LOCK_NB) };
        if locked == 0 {
            return Ok(Some(file));
        }
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
        // SAFETY: `pause` is readable; what is left of it is not asked for.
        unsafe { libc::syscall(libc::SYS_nanosleep, &pause, 0) };
    }
    Ok(None)
}

/// Writes a file under a new name and puts it in place of the old one; nothing is changed where any
/// step fails. What has the new name already is the rest of somebody who was killed meanwhile, and
/// goes; the caller holds a lock, so nobody is about to write it.
pub(crate) fn replace(path: &CStr, new: &CStr, content: &[u8]) -> Result<(), Errno> {
    // SAFETY: the path ends in NUL; that there is nothing to remove is no failure.
    let remove = || unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, new.as_ptr(), 0) };
    remove();
    let done = write_new(new, content).and_then(|()| rename(new, path));
    if done.is_err() {
        remove();
    }
    done
}

fn write_new(path: &CStr, content: &[u8]) -> Result<(), Errno> {
    let file = open_to_append(path, libc::O_EXCL)?;
    let mut rest = content;
    while !rest.is_empty() {
        // SAFETY: `rest` is readable for its length.
        let written = unsafe { libc::syscall(libc::SYS_write, file.0, rest.as_ptr(), rest.len()) };
        match checked(written) {
            Ok(0) => return Err(Errno(libc::EIO)),
            Ok(bytes) => rest = rest.get(bytes..).unwrap_or(&[]),
            Err(Errno(libc::EINTR)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn rename(from: &CStr, to: &CStr) -> Result<(), Errno> {
    let (here, flags): (c_int, c_int) = (libc::AT_FDCWD, 0);
    // SAFETY: both paths end in NUL.
    let renamed = unsafe {
        libc::syscall(libc::SYS_renameat2, here, from.as_ptr(), here, to.as_ptr(), flags)
    };
    checked(renamed).map(|_| ())
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
    // SAFETY: the path ends in NUL, and `into` is writable for its length.
    let length = unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            c"/proc/self/exe".as_ptr(),
            into.as_mut_ptr(),
            into.len(),
        )
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
