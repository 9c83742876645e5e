//! The pages that one fork zeroes and copies, read from outside while its child sleeps (proc(5), `pagemap`).
//!
//! After a fork both processes map the same pages. A page that either of them has written is copied, and then each
//! maps one alone; one that was not there before is zeroed. So the entries of both, address by address, say which was
//! done. What the kernel zeroes for itself, a stack for example, is not among them, but for page tables.

use cachewise_kernels::PAGE_SIZE;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::thread::sleep;
use std::time::Duration;

/// The sleep of a child whose pages are counted.
pub(super) const ASLEEP: Duration = Duration::from_millis(200);

/// An entry's flags (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const FILE_OR_SHARED: u64 = 1 << 61;
const MAPPED_ONCE: u64 = 1 << 56;

/// The pages of one fork, those of its parent and of its child together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Zeroed: the child's page tables, and what was not there before.
    pub(crate) zeroed: u64,
    pub(crate) copied: u64,
}

/// Counts the pages of the fork whose child is about to sleep.
pub(super) fn of_child(parent: u32) -> io::Result<Counted> {
    let child = asleep(parent)?;
    let (ours, theirs) = (entries(parent)?, entries(child)?);
    let status = fs::read_to_string(format!("/proc/{child}/status"))?;
    if !is_asleep(child) {
        return Err(io::Error::other("the child woke before its pages were read"));
    }
    let tables = status.lines().find_map(|line| line.strip_prefix("VmPTE:"));
    let tables = tables.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
    let tables = tables.ok_or_else(|| io::Error::other("found no VmPTE in the child's status"))?;
    let mut counted = count(&ours, &theirs);
    // The topmost table is in no process's count.
    counted.zeroed += 1 + tables / (PAGE_SIZE as u64 >> 10);
    Ok(counted)
}

/// The child of a process, once both sleep.
fn asleep(parent: u32) -> io::Result<u32> {
    for _ in 0..ASLEEP.as_millis() / 2 {
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"))?;
        let child = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
        if let Some(child) = child.filter(|child| [parent, *child].into_iter().all(is_asleep)) {
            return Ok(child);
        }
        sleep(Duration::from_millis(1));
    }
    Err(io::Error::other("found no sleeping child"))
}

fn is_asleep(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
}

/// One address of a private mapping.
#[derive(Clone, Copy, Debug)]
struct Page {
    entry: u64,
    /// The mapping is of a file: a page that is new there is a copy.
    of_file: bool,
}

impl Page {
    /// Tells whether it is memory of that process alone.
    fn is_own(self) -> bool {
        self.entry & (PRESENT | FILE_OR_SHARED | MAPPED_ONCE) == PRESENT | MAPPED_ONCE
    }
}

/// The pages of a process's private mappings, by their number.
fn entries(process: u32) -> io::Result<BTreeMap<u64, Page>> {
    let pagemap = File::open(format!("/proc/{process}/pagemap"))?;
    let mut pages = BTreeMap::new();
    for line in fs::read_to_string(format!("/proc/{process}/maps"))?.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [range, rights, _, _, inode, name @ ..] = &fields[..] else { continue };
        let ends = range.split_once('-').map(|(from, to)| {
            [from, to].map(|end| {
                u64::from_str_radix(end, 16).map(|at| at / PAGE_SIZE as u64).unwrap_or(0)
            })
        });
        let Some([first, last]) = ends else { continue };
        // The kernel's own pages ([vdso] and its neighbours) are nobody's to copy.
        if !rights.ends_with('p') || name.first().is_some_and(|name| name.starts_with("[v")) {
            continue;
        }
        let mut bytes = vec![0; (last - first) as usize * 8];
        pagemap.read_exact_at(&mut bytes, first * 8)?;
        let entries = bytes
            .chunks_exact(8)
            .map(|entry| u64::from_ne_bytes(entry.try_into().unwrap_or_default()));
        let page = |entry| Page { entry, of_file: *inode != "0" };
        pages.extend((first..last).zip(entries.map(page)));
    }
    Ok(pages)
}

/// Counts what parent and child do not share.
fn count(parent: &BTreeMap<u64, Page>, child: &BTreeMap<u64, Page>) -> Counted {
    let mut counted = Counted::default();
    let all: BTreeSet<&u64> = parent.keys().chain(child.keys()).collect();
    for at in all {
        let both = [parent, child].map(|pages| pages.get(at).copied());
        let own = both.map(|page| page.filter(|page| page.is_own()));
        match own {
            [None, None] => {}
            // One wrote, and the other kept the page that both had; or both wrote what is a file's.
            [Some(_), Some(_)] => counted.copied += 1,
            [Some(page), None] | [None, Some(page)] => match page.of_file {
                true => counted.copied += 1,
                false => counted.zeroed += 1,
            },
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_process_has_alone_was_copied_or_zeroed() {
        let (own, shared, file) = (PRESENT | MAPPED_ONCE, PRESENT, PRESENT | FILE_OR_SHARED);
        let pages = |entries: &[u64], of_file: bool| -> BTreeMap<u64, Page> {
            (0..).zip(entries.iter().map(|&entry| Page { entry, of_file })).collect()
        };
        let of = |parent: &[u64], child: &[u64], of_file| {
            let found = count(&pages(parent, of_file), &pages(child, of_file));
            (found.zeroed, found.copied)
        };
        assert_eq!(of(&[shared, own, 0, own], &[shared, own, own, 0], false), (2, 1));
        assert_eq!(of(&[file | MAPPED_ONCE, shared, 0], &[own, shared, own], true), (0, 2));
        assert_eq!(of(&[own], &[], false), (1, 0));
    }
}
