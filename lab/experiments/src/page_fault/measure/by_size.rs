//! One fault by the size of the page that it brings (seed 003.14, 003.18).
//!
//! *Anonymous* memory and *shared* memory that is not there yet are zeroed by their fault; shared memory
//! that is there and zero is only mapped, which is what a kernel that zeroes ahead would give. Fresh shared
//! memory is the control: the same path, with the zeroing. Every page of a size lies in a mapping of its
//! own, so that the kernel can take no other size; whether it took that one is asked of its count of
//! faults. Sizes that the system does not give are left out, and a note says how it would.

use super::ready::out_of_memory;
use crate::backing::Backing;
use crate::prelude::*;
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use std::fs::File;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;

/// A fault on anonymous memory, which zeroes.
const ANONYMOUS: &str = "anonymous";
/// A fault on shared memory that is not there yet, which zeroes.
const SHARED_FRESH: &str = "shared, fresh";

/// 4 KiB to what a level of the page table maps.
const SIZES: [usize; 5] = [PAGE_SIZE, 64 << 10, 256 << 10, 1 << 20, HUGE_PAGE];
/// Bytes of a sample, and faults of it at least and at most.
const BYTES: usize = 32 << 20;
const FAULTS: (usize, usize) = (16, 1024);

/// The candidates, in the order of the rows.
const CANDIDATES: [&str; 3] = [ANONYMOUS, SHARED_FRESH, "shared, ready"];

/// Mappings of one size, each with a hole behind it, aligned to the largest size.
struct Chunks {
    start: *mut u8,
    reserved: usize,
    first: *mut u8,
    size: usize,
    count: usize,
}

impl Chunks {
    fn new(size: usize, count: usize, file: Option<&File>) -> std::io::Result<Chunks> {
        let reserved = 2 * size * count + HUGE_PAGE;
        let (none, private) = (ProtFlags::empty(), MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: at an address of the kernel's choice.
        let start =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), reserved, none, private) }?;
        let start = start.cast::<u8>();
        let first = start.wrapping_add(start.align_offset(HUGE_PAGE));
        let chunks = Chunks { start, reserved, first, size, count };
        for index in 0..count {
            let at = chunks.chunk(index);
            if let Some(file) = file {
                let (access, fixed) =
                    (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
                let offset = (2 * size * index) as u64;
                // SAFETY: inside the reservation above, which nobody else uses.
                unsafe { rustix::mm::mmap(at.cast(), size, access, fixed, file.as_fd(), offset) }?;
            } else {
                let access = MprotectFlags::READ | MprotectFlags::WRITE;
                // SAFETY: inside the reservation above, which nobody else uses.
                unsafe { rustix::mm::mprotect(at.cast(), size, access) }?;
            }
            let wanted =
                if size > PAGE_SIZE { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
            // SAFETY: mapped above. Refused where the kernel has no such pages, and then none are taken.
            let _ = unsafe { rustix::mm::madvise(at.cast(), size, wanted) };
        }
        Ok(chunks)
    }

    fn chunk(&self, index: usize) -> *mut u8 {
        self.first.wrapping_add(2 * self.size * index)
    }

    /// Writes a byte of each.
    fn touch(&self) {
        for index in 0..self.count {
            // SAFETY: mapped and writable.
            unsafe { self.chunk(index).write_volatile(1) };
        }
    }

    /// Writes a byte of every page of the first one: the faults that this takes, and whether all other
    /// bytes of it were zero.
    fn rest(&self) -> (u64, bool) {
        let first = self.chunk(0);
        // SAFETY: mapped, and zero or written.
        let bytes = unsafe { std::slice::from_raw_parts_mut(first, self.size) };
        let before = faults();
        bytes.iter_mut().step_by(PAGE_SIZE).for_each(|byte| *byte = 1);
        let more = faults() - before;
        let is_zero = |(at, byte): (usize, &u8)| *byte == 0 || at.is_multiple_of(PAGE_SIZE);
        (more, bytes.iter().enumerate().all(is_zero))
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        // SAFETY: the reservation and all that was mapped over it, of which nobody has a pointer.
        let unmapped = unsafe { rustix::mm::munmap(self.start.cast(), self.reserved) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

fn faults() -> u64 {
    cachewise_measure::children::usage(libc::RUSAGE_THREAD).ru_minflt as u64
}

/// A file in memory of pages as large as they can be: on a file system of its own, which no path leads to,
/// where this process may mount one.
fn file(bytes: usize) -> std::io::Result<File> {
    let own = || -> std::io::Result<OwnedFd> {
        let system = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        rustix::mount::fsconfig_set_string(system.as_fd(), "huge", "always")?;
        rustix::mount::fsconfig_create(system.as_fd())?;
        let (close, plain) = (FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty());
        let root = rustix::mount::fsmount(system.as_fd(), close, plain)?;
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(root, ".", flags, Mode::RUSR | Mode::WUSR)?)
    };
    let given = |_| rustix::fs::memfd_create("cachewise-pages", MemfdFlags::CLOEXEC);
    let file = File::from(own().or_else(given)?);
    file.set_len(bytes as u64)?;
    Ok(file)
}

/// One size and one candidate.
struct One {
    name: &'static str,
    size: usize,
    count: usize,
    file: Option<File>,
}

impl One {
    /// None where the system gives no pages of that size.
    fn new(name: &'static str, size: usize) -> Result<Option<One>> {
        let count = (BYTES / size).clamp(FAULTS.0, FAULTS.1);
        let failed = out_of_memory("pages of one size");
        let file =
            if name == ANONYMOUS { None } else { Some(file(2 * size * count).map_err(&failed)?) };
        let mut one = One { name, size, count, file };
        let chunks = one.chunks()?;
        chunks.touch();
        let (more, is_zero) = chunks.rest();
        if !is_zero {
            return Err(LabError::WrongBytes(format!(
                "{name}: a fresh page of {} is not zero",
                bytes(size)
            )));
        }
        drop(chunks);
        if more > 0 {
            return Ok(None);
        }
        one.zero_again()?;
        Ok(Some(one))
    }

    fn chunks(&self) -> Result<Chunks> {
        Chunks::new(self.size, self.count, self.file.as_ref())
            .map_err(out_of_memory("pages of one size"))
    }

    /// Makes what was written zero again; a fresh candidate's memory is gone.
    fn zero_again(&mut self) -> Result {
        let failed = out_of_memory("a file in memory");
        let Some(file) = &self.file else { return Ok(()) };
        if self.name == SHARED_FRESH {
            file.set_len(0).map_err(&failed)?;
            return file.set_len((2 * self.size * self.count) as u64).map_err(&failed);
        }
        let pages = (0..self.count * self.size / PAGE_SIZE).map(|page| {
            let (chunk, within) = (page * PAGE_SIZE / self.size, page * PAGE_SIZE % self.size);
            (2 * self.size * chunk + within) as u64
        });
        for at in pages {
            file.write_all_at(&[0], at).map_err(&failed)?;
        }
        Ok(())
    }

    /// A sample: what a fault takes.
    fn sample(&mut self, clock: &Clock) -> Result<f64> {
        let chunks = self.chunks()?;
        let took = clock.took(|| chunks.touch());
        drop(chunks);
        self.zero_again()?;
        Ok(took / self.count as f64)
    }
}

/// A row for each candidate and size.
pub(super) fn rows(setting: &mut Setting) -> Result<Vec<Row>> {
    let mut all = Vec::new();
    let mut left_out = Vec::new();
    for size in SIZES {
        let of_size = CANDIDATES.map(|name| One::new(name, size));
        let of_size = of_size.into_iter().collect::<Result<Vec<Option<One>>>>()?;
        if of_size[0].is_none() || of_size[2].is_none() {
            left_out.push(bytes(size));
        } else {
            all.extend(of_size.into_iter().flatten());
        }
    }
    if !left_out.is_empty() {
        setting.out.note(format!(
            "faults of {} left out: the system gives no such pages, anonymous and shared; \
             /sys/kernel/mm/transparent_hugepage/hugepages-*kB/enabled (madvise) and shmem_enabled (advise) would",
            left_out.join(", ")
        ))?;
    }
    let of_size = |size| all.iter().position(|one: &One| one.size == size).unwrap_or(0);
    let references: Vec<usize> = all.iter().map(|one| of_size(one.size)).collect();
    let timed = all.iter_mut().zip(references).map(|(one, reference)| Timed {
        cell: CellKey::new("zero", one.size, FAULT_BY_SIZE),
        name: one.name.to_owned(),
        reference,
        calls: one.count,
        take: Box::new(|clock| one.sample(clock)),
    });
    let mut backing = Backing::new(BYTES);
    let rows = setting.contest(timed.collect(), Some(&mut backing))?;
    backing.note("faults by size").into_iter().try_for_each(|note| setting.out.note(note))?;
    Ok(rows)
}
