//! Source and destination are files in memory whose pages a program uses in random order, as a kernel meets the
//! pages of a large buffer. Three ways copy all of them: one call for each page; one call over two lines into which
//! the pages were mapped before, in order, which is timed with it; and that call alone.
//!
//! A process pays a system call and an entry of its list of mappings for each page, a kernel an entry of a page table.
//! So the second way is at least what a kernel pays, and the third is less than it can pay.

use crate::prelude::*;
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::os::fd::AsFd as _;
use std::ptr::null_mut;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "mapped",
    about: "scattered pages copied page by page, or mapped into a line and copied by one call",
    seeds: &["002.33"],
    operations: &[Operation::Copy],
    takes: &["--size"],
    figures,
    run: Some(run),
    ..super::STUDY
};

/// The state of its rows.
const STATE: &str = "scattered pages";
const BY_PAGES: &str = "a call for each page";
const MAPPED: &str = "mapped, then one call";
const ONE_CALL: &str = "one call, mapped before";
/// Bytes that each sample copies at least: small copies are repeated.
const LEAST: usize = 4 << 20;

fn figures() -> Vec<Figure> {
    vec![Figure::curve("Copying scattered pages", "size", "ns")]
}

/// An area of so many pages, unmapped at the end.
struct Area {
    start: *mut u8,
    bytes: usize,
}

impl Area {
    fn of(file: &File, bytes: usize) -> std::io::Result<Area> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: at an address of the kernel's choice.
        let start = unsafe { rustix::mm::mmap(null_mut(), bytes, access, flags, file.as_fd(), 0) }?;
        Ok(Area { start: start.cast(), bytes })
    }

    /// Maps the file's pages over it, the n-th of the order at the n-th place.
    fn line_up(&self, file: &File, order: &[usize]) -> std::io::Result<()> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE | MapFlags::FIXED;
        for (nth, page) in order.iter().enumerate() {
            let (at, offset) = (self.page(nth).cast(), (page * PAGE_SIZE) as u64);
            // SAFETY: inside this area, which nothing else uses.
            unsafe { rustix::mm::mmap(at, PAGE_SIZE, access, flags, file.as_fd(), offset) }?;
        }
        Ok(())
    }

    fn page(&self, nth: usize) -> *mut u8 {
        self.start.wrapping_add(nth * PAGE_SIZE)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: mapped by `of`, and no pointer into it is left.
        let unmapped = unsafe { rustix::mm::munmap(self.start.cast(), self.bytes) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// One operand: a file in memory, all of it mapped as it lies, and the order of its pages.
struct Operand {
    file: File,
    whole: Area,
    order: Vec<usize>,
}

impl Operand {
    fn new(size: usize, random: &mut fastrand::Rng) -> std::io::Result<Operand> {
        let file = File::from(rustix::fs::memfd_create("cachewise-mapped", MemfdFlags::CLOEXEC)?);
        file.set_len(size as u64)?;
        let whole = Area::of(&file, size)?;
        // SAFETY: mapped above, by nobody else.
        random.fill(unsafe { std::slice::from_raw_parts_mut(whole.start, size) });
        let mut order: Vec<usize> = (0..size / PAGE_SIZE).collect();
        random.shuffle(&mut order);
        Ok(Operand { file, whole, order })
    }

    fn line(&self) -> std::io::Result<Area> {
        let line = Area::of(&self.file, self.whole.bytes)?;
        line.line_up(&self.file, &self.order)?;
        Ok(line)
    }

    /// The address of the n-th page of its order.
    fn scattered(&self, nth: usize) -> *mut u8 {
        self.whole.page(self.order[nth])
    }
}

fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: mapped pages of two files, which do not overlap.
    unsafe { libc::memcpy(dst.cast(), src.cast(), bytes) };
}

/// Copies by one way, so many times.
fn copied(
    way: &str,
    [src, dst]: [&Operand; 2],
    lines: [&Area; 2],
    times: usize,
) -> std::io::Result<()> {
    let size = src.whole.bytes;
    for _ in 0..times {
        match way {
            BY_PAGES => (0..size / PAGE_SIZE)
                .for_each(|nth| copy(dst.scattered(nth), src.scattered(nth), PAGE_SIZE)),
            MAPPED => {
                let [from, to] = [src.line()?, dst.line()?];
                copy(to.start, from.start, size);
            }
            _ => copy(lines[1].start, lines[0].start, size),
        }
    }
    Ok(())
}

fn run(setting: &mut Setting) -> Result {
    setting.whole("pages", PAGE_SIZE)?;
    let own = if setting.options.quick {
        vec![64 << 10, 16 << 20]
    } else {
        vec![64 << 10, 1 << 20, 16 << 20, 64 << 20]
    };
    let sizes = setting.sizes_or(own);
    setting.through(sizes, alike, |setting, size| {
        let rows = rows(setting, size)?;
        setting.out.rows(rows)?;
        Ok(bytes(size))
    })
}

fn rows(setting: &Setting, size: usize) -> Result<Vec<Row>> {
    let failed = |error| LabError::Nothing(format!("{size} bytes of mapped pages: {error}"));
    let mut random = fastrand::Rng::with_seed(setting.bench.seed);
    let src = Operand::new(size, &mut random).map_err(failed)?;
    let dst = Operand::new(size, &mut random).map_err(failed)?;
    let lines = [src.line().map_err(failed)?, dst.line().map_err(failed)?];
    let times = (LEAST / size).max(1);
    let sample = &|clock: &Clock, way: &str| {
        let mut ended = Ok(());
        let took = clock.took(|| ended = copied(way, [&src, &dst], [&lines[0], &lines[1]], times));
        ended.map_err(failed)?;
        check(&src, &dst, way)?;
        Ok(took / times as f64)
    };
    let timed = [BY_PAGES, MAPPED, ONE_CALL].map(|way| Timed {
        cell: CellKey::new("copy", size, STATE),
        name: way.to_owned(),
        reference: 0,
        calls: times,
        take: Box::new(move |clock| sample(clock, way)),
    });
    setting.contest(timed.into(), None)
}

/// Compares both operands in their orders, and writes over the destination, so that the next way cannot rest on what
/// this one copied.
fn check(src: &Operand, dst: &Operand, way: &str) -> Result {
    for nth in 0..src.order.len() {
        // SAFETY: pages that are mapped for as long as the operands are there.
        let [from, to] = [src, dst]
            .map(|one| unsafe { std::slice::from_raw_parts(one.scattered(nth), PAGE_SIZE) });
        if from != to {
            return Err(LabError::WrongBytes(format!("{way}: page {nth} was not copied")));
        }
        // SAFETY: likewise, and the slices above are used no more.
        unsafe { dst.scattered(nth).write(!from[0]) };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_copies_every_page_in_its_order() {
        let mut random = fastrand::Rng::with_seed(3);
        let [src, dst] =
            [(); 2].map(|()| Operand::new(16 * PAGE_SIZE, &mut random).expect("memory"));
        let lines = [src.line().expect("a line"), dst.line().expect("a line")];
        for way in [BY_PAGES, MAPPED, ONE_CALL] {
            copied(way, [&src, &dst], [&lines[0], &lines[1]], 2).expect(way);
            check(&src, &dst, way).expect(way);
        }
        // The first byte of each page differs now.
        assert!(check(&src, &dst, "none").is_err());
    }
}
