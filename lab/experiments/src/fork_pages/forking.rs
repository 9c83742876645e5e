//! The kernel's own page copies: a process that forks, has the child use a buffer, and waits.
//!
//! Seed 000's workload is `alloc(buf); for(;;) { fork(); use(buf); }`. Forking a process that has
//! threads leaves the child with the locks of threads that are gone, so the loop runs in a fresh
//! process with one thread, a [helper](crate::helper), which the experiment starts ([`Forker`]) and asks
//! for loops.

use super::counted::{self, Counted};
use crate::bench::Call;
use crate::helper::{Helper, Request};
use crate::names::FORK;
use cachewise_kernels::PAGE_SIZE;
use cachewise_measure::{Reader, children::usage};
use memmap2::{Advice, MmapMut};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;
use std::path::Path;
use std::time::Duration;

/// The loops, in the process that forks.
#[derive(Default)]
pub(crate) struct Looper {
    buffer: Option<Buffer>,
}

impl Looper {
    /// Forks so often, each child sleeping for `asleep` at its end, and returns the children's page faults.
    pub(crate) fn run(&mut self, bytes: usize, loops: u64, asleep: Duration) -> io::Result<i64> {
        if std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count) != 1 {
            return Err(io::Error::other("only a process with one thread may fork and go on"));
        }
        let kept = self.buffer.take().filter(|buffer| buffer.asked == bytes);
        let mut buffer = kept.map_or_else(|| Buffer::new(bytes), Ok)?;
        // The sum over all children waited for so far.
        let faults = || usage(libc::RUSAGE_CHILDREN).ru_minflt;
        let before = faults();
        (0..loops).try_for_each(|_| fork_and_use(&mut buffer, asleep))?;
        self.buffer = Some(buffer);
        Ok(faults() - before)
    }
}

/// A private mapping of base pages, every byte of them written.
struct Buffer {
    pages: MmapMut,
    asked: usize,
}

impl Buffer {
    fn new(asked: usize) -> io::Result<Buffer> {
        let mut pages = MmapMut::map_anon(asked.next_multiple_of(PAGE_SIZE))?;
        // One huge page would be copied, or split, as a whole: another experiment's question.
        let _ = pages.advise(Advice::NoHugePage);
        let mut random = fastrand::Rng::with_seed(0x0F0C);
        pages.fill_with(|| random.u8(1..));
        Ok(Buffer { pages, asked })
    }

    /// Seed 000.11: touch byte 0 of each page, then read every 32nd byte. Allocates nothing.
    fn use_it(&mut self) {
        for page in self.pages.chunks_mut(PAGE_SIZE) {
            // SAFETY: the first byte of a page that is borrowed here.
            unsafe { page.as_mut_ptr().write_volatile(1) };
        }
        // SAFETY: the mapping is that long and was written.
        unsafe { Reader::every(self.pages.as_mut_ptr(), self.pages.len(), 32) };
    }
}

/// One loop of seed 000: fork, have the child copy what it writes, wait for it.
fn fork_and_use(buffer: &mut Buffer, asleep: Duration) -> io::Result<()> {
    // SAFETY: the process has one thread (serve checks), so the child inherits no lock that nobody
    // will release; until it ends it neither allocates nor takes one.
    let child = unsafe { libc::fork() };
    match child {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            buffer.use_it();
            if !asleep.is_zero() {
                std::thread::sleep(asleep);
            }
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

pub struct Forker {
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
        let mut helper = Helper::start(program)?;
        helper.ask::<i64>(&Request::fork(buffer, 1))?;
        Ok(Forker { helper, buffer, loops: 0, faults: 0 })
    }

    /// The candidate. Places count, and nothing else: the child has a buffer of its own.
    pub(crate) fn candidate(&mut self) -> Call<'_> {
        Call::new(FORK, |places| {
            let (buffer, loops) = (self.buffer, places.len() as u64);
            let faults = self.helper.ask_or_keep::<i64>(&Request::fork(buffer, loops));
            self.loops += faults.map_or(0, |_| loops);
            self.faults += faults.unwrap_or(0);
        })
    }

    /// Counts the pages of one more loop.
    ///
    /// # Errors
    /// When the child cannot be read while it sleeps.
    pub(crate) fn count(&mut self) -> io::Result<Counted> {
        let asleep_ms = counted::ASLEEP.as_millis() as u64;
        let request = Request::Fork { buffer: self.buffer, loops: 1, asleep_ms };
        let (faults, counted) = self.helper.ask_beside::<i64, _>(&request, counted::of_child)?;
        faults.and(counted)
    }

    /// Page faults per loop so far; none before the first.
    pub fn faults_per_loop(&self) -> Option<f64> {
        (self.loops > 0).then(|| self.faults as f64 / self.loops as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_whole_pages_and_used_as_the_seed_says() {
        let mut buffer = Buffer::new(PAGE_SIZE + 1).expect("two pages");
        assert!(buffer.pages.len() == 2 * PAGE_SIZE && !buffer.pages.contains(&0));
        buffer.use_it();
        assert_eq!([buffer.pages[0], buffer.pages[PAGE_SIZE]], [1, 1]);
    }
}
