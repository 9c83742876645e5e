//! Pages that are there, and zero, when their fault comes: a file in memory that nobody else uses.
//! Its faults map a page and do not zero it, which is what prezeroing inside the kernel's own fault
//! could give at most (seed 003.14). What a fault on anonymous memory does besides zeroing, taking
//! a page and charging it to its control group, is left out too: hence "at most".

use crate::prelude::*;
use memmap2::{Advice, MmapMut, MmapOptions};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The file, as long as everything that is handed out.
pub(super) struct Ready {
    file: File,
    bytes: usize,
    /// CPU that zeroing it took, in nanoseconds.
    zeroing: AtomicU64,
}

impl Ready {
    pub(super) fn new(bytes: usize) -> Result<Ready> {
        let file = rustix::fs::memfd_create("cachewise-ready-pages", MemfdFlags::CLOEXEC);
        let file = File::from(file.map_err(out_of_memory("memfd_create"))?);
        file.set_len(bytes as u64).map_err(out_of_memory("a file in memory"))?;
        Ok(Ready { file, bytes, zeroing: AtomicU64::new(0) })
    }

    /// Brings every page in and zeroes it, with non-temporal stores as a scrubber does.
    pub(super) fn prepare(&self) -> Result {
        let mut all = self.map()?;
        let what = "MADV_POPULATE_WRITE of a file in memory";
        all.advise(Advice::PopulateWrite).map_err(out_of_memory(what))?;
        let begun = cachewise_measure::clock::thread_cpu_ns();
        // SAFETY: mapped, writable, that long, and used by nobody else.
        unsafe { cachewise::raw::zero_with(Reuse::Never, all.as_mut_ptr(), self.bytes) };
        let took = cachewise_measure::clock::thread_cpu_ns() - begun;
        self.zeroing.fetch_add(took as u64, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn zeroing(&self) -> Duration {
        Duration::from_nanos(self.zeroing.load(Ordering::Relaxed))
    }

    /// Maps all of it anew: the first touch of each page is a fault, of several neighbours at once
    /// where that is asked for and the first touch is a read.
    pub(super) fn map_for(&self, around: bool) -> Result<MmapMut> {
        let all = self.map()?;
        if !around {
            all.advise(Advice::Random).map_err(out_of_memory("MADV_RANDOM"))?;
        }
        Ok(all)
    }

    fn map(&self) -> Result<MmapMut> {
        debug_assert!(self.bytes.is_multiple_of(PAGE_SIZE), "whole pages");
        // SAFETY: a file of this process alone, whose length stays.
        let mapped = unsafe { MmapOptions::new().len(self.bytes).map_mut(&self.file) };
        mapped.map_err(out_of_memory("mapping a file in memory"))
    }
}

pub(super) fn out_of_memory<E: Into<io::Error>>(what: &str) -> impl Fn(E) -> LabError {
    move |error| LabError::Pool(format!("{what} beside it: {}", error.into()))
}
