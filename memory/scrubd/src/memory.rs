//! Files of memory: each in a tmpfs of its own with huge pages, in hugetlb, or a memfd; and whether anybody else has one.

use cachewise_pages::{huge_page_size, hugetlb_size};
use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FallocateFlags, MemfdFlags, Mode, OFlags, SealFlags};
use rustix::io::Errno;

/// Linux, `asm-generic/fcntl.h` (`fcntl(2)`).
const F_SETSIG: libc::c_int = 10;

/// The pages that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// The first that the system gives: tmpfs, hugetlb, memfd. Never small ones.
    #[default]
    Auto,
    /// A tmpfs for each file, with huge pages.
    Tmpfs,
    /// Explicit huge pages, as reserved in `vm.nr_hugepages`.
    Hugetlb,
    /// A memfd with huge pages, which `shmem_enabled` must allow.
    Memfd,
    /// A memfd of base pages, from which a lease gains nothing.
    Small,
}

/// The source of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A tmpfs that this process mounts.
    Tmpfs,
    /// Explicit huge pages of that size.
    Hugetlb(u64),
    /// A memfd with huge pages.
    Memfd,
    /// A memfd with base pages.
    Small,
}

impl Source {
    /// The first source of that kind that gives huge pages.
    ///
    /// # Errors
    /// Returns what was tried, why each failed, and what would let it succeed.
    pub fn find(pages: Pages) -> Result<Source, String> {
        let hugetlb = Source::Hugetlb(hugetlb_size() as u64);
        let all = [Source::Tmpfs, hugetlb, Source::Memfd];
        let wanted: &[Source] = match pages {
            Pages::Small => return Ok(Source::Small),
            Pages::Auto => &all,
            Pages::Tmpfs => &all[..1],
            Pages::Hugetlb => &all[1..2],
            Pages::Memfd => &all[2..],
        };
        let mut tried = Vec::new();
        for source in wanted {
            match source.gives_huge_pages() {
                Ok(true) => return Ok(*source),
                found => tried.push(source.missing(found.err())),
            }
        }
        Err(tried.join("; "))
    }

    fn missing(self, errno: Option<Errno>) -> String {
        let remedy = match (self, errno) {
            (Source::Tmpfs, Some(Errno::PERM)) => "takes root (CAP_SYS_ADMIN)",
            (Source::Hugetlb(_), Some(Errno::NOMEM)) => {
                "no page is reserved and free (sysctl vm.nr_hugepages=N)"
            }
            // Pages are there, and the kernel charges none of them to this process.
            (Source::Hugetlb(_), Some(Errno::FAULT)) => {
                "this control group may have none (hugetlb.*.max)"
            }
            (Source::Memfd, None) => {
                "small pages (echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled)"
            }
            (_, None) => "small pages",
            (_, Some(errno)) => return format!("{}: {errno}", self.name()),
        };
        format!("{}: {remedy}", self.name())
    }

    /// The name in the status.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::Tmpfs => "tmpfs",
            Source::Hugetlb(_) => "hugetlb",
            Source::Memfd => "memfd",
            Source::Small => "small pages",
        }
    }

    /// Bytes of which files are multiples.
    #[must_use]
    pub fn unit(self) -> u64 {
        match self {
            Source::Hugetlb(size) => size,
            _ => huge_page_size() as u64,
        }
    }

    /// A new file of that size without a page, which nobody else has. It can neither shrink under a mapping nor grow:
    /// by seals, or since its file system is no larger.
    ///
    /// # Errors
    /// Returns the system's refusal of a mount, a file or its size.
    pub fn file(self, bytes: u64) -> Result<OwnedFd, Errno> {
        let kind = match self {
            Source::Tmpfs => {
                let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&mount(bytes)?, ".", flags, Mode::RUSR | Mode::WUSR)?;
                rustix::fs::ftruncate(&file, bytes)?;
                return Ok(file);
            }
            Source::Hugetlb(_) => MemfdFlags::HUGETLB,
            Source::Memfd | Source::Small => MemfdFlags::empty(),
        };
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

    /// Returns whether the end of a lease can be seen here: some systems refuse the question (`fs.leases-enable`, filters
    /// of system calls).
    ///
    /// # Errors
    /// Returns the system's refusal of a file or of the question.
    pub fn shows_ends(self) -> Result<bool, Errno> {
        let file = self.file(self.unit())?;
        let given = open_again(&file)?;
        let while_given = is_alone(&file)?;
        drop(given);
        Ok(is_alone(&file)? && !while_given)
    }

    fn gives_huge_pages(self) -> Result<bool, Errno> {
        let bytes = self.unit();
        let mapping = Mapping::new(&self.file(bytes)?, bytes)?;
        mapping.populate(0, bytes as usize)?;
        Ok(mapping.huge_bytes() == bytes)
    }
}

/// A tmpfs of that size with huge pages, mounted nowhere and never swapped out.
fn mount(bytes: u64) -> Result<OwnedFd, Errno> {
    use rustix::mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen,
    };
    let system = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in [("huge", "always"), ("size", &bytes.to_string()), ("mode", "0700")] {
        fsconfig_set_string(&system, key, value)?;
    }
    // Linux 6.4. Without it, what nobody uses may be swapped out.
    let _ = fsconfig_set_flag(&system, c"noswap");
    fsconfig_create(&system)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
        | MountAttrFlags::MOUNT_ATTR_NODEV
        | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Opens a file once more: another open file description of the same memory.
///
/// # Errors
/// Returns the system's refusal; without `/proc` it cannot be done.
pub fn open_again(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
}

/// Lets every user who has a path to the file open it: the client alone has one.
///
/// # Errors
/// Returns the system's refusal to change the mode.
pub fn open_to_all(file: &OwnedFd) -> Result<(), Errno> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(0o666))
}

/// Returns whether no process has the file open or mapped, but for this one through `file` itself.
///
/// The kernel counts the open file descriptions of an inode, those that only mappings keep included, and
/// grants a write lease to the only one (`fcntl(2)`, `F_SETLEASE`). A lock on the client's description
/// would not do: whoever has the description can unlock it.
///
/// # Errors
/// Returns the system's refusal, where it has no such leases.
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

/// Closes a file and gives its memory back, whoever still has a name for it: also what a client has put beyond its end.
pub fn release(file: OwnedFd) {
    let _ = rustix::fs::fchmod(&file, Mode::empty());
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(&file, flags, 0, i64::MAX.cast_unsigned()).is_err() {
        let bytes = rustix::fs::fstat(&file).map_or(0, |status| status.st_size.cast_unsigned());
        // A client may have made it shorter, even empty. What cannot be taken out ends with the file.
        let _ = rustix::fs::fallocate(&file, flags, 0, bytes.max(1));
    }
}

/// A whole file as memory, to make it resident.
#[derive(Debug)]
pub struct Mapping(MmapRaw);

impl Mapping {
    /// Maps a file of that size.
    ///
    /// # Errors
    /// Returns the system's refusal, or that the size is no address space here.
    pub fn new(file: &OwnedFd, bytes: u64) -> Result<Mapping, Errno> {
        let bytes = usize::try_from(bytes).map_err(|_| Errno::NOMEM)?;
        let mapping = MmapOptions::new().len(bytes).map_raw(file).map_err(|error| errno(&error))?;
        // Some systems give huge pages only on request.
        let _ = mapping.advise(Advice::HugePage);
        Ok(Mapping(mapping))
    }

    /// Makes whole pages of a new file resident, which the kernel zeroes.
    ///
    /// # Errors
    /// Returns the system's refusal for want of memory.
    pub fn populate(&self, offset: usize, length: usize) -> Result<(), Errno> {
        let populated = self.0.advise_range(Advice::PopulateWrite, offset, length);
        match populated.map_err(|error| errno(&error)) {
            // Linux before 5.14, and filters of system calls.
            Err(Errno::INVAL) => {
                for page in (offset..offset + length).step_by(rustix::param::page_size()) {
                    // SAFETY: a byte of this mapping, of a file that nobody else has yet.
                    unsafe { self.0.as_mut_ptr().wrapping_add(page).write_volatile(0) };
                }
                Ok(())
            }
            populated => populated,
        }
    }

    /// Bytes that huge pages hold, as the system says.
    #[must_use]
    pub fn huge_bytes(&self) -> u64 {
        let first = self.0.as_ptr().addr();
        let whole = first..first + self.0.len();
        let huge = ["ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb"];
        let mappings = cachewise_pages::smaps::mappings();
        let inside = mappings.iter().filter(|mapped| mapped.between(&whole) == mapped.range.len());
        inside.flat_map(|mapped| huge.map(|name| mapped.bytes(name) as u64)).sum()
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_may_have_no_huge_pages_is_not_told_to_reserve_some() {
        for (errno, remedy) in [(Errno::NOMEM, "vm.nr_hugepages"), (Errno::FAULT, "hugetlb.*.max")]
        {
            let told = Source::Hugetlb(2 << 20).missing(Some(errno));
            assert!(told.contains(remedy), "{told}");
        }
    }
}
