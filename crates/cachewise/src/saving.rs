//! Files that hold their old content or the new one, whatever happens in between, and locks that
//! end with whoever holds them. Everything here that is kept in files is written by this module.
//!
//! Not for use by programs.
//!
//! A new file is made in the same directory, under a name that nobody can guess and where nothing
//! is yet (`O_EXCL`, which follows no link), written, synced, and renamed over the old one; then
//! the directory is synced. The directory is opened once and everything happens inside it, so who
//! exchanges a directory for another meanwhile redirects nothing. By system call, without an
//! allocation: some of it happens inside a program's `memcpy`.
//!
//! `Steps` is what all that asks of a file system; a test puts another one behind it.

use crate::cursor::Cursor;
pub use crate::os::write;
use crate::os::{self, Errno, File, Scratch};
use cachewise_learn::section::fnv1a64;
use core::ffi::{CStr, c_int};
use core::fmt::Write as _;
use core::mem;
use core::sync::atomic::{AtomicU32, Ordering};

/// What saving asks of one directory.
pub(crate) trait Steps {
    /// A file that is being written.
    type File;
    /// Makes a file where none has that name.
    fn create(&mut self, name: &CStr) -> Result<Self::File, Errno>;
    /// Writes some of the bytes at the file's end; how many.
    fn write(&mut self, file: &mut Self::File, bytes: &[u8]) -> Result<usize, Errno>;
    /// Makes the file's bytes durable.
    fn sync(&mut self, file: &mut Self::File) -> Result<(), Errno>;
    /// Gives a file another name, taking it from who has it.
    fn rename(&mut self, from: &CStr, to: &CStr) -> Result<(), Errno>;
    /// Makes names durable.
    fn sync_directory(&mut self) -> Result<(), Errno>;
    /// Takes a file away.
    fn remove(&mut self, name: &CStr);
}

/// Bytes of a directory's list that are looked through for rests.
const LIST: usize = 32 << 10;

/// A file without its name yet. Dropped without [`keep`](Pending::keep), it is gone.
pub(crate) struct Pending<S: Steps> {
    steps: S,
    file: S::File,
    name: Name,
    kept: bool,
}

impl<S: Steps> Pending<S> {
    /// Begins a file that will have this name.
    pub(crate) fn new(mut steps: S, name: &CStr) -> Result<Pending<S>, Errno> {
        for _ in 0..16 {
            let new = Name::new(name, random());
            match steps.create(new.text()) {
                Ok(file) => return Ok(Pending { steps, file, name: new, kept: false }),
                // A name out of 2^64: somebody else's luck, or a file system that is none.
                Err(Errno(libc::EEXIST)) => {}
                Err(why) => return Err(why),
            }
        }
        Err(Errno(libc::EEXIST))
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Errno> {
        while !bytes.is_empty() {
            match self.steps.write(&mut self.file, bytes) {
                Ok(0) => return Err(Errno(libc::EIO)),
                Ok(written) => bytes = bytes.get(written..).unwrap_or(&[]),
                Err(Errno(libc::EINTR)) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Gives it its name. On an error the old file is as it was.
    pub(crate) fn keep(mut self, name: &CStr) -> Result<(), Errno> {
        self.steps.sync(&mut self.file)?;
        self.steps.rename(self.name.text(), name)?;
        self.kept = true;
        // A file system that cannot sync a directory has done what it can: the file is there.
        let _ = self.steps.sync_directory();
        Ok(())
    }
}

impl<S: Steps> Drop for Pending<S> {
    fn drop(&mut self) {
        if !self.kept {
            self.steps.remove(self.name.text());
        }
    }
}

/// The name of a file on its way: says which file it was to become, and ends in NUL.
struct Name([u8; 64]);

const BEGIN: &str = ".cachewise-";

impl Name {
    fn new(of: &CStr, random: u64) -> Name {
        let mut name = [0; 64];
        let number = fnv1a64(of.to_bytes());
        // 49 bytes, and the rest is zero.
        let _ = write!(Cursor::new(&mut name), "{BEGIN}{number:016x}-{random:016x}.new");
        Name(name)
    }

    fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.0).unwrap_or(c".cachewise")
    }
}

/// Whether a directory's entry is what somebody left who was killed while saving a file of that
/// name.
fn is_rest_of(entry: &[u8], name: &CStr) -> bool {
    let whole = Name::new(name, 0);
    let of = BEGIN.len() + 17;
    whole.0.get(..of).is_some_and(|begin| entry.starts_with(begin)) && entry.ends_with(b".new")
}

/// Nothing that others could guess.
fn random() -> u64 {
    let mut random = [0_u8; 8];
    // SAFETY: `random` is writable for its length.
    let call = unsafe {
        libc::syscall(libc::SYS_getrandom, random.as_mut_ptr(), random.len(), libc::GRND_NONBLOCK)
    };
    if call == 8 {
        return u64::from_ne_bytes(random);
    }
    // A kernel that has none yet. `O_EXCL` is what protects; this only finds a free name.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = u64::from(COUNT.fetch_add(1, Ordering::Relaxed));
    os::files::monotonic() ^ u64::from(os::process_id()) << 40 ^ count << 32
}

/// How links begin that stand for what a process has open.
const IN_PROC: &[u8] = b"/proc/";

/// A directory, opened.
pub(crate) struct Directory {
    file: File,
    mode: c_int,
}

impl Directory {
    /// The directory that a path lies in, and the path's last name. Files that are made in it have
    /// that mode, less the process's mask.
    fn of(path: &CStr, mode: c_int) -> Result<(Directory, &CStr), Errno> {
        let bytes = path.to_bytes_with_nul();
        let begin = bytes.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let (directory, name) = bytes.split_at(begin);
        if matches!(name, b"\0" | b".\0" | b"..\0") {
            return Err(Errno(libc::EISDIR));
        }
        // Zeroed, and longer than what is written.
        let mut copy = Scratch::new(directory.len() + 2)?;
        let directory = if directory.is_empty() { b"." } else { directory };
        let _ = Cursor::new(copy.bytes()).push(directory);
        let directory =
            CStr::from_bytes_until_nul(copy.bytes()).map_err(|_| Errno(libc::ENAMETOOLONG))?;
        let flags = libc::O_DIRECTORY | libc::O_CLOEXEC | libc::O_NOCTTY;
        let file = match File::open_with(libc::AT_FDCWD, directory, flags | libc::O_RDONLY, 0) {
            // One that nobody may list: its names cannot be synced.
            Err(Errno(libc::EACCES)) => {
                File::open_with(libc::AT_FDCWD, directory, flags | libc::O_PATH, 0)?
            }
            opened => opened?,
        };
        let name = CStr::from_bytes_with_nul(name).map_err(|_| Errno(libc::EINVAL))?;
        Ok((Directory { file, mode }, name))
    }
}

impl Directory {
    /// Refuses a name that is something else than a file or a link to one: who renames a file over a device,
    /// as `/dev/null` or the link `/dev/stdout`, takes it from the whole machine.
    fn check(&self, name: &CStr) -> Result<(), Errno> {
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let kind = match File::open_with(self.file.number(), name, flags, 0) {
            Ok(there) => there.kind(),
            // Whatever else there is to say, making the file says it.
            Err(_) => None,
        };
        match kind {
            None | Some(libc::S_IFREG) => Ok(()),
            Some(libc::S_IFLNK) => {
                let mut target = [0; IN_PROC.len()];
                let to_a_file =
                    os::files::link_in(self.file.number(), name, &mut target) != IN_PROC;
                if to_a_file { Ok(()) } else { Err(Errno(libc::ENOTSUP)) }
            }
            Some(libc::S_IFDIR) => Err(Errno(libc::EISDIR)),
            Some(_) => Err(Errno(libc::ENOTSUP)),
        }
    }

    /// Takes away what savers of that file have left who were killed. For who holds its lock:
    /// nobody else is about to write it. Of a large directory only the beginning is looked through.
    fn clear_rests(&mut self, name: &CStr) {
        let Ok(mut list) = Scratch::new(LIST) else { return };
        let list = list.bytes();
        // SAFETY: `list` is writable for its length.
        let length = unsafe {
            libc::syscall(libc::SYS_getdents64, self.file.number(), list.as_mut_ptr(), list.len())
        };
        let mut rest = list.get(..os::checked(length).unwrap_or(0)).unwrap_or(&[]);
        // linux_dirent64: number, offset, length of the entry, kind, and the name, which ends in
        // NUL.
        while let Some((head, text)) = rest.split_at_checked(19) {
            if let Ok(entry) = CStr::from_bytes_until_nul(text)
                && is_rest_of(entry.to_bytes(), name)
            {
                self.remove(entry);
            }
            let next = usize::from(u16::from_ne_bytes([head[16], head[17]]));
            rest = rest.get(next.max(19)..).unwrap_or(&[]);
        }
    }
}

impl Steps for Directory {
    type File = File;

    fn create(&mut self, name: &CStr) -> Result<File, Errno> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW;
        File::open_with(self.file.number(), name, flags | libc::O_CLOEXEC, self.mode)
    }

    fn write(&mut self, file: &mut File, bytes: &[u8]) -> Result<usize, Errno> {
        file.write(bytes)
    }

    fn sync(&mut self, file: &mut File) -> Result<(), Errno> {
        file.sync()
    }

    fn rename(&mut self, from: &CStr, to: &CStr) -> Result<(), Errno> {
        let (here, flags): (c_int, c_int) = (self.file.number(), 0);
        // SAFETY: both names end in NUL.
        let renamed = unsafe {
            libc::syscall(libc::SYS_renameat2, here, from.as_ptr(), here, to.as_ptr(), flags)
        };
        os::checked(renamed).map(|_| ())
    }

    fn sync_directory(&mut self) -> Result<(), Errno> {
        self.file.sync()
    }

    fn remove(&mut self, name: &CStr) {
        // SAFETY: the name ends in NUL; that there is nothing to remove is no failure.
        unsafe { libc::syscall(libc::SYS_unlinkat, self.file.number(), name.as_ptr(), 0) };
    }
}

/// Puts a file of that content in place of the one of that name, whose lock the caller holds. On an
/// error the old one is as it was.
pub(crate) fn replace(_held: &Lock, path: &CStr, content: &[u8]) -> Result<(), Errno> {
    let (mut directory, name) = Directory::of(path, 0o644)?;
    directory.check(name)?;
    directory.clear_rests(name);
    let mut file = Pending::new(directory, name)?;
    file.write(content)?;
    file.keep(name)
}

/// Whether a file may be put in place of what has that name.
pub(crate) fn may_replace(path: &CStr) -> Result<(), Errno> {
    match Directory::of(path, 0) {
        Ok((directory, name)) => directory.check(name),
        // Then there is nothing.
        Err(_) => Ok(()),
    }
}

/// Gives the file of that name another one in the same directory, in place of what has it.
pub(crate) fn set_aside(path: &CStr, as_path: &CStr) -> Result<(), Errno> {
    let (mut directory, name) = Directory::of(path, 0)?;
    let (_, as_name) = Directory::of(as_path, 0)?;
    directory.rename(name, as_name)
}

/// A lock on the file of that name, by a file beside it: `FILE.lock`. It ends with this object, or
/// with the process, however that ends; a forked child does not have it. For that it is one of
/// `fcntl`'s, which are a process's; among the threads of one process `SAVERS` decides.
pub struct Lock {
    file: File,
}

/// The process of which a thread holds a lock; 0 if none does. A child that was forked meanwhile
/// finds its parent's number, and takes it.
static SAVERS: AtomicU32 = AtomicU32::new(0);

impl Lock {
    /// Takes it, after waiting for so many milliseconds at most; `None` where others have it all
    /// the while.
    pub(crate) fn take(lock: &CStr, patience: u32) -> Result<Option<Lock>, Errno> {
        let me = os::process_id();
        for turn in 0..=patience / 10 {
            if turn > 0 {
                os::files::pause(10_000_000);
            }
            let found = SAVERS.load(Ordering::Relaxed);
            if found == me
                || SAVERS.compare_exchange(found, me, Ordering::Acquire, Ordering::Relaxed).is_err()
            {
                continue;
            }
            match Lock::try_file(lock) {
                Ok(Some(file)) => return Ok(Some(Lock { file })),
                Ok(None) => SAVERS.store(0, Ordering::Release),
                Err(why) => {
                    SAVERS.store(0, Ordering::Release);
                    return Err(why);
                }
            }
        }
        Ok(None)
    }

    fn try_file(lock: &CStr) -> Result<Option<File>, Errno> {
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let flags = flags | libc::O_CLOEXEC | libc::O_NOCTTY;
        let file = File::open_with(libc::AT_FDCWD, lock, flags, 0o644)?;
        // SAFETY: all zero is a flock: of the whole file.
        let mut whole = unsafe { mem::zeroed::<libc::flock>() };
        whole.l_type = libc::F_WRLCK as _;
        // SAFETY: `whole` is a readable flock.
        let locked =
            unsafe { libc::syscall(libc::SYS_fcntl, file.number(), libc::F_SETLK, &whole) };
        match os::checked(locked) {
            Ok(_) => {}
            Err(Errno(libc::EAGAIN | libc::EACCES)) => return Ok(None),
            Err(why) => return Err(why),
        }
        // Who held it before may have removed it; then the name is another file's, or nobody's.
        let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        let named = File::open_with(libc::AT_FDCWD, lock, flags, 0).ok();
        let named = named.and_then(|named| named.identity());
        Ok((named.is_some() && named == file.identity()).then_some(file))
    }

    /// Takes the lock's file away: nobody keeps anything under its name any more.
    pub(crate) fn remove(self, lock: &CStr) {
        // SAFETY: the path ends in NUL. It is this lock's: nobody else removes it while it is held.
        unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, lock.as_ptr(), 0) };
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: all zero is a flock: of the whole file.
        let mut whole = unsafe { mem::zeroed::<libc::flock>() };
        whole.l_type = libc::F_UNLCK as _;
        // SAFETY: `whole` is a readable flock.
        unsafe { libc::syscall(libc::SYS_fcntl, self.file.number(), libc::F_SETLK, &whole) };
        SAVERS.store(0, Ordering::Release);
    }
}

#[cfg(feature = "std")]
pub use with_std::{NewFile, is_special, replace_file};

#[cfg(feature = "std")]
mod with_std {
    use super::{Directory, Errno, Pending};
    use std::ffi::CString;
    use std::io;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    fn error(Errno(number): Errno) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    /// A file that appears under its name when it is [kept](NewFile::keep), whole and durable, in
    /// place of what was there; not at all otherwise.
    pub struct NewFile {
        pending: Pending<Directory>,
        name: CString,
    }

    impl NewFile {
        /// Begins one.
        ///
        /// # Errors
        /// Those of the file system: nothing can be made beside that path.
        pub fn create(path: &Path) -> io::Result<NewFile> {
            let path = CString::new(path.as_os_str().as_bytes())?;
            // As any file one makes.
            let (directory, name) = Directory::of(&path, 0o666).map_err(error)?;
            directory.check(name).map_err(error)?;
            let pending = Pending::new(directory, name).map_err(error)?;
            Ok(NewFile { pending, name: CString::from(name) })
        }

        /// Gives it its name.
        ///
        /// # Errors
        /// Those of the file system; what was there is there still.
        pub fn keep(self) -> io::Result<()> {
            self.pending.keep(&self.name).map_err(error)
        }
    }

    impl io::Write for NewFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.pending.write(bytes).map_err(error)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Whether a path is something to write into rather than a file to replace: a device, a pipe, what a
    /// process has open.
    pub fn is_special(path: &Path) -> bool {
        let is_open = || path.read_link().is_ok_and(|to| to.starts_with("/proc"));
        path.metadata().is_ok_and(|there| !there.is_file() && !there.is_dir()) || is_open()
    }

    /// Puts a file of that content in place of the one of that name. A device or a pipe is written into.
    ///
    /// # Errors
    /// Those of the file system; what was there is there still.
    pub fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
        if is_special(path) {
            return std::fs::write(path, content);
        }
        let mut file = NewFile::create(path)?;
        io::Write::write_all(&mut file, content)?;
        file.keep()
    }
}

#[cfg(test)]
#[path = "saving_tests.rs"]
mod tests;
