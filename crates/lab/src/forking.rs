//! The kernel's own page copies: a process that forks, has the child use a buffer, and waits.
//!
//! Seed 000's workload is `alloc(buf); for(;;) { fork(); use(buf); }`. Forking a process that has
//! threads leaves the child with the locks of threads that are gone, so the loop runs in a fresh
//! process with one thread, a [helper](crate::helper), which the experiment starts ([`Forker`]) and asks
//! for loops.

use crate::helper::{Helper, Request};
use cachewise_kernels::PAGE_SIZE;
use cachewise_measure::record::names::FORK;
use cachewise_measure::{Candidate, Place, Reader, children::usage};
use rustix::io::retry_on_intr;
use rustix::mm::{self, MapFlags, ProtFlags};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;
use std::path::Path;

/// The loops, in the process that forks.
#[derive(Default)]
pub(crate) struct Looper {
    buffer: Option<Buffer>,
}

impl Looper {
    /// Forks so often and says which page faults the children had.
    pub(crate) fn run(&mut self, bytes: usize, loops: u64) -> io::Result<i64> {
        if std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count) != 1 {
            return Err(io::Error::other("only a process with one thread may fork and go on"));
        }
        let kept = self.buffer.take().filter(|buffer| buffer.asked == bytes);
        let buffer = match kept {
            Some(buffer) => buffer,
            None => Buffer::new(bytes)?,
        };
        // Of all children waited for so far.
        let faults = || usage(libc::RUSAGE_CHILDREN).ru_minflt;
        let before = faults();
        (0..loops).try_for_each(|_| fork_and_use(&buffer))?;
        self.buffer = Some(buffer);
        Ok(faults() - before)
    }
}

/// A private mapping of base pages, every one of them written.
struct Buffer {
    start: *mut u8,
    bytes: usize,
    asked: usize,
}

impl Buffer {
    fn new(bytes: usize) -> io::Result<Buffer> {
        let asked = bytes;
        let bytes = bytes.max(1).next_multiple_of(PAGE_SIZE);
        // SAFETY: a fresh private mapping at an address of the kernel's choice overlaps nothing.
        let start = unsafe {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            mm::mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE)
        }?;
        // One huge page would be copied, or split, as a whole: another experiment's question.
        // SAFETY: the mapping is ours, and the advice does not change its contents.
        let _ = unsafe { mm::madvise(start, bytes, mm::Advice::LinuxNoHugepage) };
        let start = start.cast::<u8>();
        let mut random = fastrand::Rng::with_seed(0x0F0C);
        for at in 0..bytes {
            // SAFETY: inside the mapping.
            unsafe { start.wrapping_add(at).write(random.u8(1..)) };
        }
        Ok(Buffer { start, bytes, asked })
    }

    /// Seed 000.11: touch byte 0 of each page, then read every 32nd byte. Allocates nothing.
    fn use_it(&self) {
        for page in 0..self.bytes / PAGE_SIZE {
            let first = self.start.wrapping_add(page * PAGE_SIZE);
            // SAFETY: inside the mapping.
            unsafe { first.write_volatile(1) };
        }
        // SAFETY: the mapping is that long and was written.
        unsafe { Reader::every(self.start, self.bytes, 32) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and nobody has a pointer into it.
        let _ = unsafe { mm::munmap(self.start.cast(), self.bytes) };
    }
}

/// One loop of seed 000: fork, have the child copy what it writes, wait for it.
fn fork_and_use(buffer: &Buffer) -> io::Result<()> {
    // SAFETY: the process has one thread (serve checks), so the child inherits no lock that nobody
    // will release; until it ends it neither allocates nor takes one.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            buffer.use_it();
            // SAFETY: ends the child without running the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => {
            let child = Pid::from_raw(child);
            let waited = retry_on_intr(|| waitpid(child, WaitOptions::empty()))?;
            match waited.and_then(|(_, status)| status.exit_status()) {
                Some(0) => Ok(()),
                _ => Err(io::Error::other(format!("a forked child ended with {waited:?}"))),
            }
        }
    }
}

/// The candidate: a child process that forks.
pub struct Forker {
    /// The child.
    pub(crate) helper: Helper,
    buffer: usize,
    loops: u64,
    faults: i64,
}

impl Forker {
    /// Starts a helper of the program and has it fork once.
    ///
    /// # Errors
    /// When it cannot be started or does not answer.
    pub fn start(program: &Path, buffer: usize) -> io::Result<Forker> {
        let mut helper = Helper::start(program, None)?;
        helper.ask::<i64>(&Request::Fork { buffer, loops: 1 })?;
        Ok(Forker { helper, buffer, loops: 0, faults: 0 })
    }

    /// Page faults per loop so far; none before the first.
    pub fn faults_per_loop(&self) -> Option<f64> {
        (self.loops > 0).then(|| self.faults as f64 / self.loops as f64)
    }
}

impl Candidate for Forker {
    fn name(&self) -> &str {
        FORK
    }

    fn call(&mut self, place: &Place) {
        self.call_all(std::slice::from_ref(place));
    }

    /// The places count, and nothing else: the child has a buffer of its own.
    fn call_all(&mut self, places: &[Place]) {
        let (buffer, loops) = (self.buffer, places.len() as u64);
        let faults = self.helper.ask_or_keep::<i64>(&Request::Fork { buffer, loops });
        self.loops += faults.map_or(0, |_| loops);
        self.faults += faults.unwrap_or(0);
    }

    fn stays(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_whole_pages_and_used_as_the_seed_says() {
        let buffer = Buffer::new(PAGE_SIZE + 1).expect("two pages");
        assert_eq!(buffer.bytes, 2 * PAGE_SIZE);
        buffer.use_it();
        for page in 0..2 {
            // SAFETY: inside the buffer.
            let first = unsafe { buffer.start.wrapping_add(page * PAGE_SIZE).read() };
            assert_eq!(first, 1);
        }
    }
}
