//! The proof that the memory of a lease came back. A lease that ended has no descriptor and no mapping any more, but a
//! page of it may be in use all the same: in a pipe, in a request to a device. What did not come back counts as its
//! user's until it does.
//!
//! Two ways, by what the system tells:
//! - frames: root sees which frame each page has, and by flags and control group of a frame (`/proc/kpageflags`,
//!   `/proc/kpagecgroup`) that it is still what it was after the file gave it up;
//! - seals: the kernel refuses to seal a memfd against writes while anything else uses a page of it. The file stays
//!   until it does not.

use crate::memory::{Mapping, Source, close_to_all, empty};
use crate::store::User;
use rustix::fd::OwnedFd;
use rustix::fs::SealFlags;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

/// Frames that are asked about at a time.
const AT_ONCE: usize = 4096;

// Bits of `/proc/kpageflags` (`Documentation/admin-guide/mm/pagemap.rst`).
const BUDDY: u64 = 1 << 10;
const MAPPED: u64 = 1 << 11;
const ANONYMOUS: u64 = 1 << 12;
const SWAP_BACKED: u64 = 1 << 14;
const NO_PAGE: u64 = 1 << 20;

/// The way in which it is proved that memory came back.
#[derive(Debug)]
enum Proof {
    Frames {
        pagemap: File,
        flags: File,
        groups: Option<File>,
    },
    Seals,
    /// The system tells nothing.
    None,
}

/// Frames in a row that did not come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u64,
    number: u64,
    group: u64,
    user: User,
}

/// A memfd that is in use still.
#[derive(Debug)]
struct Kept {
    file: Arc<OwnedFd>,
    user: User,
}

/// Memory that did not come back.
#[derive(Debug)]
pub struct Pins {
    proof: Proof,
    runs: Vec<Run>,
    kept: Vec<Kept>,
}

impl Pins {
    /// Nothing yet, and the best way that there is for files of that source.
    #[must_use]
    pub fn new(source: &Source) -> Pins {
        let proof = if source.has_seals() {
            // If a fresh file cannot be sealed, seals prove nothing.
            if sealed(source) == Ok(true) { Some(Proof::Seals) } else { None }
        } else {
            frames(source)
        };
        Pins { proof: proof.unwrap_or(Proof::None), runs: Vec::new(), kept: Vec::new() }
    }

    /// Returns whether anything can be proved.
    #[must_use]
    pub fn are_seen(&self) -> bool {
        !matches!(self.proof, Proof::None)
    }

    /// Returns whether there is memory that did not come back.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.kept.is_empty()
    }

    /// Bytes by the users that still have them.
    #[must_use]
    pub fn by_user(&self) -> BTreeMap<User, u64> {
        let page = rustix::param::page_size() as u64;
        let mut bytes = BTreeMap::new();
        let runs = self.runs.iter().map(|run| (run.user, run.number * page));
        let kept = self.kept.iter().map(|kept| (kept.user, size(&kept.file)));
        for (user, number) in runs.chain(kept) {
            *bytes.entry(user).or_default() += number;
        }
        bytes
    }

    /// Takes the memory of a lease of that user back, as much of it as comes.
    pub fn take_back(&mut self, file: Arc<OwnedFd>, user: User) {
        close_to_all(&file);
        match &self.proof {
            Proof::None => empty(&file),
            Proof::Seals => match seal(&file) {
                Ok(true) => {}
                _ => self.kept.push(Kept { file, user }),
            },
            Proof::Frames { pagemap, flags, groups } => {
                let mapping = Mapping::new(&file, size(&file));
                let had = mapping.and_then(|mapping| mapping.frames(&file, pagemap));
                let (had, each) = had.unwrap_or_default();
                let before = groups.as_ref().map(|groups| words(groups, &had));
                empty(&file);
                let after = groups.as_ref().map(|groups| words(groups, &had));
                let flags = words(flags, &had);
                for (place, frame) in had.into_iter().enumerate() {
                    let group = |words: &Option<Vec<u64>>| words.as_ref().map(|words| words[place]);
                    let same = group(&before) == group(&after);
                    if same && is_left(flags[place]) {
                        let group = group(&after).unwrap_or(0);
                        add(&mut self.runs, Run { first: frame, number: each, group, user });
                    }
                }
            }
        }
    }

    /// Looks again which of it is still in use.
    pub fn look(&mut self) {
        self.kept.retain(|kept| seal(&kept.file) != Ok(true));
        let Proof::Frames { flags, groups, .. } = &self.proof else { return };
        let mut left = Vec::new();
        for run in &self.runs {
            let frames: Vec<_> = (run.first..run.first + run.number).collect();
            let now = words(flags, &frames);
            let groups = groups.as_ref().map(|groups| words(groups, &frames));
            for (place, frame) in frames.into_iter().enumerate() {
                let same = groups.as_ref().is_none_or(|groups| groups[place] == run.group);
                if same && is_left(now[place]) {
                    add(&mut left, Run { first: frame, number: 1, ..*run });
                }
            }
        }
        self.runs = left;
    }

    /// Those frames are in a file of this server's again: they had come back.
    pub fn came_back(&mut self, file: &OwnedFd, mapping: &Mapping) {
        let Proof::Frames { pagemap, .. } = &self.proof else { return };
        if self.runs.is_empty() {
            return;
        }
        let Ok((ours, each)) = mapping.frames(file, pagemap) else { return };
        let mut left = Vec::new();
        for run in &self.runs {
            for frame in run.first..run.first + run.number {
                if ours.binary_search(&(frame - frame % each)).is_err() {
                    add(&mut left, Run { first: frame, number: 1, ..*run });
                }
            }
        }
        self.runs = left;
    }
}

fn size(file: &OwnedFd) -> u64 {
    rustix::fs::fstat(file).map_or(0, |status| status.st_size.cast_unsigned())
}

/// Returns whether a frame looks like a page of a memory file that no process has mapped. A free one does not, nor does what
/// most others make of it.
fn is_left(flags: u64) -> bool {
    flags & SWAP_BACKED != 0 && flags & (BUDDY | MAPPED | ANONYMOUS | NO_PAGE) == 0
}

/// Adds frames, in order.
fn add(runs: &mut Vec<Run>, more: Run) {
    if let Some(last) = runs.last_mut()
        && (last.first + last.number, last.group, last.user) == (more.first, more.group, more.user)
    {
        last.number += more.number;
    } else {
        runs.push(more);
    }
}

/// A word for each of those frames, which are in order; 0 where the system has none.
fn words(file: &File, frames: &[u64]) -> Vec<u64> {
    let mut found = Vec::with_capacity(frames.len());
    let mut text = vec![0; 8 * AT_ONCE];
    let in_a_row = |one: &u64, next: &u64| one + 1 == *next;
    for run in frames.chunk_by(in_a_row).flat_map(|run| run.chunks(AT_ONCE)) {
        let text = &mut text[..8 * run.len()];
        if file.read_exact_at(text, run[0] * 8).is_err() {
            text.fill(0);
        }
        found.extend(text.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)));
    }
    found
}

/// Returns whether a memfd is sealed against writes now, and so nothing else uses a page of it. A client may have sealed it
/// before it put pages elsewhere: that proves nothing.
fn seal(file: &OwnedFd) -> Result<bool, Errno> {
    if rustix::fs::fcntl_get_seals(file)?.contains(SealFlags::WRITE) {
        return Ok(false);
    }
    match rustix::fs::fcntl_add_seals(file, SealFlags::WRITE) {
        Ok(()) => Ok(true),
        Err(Errno::BUSY | Errno::PERM) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Returns whether a fresh file can be sealed.
fn sealed(source: &Source) -> Result<bool, Errno> {
    let file = source.file(source.unit())?;
    Mapping::new(&file, source.unit())?.populate()?;
    seal(&file)
}

/// Frames, if the system tells them of a fresh file, and that they are as they should be before and after.
fn frames(source: &Source) -> Option<Proof> {
    let pagemap = File::open("/proc/self/pagemap").ok()?;
    let flags = File::open("/proc/kpageflags").ok()?;
    let groups = File::open("/proc/kpagecgroup").ok();
    let file = source.file(source.unit()).ok()?;
    let mapping = Mapping::new(&file, source.unit()).ok()?;
    mapping.populate().ok()?;
    let (frames, each) = mapping.frames(&file, &pagemap).ok()?;
    drop(mapping);
    let whole = source.unit() / rustix::param::page_size() as u64;
    let left = words(&flags, &frames).into_iter().all(is_left);
    (frames.len() as u64 * each == whole && left).then_some(Proof::Frames {
        pagemap,
        flags,
        groups,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_in_a_row_are_one_run() {
        let mut runs = Vec::new();
        for (first, user) in [(4, None), (5, None), (7, None), (8, Some(1)), (9, Some(1))] {
            add(&mut runs, Run { first, number: 1, group: 3, user });
        }
        let numbers: Vec<_> = runs.iter().map(|run| (run.first, run.number)).collect();
        assert_eq!(numbers, [(4, 2), (7, 1), (8, 2)]);
        assert!(is_left(SWAP_BACKED) && !is_left(SWAP_BACKED | ANONYMOUS) && !is_left(0));
    }
}
