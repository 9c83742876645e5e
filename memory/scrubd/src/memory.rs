//! Files of memory: each of its own tmpfs with huge pages, of hugetlb, or a memfd; the mark of those that a client has
//! had; and the question whether anybody else has one.

use crate::namespace::{self, Namespace};
use cachewise_pages::{huge_page_size, hugetlb_size};
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Linux, `asm-generic/fcntl.h` (`fcntl(2)`).
const F_SETSIG: libc::c_int = 10;

/// The pages that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// The first that the system gives: tmpfs, hugetlb, memfd. Never small ones.
    #[default]
    Auto,
    /// A tmpfs of its own for each file, with huge pages.
    Tmpfs,
    /// Explicit huge pages, as reserved in `vm.nr_hugepages`.
    Hugetlb,
    /// A memfd with huge pages, which `shmem_enabled` must allow.
    Memfd,
    /// A memfd of base pages, from which a lease gains nothing.
    Small,
}

/// The source of files.
#[derive(Debug)]
pub enum Source {
    /// A tmpfs that this process mounts.
    Tmpfs,
    /// A tmpfs that a helper in a user namespace mounts.
    UserTmpfs(Mutex<Namespace>),
    /// Explicit huge pages of that size.
    Hugetlb(u64),
    /// A memfd with huge pages.
    Memfd,
    /// A memfd with base pages.
    Small,
}

impl Source {
    /// The first source of that kind that gives huge pages; or why there is none, each in words.
    ///
    /// # Errors
    /// The ways that were tried, and what came of them.
    pub fn find(pages: Pages) -> Result<Source, Vec<String>> {
        if pages == Pages::Small {
            return Ok(Source::Small);
        }
        let mut tried = Vec::new();
        let wanted = |kind| pages == kind || pages == Pages::Auto;
        let mut proved = |name: &str, source: Result<Source, Errno>| match source
            .and_then(|source| Ok((source.gives_huge_pages()?, source)))
        {
            Ok((true, source)) => Some(source),
            Ok((false, _)) => {
                tried.push(format!("{name}: small pages"));
                None
            }
            Err(errno) => {
                tried.push(format!("{name}: {errno}"));
                None
            }
        };
        if wanted(Pages::Tmpfs) {
            if let Some(source) = proved("tmpfs", Ok(Source::Tmpfs)) {
                return Ok(source);
            }
            let helper = Namespace::start().map(|helper| Source::UserTmpfs(Mutex::new(helper)));
            if let Some(source) = proved("tmpfs in a user namespace", helper) {
                return Ok(source);
            }
        }
        if wanted(Pages::Hugetlb) {
            let size = hugetlb_size() as u64;
            if let Some(source) = proved("hugetlb", Ok(Source::Hugetlb(size))) {
                return Ok(source);
            }
        }
        if wanted(Pages::Memfd)
            && let Some(source) = proved("memfd (shmem_enabled)", Ok(Source::Memfd))
        {
            return Ok(source);
        }
        Err(tried)
    }

    /// The name in the status.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Source::Tmpfs => "tmpfs",
            Source::UserTmpfs(_) => "tmpfs in a user namespace",
            Source::Hugetlb(_) => "hugetlb",
            Source::Memfd => "memfd",
            Source::Small => "small pages",
        }
    }

    /// Bytes of which files are multiples.
    #[must_use]
    pub fn unit(&self) -> u64 {
        match self {
            Source::Hugetlb(size) => *size,
            _ => huge_page_size() as u64,
        }
    }

    /// Returns whether a page that something else uses shows in a seal: that of explicit huge pages and of memfds.
    #[must_use]
    pub fn has_seals(&self) -> bool {
        matches!(self, Source::Hugetlb(_) | Source::Memfd | Source::Small)
    }

    /// A new file of that size, nothing of it there yet, which nobody else has. It can neither shrink under
    /// a mapping nor grow: by seals, or since its file system is no larger.
    ///
    /// # Errors
    /// The system's.
    pub fn file(&self, bytes: u64) -> Result<OwnedFd, Errno> {
        let mount = match self {
            Source::Tmpfs => namespace::mount(bytes, true)?,
            Source::UserTmpfs(helper) => {
                let mut helper = helper.lock().unwrap_or_else(PoisonError::into_inner);
                match helper.tmpfs(bytes) {
                    // It was ended.
                    Err(Errno::PIPE | Errno::CONNRESET) => {
                        *helper = Namespace::start()?;
                        helper.tmpfs(bytes)?
                    }
                    mount => mount?,
                }
            }
            Source::Hugetlb(_) => return memfd(bytes, MemfdFlags::HUGETLB),
            Source::Memfd | Source::Small => return memfd(bytes, MemfdFlags::empty()),
        };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&mount, ".", flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::ftruncate(&file, bytes)?;
        Ok(file)
    }

    /// Returns whether the end of a lease of such files can be seen: a question that some systems refuse (`fs.leases-enable`,
    /// filters of system calls), as they would later.
    ///
    /// # Errors
    /// The system's.
    pub fn shows_ends(&self) -> Result<(), Errno> {
        let file = self.file(self.unit())?;
        mark_given(&file, true)?;
        let given = open_again(&file)?;
        let while_given = is_alone(&file)?;
        drop(given);
        if is_alone(&file)? && !while_given { Ok(()) } else { Err(Errno::OPNOTSUPP) }
    }

    /// Makes one page and looks.
    fn gives_huge_pages(&self) -> Result<bool, Errno> {
        let bytes = self.unit();
        let file = self.file(bytes)?;
        let mapping = Mapping::new(&file, bytes)?;
        mapping.populate()?;
        Ok(mapping.huge_bytes() == bytes)
    }
}

fn memfd(bytes: u64, kind: MemfdFlags) -> Result<OwnedFd, Errno> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING | kind;
    let new = |flags| rustix::fs::memfd_create("cachewise-scrubd", flags);
    // Linux 6.3, whose `vm.memfd_noexec` may insist on it.
    let file = match new(flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => new(flags),
        file => file,
    }?;
    rustix::fs::fchmod(&file, Mode::RUSR | Mode::WUSR)?;
    rustix::fs::ftruncate(&file, bytes)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW)?;
    // The descriptor of `memfd_create` is not counted among those that have the file open.
    open_again(&file)
}

/// Opens a file once more: another open file description of the same memory.
///
/// # Errors
/// The system's; without `/proc` it cannot be done.
pub fn open_again(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// Returns whether no process has the file open or mapped, but for this one through `file` itself.
///
/// The kernel counts the open file descriptions of an inode, those that only mappings keep included, and
/// grants a write lease to the only one (`fcntl(2)`, `F_SETLEASE`). A lock on the client's description
/// would not do: whoever has the description can unlock it.
///
/// # Errors
/// The system's, where it has no such leases.
pub fn is_alone(file: &OwnedFd) -> Result<bool, Errno> {
    let lease = |kind: libc::c_int| {
        // SAFETY: no memory is involved.
        let refused = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) };
        if refused == 0 { Ok(()) } else { Err(errno(&std::io::Error::last_os_error())) }
    };
    // Whoever opens it between the two calls breaks the lease: a signal that is ignored by default.
    // SAFETY: no memory is involved.
    unsafe { libc::fcntl(file.as_raw_fd(), F_SETSIG, libc::SIGURG) };
    match lease(libc::F_WRLCK) {
        Ok(()) => lease(libc::F_UNLCK).map(|()| true),
        Err(Errno::AGAIN) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Marks a file as one that a client has had, in a bit of its mode that means nothing else for a file and that only its
/// owner can take away: names and messages can be lost, this cannot. `by_path` lets its client open it again; no other
/// user has a path to it.
///
/// # Errors
/// The system's.
pub fn mark_given(file: &OwnedFd, by_path: bool) -> Result<(), Errno> {
    let own = Mode::RUSR | Mode::WUSR | Mode::SVTX;
    let all = Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    rustix::fs::fchmod(file, if by_path { own | all } else { own })
}

/// Returns whether a client has had that file.
#[must_use]
pub fn was_given(file: &OwnedFd) -> bool {
    rustix::fs::fstat(file)
        .is_ok_and(|found| Mode::from_raw_mode(found.st_mode).contains(Mode::SVTX))
}

/// Lets nobody open a file again who has a name for it.
pub fn close_to_all(file: &OwnedFd) {
    let _ = rustix::fs::fchmod(file, Mode::SVTX);
}

/// Returns whether that is a file of memory without a name: what a server leaves behind, and nothing else.
#[must_use]
pub fn is_memory(file: &OwnedFd) -> bool {
    let kinds = [libc::TMPFS_MAGIC, libc::HUGETLBFS_MAGIC];
    let regular = rustix::fs::fstat(file).is_ok_and(|found| {
        let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
        kind == rustix::fs::FileType::RegularFile && found.st_nlink == 0
    });
    regular && rustix::fs::fstatfs(file).is_ok_and(|found| kinds.contains(&found.f_type))
}

/// Gives all memory of a file back to the system, whoever still has a name for it: also what a client has put beyond
/// the file's end.
pub fn empty(file: &OwnedFd) {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(file, flags, 0, i64::MAX.cast_unsigned()).is_err() {
        let bytes = rustix::fs::fstat(file).map_or(0, |status| status.st_size.cast_unsigned());
        // A client may have made it shorter, even empty. What cannot be taken out ends with the file.
        let _ = rustix::fs::fallocate(file, flags, 0, bytes.max(1));
    }
}

/// A whole file as memory. The code that dereferences it answers for races.
#[derive(Debug)]
pub struct Mapping(MmapRaw);

impl Mapping {
    /// Maps a file of that size.
    ///
    /// # Errors
    /// The system's.
    pub fn new(file: &OwnedFd, bytes: u64) -> Result<Mapping, Errno> {
        let bytes = usize::try_from(bytes).map_err(|_| Errno::NOMEM)?;
        let mapping = MmapOptions::new().len(bytes).map_raw(file).map_err(|error| errno(&error))?;
        // Some systems give huge pages only on request.
        let _ = mapping.advise(Advice::HugePage);
        Ok(Mapping(mapping))
    }

    /// The pages that are there already, mapped as they are: nothing of a hole is made. Their frames, in order, where the
    /// system tells them (`/proc/self/pagemap`), and how many frames from each on are meant: where all is mapped in huge
    /// pages, the first of each stands for it, since flags and uses of a huge page are those of its first frame.
    ///
    /// # Errors
    /// The system's.
    pub fn frames(&self, file: &OwnedFd, pagemap: &File) -> Result<(Vec<u64>, u64), Errno> {
        // Pages that are read at random are not put on a list of the CPU's, which would hold them a while.
        let _ = self.0.advise(Advice::Random);
        let (mut frames, mut from, whole) = (Vec::new(), 0, self.0.len() as u64);
        let mut parts = Vec::new();
        loop {
            let data = rustix::fs::seek(file, rustix::fs::SeekFrom::Data(from));
            let Ok(first) = data else { break };
            let last = rustix::fs::seek(file, rustix::fs::SeekFrom::Hole(first))?;
            if first >= whole || last <= first {
                break;
            }
            let (first, last) = (first as usize, last.min(whole) as usize);
            self.0
                .advise_range(Advice::PopulateRead, first, last - first)
                .map_err(|error| errno(&error))?;
            parts.push(first..last);
            from = last as u64;
        }
        let page = rustix::param::page_size();
        let each = if self.huge_bytes() == whole { huge_page_size() / page } else { 1 };
        for part in parts {
            self.read_frames(pagemap, part, each, &mut frames)?;
        }
        frames.sort_unstable();
        Ok((frames, each as u64))
    }

    /// Adds every so manieth frame of a part that is mapped.
    fn read_frames(
        &self,
        pagemap: &File,
        part: std::ops::Range<usize>,
        each: usize,
        frames: &mut Vec<u64>,
    ) -> Result<(), Errno> {
        let page = rustix::param::page_size();
        let mut text = vec![0; if each == 1 { 8 << 10 } else { 8 }];
        let mut at = (self.0.as_ptr().addr() + part.start) / page;
        let last = (self.0.as_ptr().addr() + part.end).div_ceil(page);
        while at < last {
            let most = (last - at).min(text.len() / 8) * 8;
            pagemap.read_exact_at(&mut text[..most], at as u64 * 8).map_err(|e| errno(&e))?;
            let words =
                text[..most].as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word));
            // Bit 63: it is there; bits 0 to 54: its frame (`Documentation/admin-guide/mm/pagemap.rst`).
            let there = words.filter(|word| word >> 63 == 1).map(|word| word & ((1 << 55) - 1));
            frames.extend(there.filter(|frame| *frame != 0));
            at += most / 8 * each;
        }
        Ok(())
    }

    /// The part from `offset` on, of at most `most` bytes.
    #[must_use]
    pub fn part(&self, offset: usize, most: usize) -> cachewise_pages::engine::Range {
        let length = most.min(self.0.len().saturating_sub(offset));
        cachewise_pages::engine::Range { start: self.0.as_mut_ptr().wrapping_add(offset), length }
    }

    pub(crate) fn populate(&self) -> Result<(), Errno> {
        self.0.advise(Advice::PopulateWrite).map_err(|error| errno(&error))
    }

    /// Bytes that huge pages hold, as the system says.
    #[must_use]
    pub fn huge_bytes(&self) -> u64 {
        let first = self.0.as_ptr().addr();
        let whole = first..first + self.0.len();
        // Its list of all mappings takes longer than a small file.
        huge_between(&whole).unwrap_or_else(|| huge_listed(&whole))
    }
}

/// Bytes in huge pages of the mappings between two addresses, from the list of all.
fn huge_listed(part: &std::ops::Range<usize>) -> u64 {
    let huge = ["ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb"];
    let mappings = cachewise_pages::smaps::mappings();
    let inside = mappings.iter().filter(|mapped| mapped.between(part) == mapped.range.len());
    inside.flat_map(|mapped| huge.map(|name| mapped.bytes(name) as u64)).sum()
}

/// Bytes that are mapped in huge pages between two addresses; `None` where the system has no `PAGEMAP_SCAN` (Linux 6.7).
fn huge_between(part: &std::ops::Range<usize>) -> Option<u64> {
    static PAGEMAP: OnceLock<Option<File>> = OnceLock::new();
    /// `PAGE_IS_HUGE` (`linux/fs.h`).
    const HUGE: u64 = 1 << 6;
    let pagemap = PAGEMAP.get_or_init(|| File::open("/proc/self/pagemap").ok()).as_ref()?;
    let (mut bytes, mut from) = (0, part.start as u64);
    while from < part.end as u64 {
        // `struct page_region`: its addresses and categories.
        let mut found = [[0u64; 3]; 32];
        // `struct pm_scan_arg`: size, flags, start, end, the end of the walk, regions, their number, the most pages, and
        // categories: inverted, all of which, any of which, returned.
        let mut scan = [0u64; 12];
        scan[0] = size_of_val(&scan) as u64;
        (scan[2], scan[3]) = (from, part.end as u64);
        (scan[5], scan[6]) = (found.as_mut_ptr().expose_provenance() as u64, found.len() as u64);
        (scan[9], scan[11]) = (HUGE, HUGE);
        let request = rustix::ioctl::opcode::read_write::<[u64; 12]>(b'f', 16);
        // SAFETY: the request's structure, which names a place for so many regions.
        let number = unsafe { libc::ioctl(pagemap.as_raw_fd(), request as _, scan.as_mut_ptr()) };
        let regions = found.get(..usize::try_from(number).ok()?)?;
        bytes += regions.iter().map(|[start, end, _]| end - start).sum::<u64>();
        from = Some(scan[4]).filter(|end| *end > from)?;
    }
    Some(bytes)
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_count_huge_pages_agree() {
        for pages in [Pages::Auto, Pages::Small] {
            let Ok(source) = Source::find(pages) else { continue };
            let (unit, bytes) = (source.unit() as usize, 3 * source.unit());
            let file = source.file(bytes).expect("a file");
            let mapping = Mapping::new(&file, bytes).expect("memory");
            mapping.0.advise_range(Advice::PopulateWrite, unit, unit).expect("resident");
            let first = mapping.0.as_ptr().addr();
            let part = first..first + 3 * unit;
            let listed = huge_listed(&part);
            assert_eq!(listed, if pages == Pages::Small { 0 } else { source.unit() });
            assert!(huge_between(&part).is_none_or(|bytes| bytes == listed));
        }
    }
}
