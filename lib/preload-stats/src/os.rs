//! System calls of the statistics: nothing here allocates or takes a
//! lock.

use core::ffi::{CStr, c_int, c_long};
use core::{fmt, ptr, slice};

/// Ends the program; what a panic does, where no standard library has a say in it.
#[cfg_attr(panic = "unwind", allow(dead_code, reason = "then std has the panic handler"))]
pub(crate) fn abort() -> ! {
    // SAFETY: always callable.
    unsafe { libc::abort() }
}

/// Ends the process by system call.
pub(crate) fn end(status: c_int) -> ! {
    loop {
        // SAFETY: reads and changes no memory.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// Returns whether the process runs with more privilege than its caller, who must not choose its files.
pub(crate) fn is_secure() -> bool {
    // SAFETY: always callable; reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// An environment variable that is set, not empty, and not `0`.
pub(crate) fn variable(name: &CStr) -> Option<&'static CStr> {
    if is_secure() {
        return None;
    }
    // SAFETY: the name ends in NUL. Called from a constructor, where nobody changes the environment.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv's promise: a string that ends in NUL.
    let value = unsafe { CStr::from_ptr(value) };
    (!value.is_empty() && value != c"0").then_some(value)
}

/// Writes to stderr in one call, so that lines of several processes stay apart; nothing can be done
/// about failure.
pub(crate) fn write_stderr(text: &[u8]) {
    let _ = cachewise::write_quietly(libc::STDERR_FILENO, text);
}

/// Runs `body`, then sets `errno` back: `memcpy` does not change it.
pub(crate) fn preserving_errno(body: impl FnOnce()) {
    // SAFETY: always callable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: libc's promise: a valid place for the calling thread.
    let before = unsafe { *place };
    body();
    // SAFETY: as above.
    unsafe { *place = before };
}

/// An `errno` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed(c_int);

impl Failed {
    /// There is no memory for it, or no absolute path.
    pub(crate) const NO_ROOM: Failed = Failed(libc::ENOMEM);
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            libc::ENOENT => "no such file or directory",
            libc::ENOTDIR => "not a directory",
            libc::EISDIR => "a directory",
            libc::EACCES | libc::EPERM => "permission denied",
            libc::EROFS => "read-only file system",
            libc::ENOSPC => "no space left on device",
            libc::EFBIG => "file too large",
            libc::EDQUOT => "disk quota exceeded",
            libc::EPIPE => "nobody reads it",
            libc::ENOMEM => "out of memory",
            libc::ENAMETOOLONG => "file name too long",
            other => return write!(f, "error {other}"),
        })
    }
}

fn checked(result: c_long) -> Result<usize, Failed> {
    usize::try_from(result).map_err(|_| {
        // SAFETY: always callable.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: libc's promise: a valid place for the calling thread.
        Failed(unsafe { *place })
    })
}

/// The calling process.
pub(crate) fn process_id() -> u32 {
    // SAFETY: always callable.
    (unsafe { libc::syscall(libc::SYS_getpid) }) as u32
}

/// The absolute path of a relative one, in `into`; ends in NUL.
pub(crate) fn absolute<'a>(path: &CStr, into: &'a mut [u8]) -> Option<&'a CStr> {
    let mut length = 0;
    if !path.to_bytes().starts_with(b"/") {
        // SAFETY: `into` is writable for its length.
        let call = unsafe { libc::syscall(libc::SYS_getcwd, into.as_mut_ptr(), into.len()) };
        // The length counts the NUL, in whose place the slash goes.
        length = checked(call).ok()?;
        *into.get_mut(length.checked_sub(1)?)? = b'/';
    }
    let path = path.to_bytes_with_nul();
    into.get_mut(length..)?.get_mut(..path.len())?.copy_from_slice(path);
    CStr::from_bytes_until_nul(into).ok()
}

/// The path of the program; empty where it cannot be had.
pub(crate) fn program(into: &mut [u8]) -> &[u8] {
    let link = c"/proc/self/exe".as_ptr();
    // SAFETY: the path ends in NUL, and `into` is writable for its length.
    let length = unsafe {
        libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, link, into.as_mut_ptr(), into.len())
    };
    let path = into.get(..checked(length).unwrap_or(0)).unwrap_or(&[]);
    // A file that was replaced meanwhile, by a new version mostly.
    path.strip_suffix(b" (deleted)").unwrap_or(path)
}

/// The name that the program was started by, without folders: a link's, where it was one.
pub(crate) fn started_as() -> &'static [u8] {
    // SAFETY: always callable; reads the auxiliary vector.
    let name = unsafe { libc::getauxval(libc::AT_EXECFN) } as *const libc::c_char;
    if name.is_null() {
        return &[];
    }
    // SAFETY: the kernel's promise (getauxval(3)): a string that ends in NUL and stays.
    file_name(unsafe { CStr::from_ptr(name) }.to_bytes())
}

/// File name behind the last slash of a path.
pub(crate) fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// Opens a file to be written at its end, made where there is none.
pub(crate) fn open_to_append(path: &CStr) -> Result<c_int, Failed> {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
    open(path, flags | libc::O_NOCTTY | libc::O_NONBLOCK)
}

/// Finds a file without opening it: nothing happens to a pipe or a device.
pub(crate) fn open_to_look(path: &CStr) -> Result<c_int, Failed> {
    open(path, libc::O_PATH | libc::O_CLOEXEC)
}

/// Opens a regular file to be read and to be written at its end.
pub(crate) fn open_to_update(path: &CStr) -> Result<c_int, Failed> {
    open(path, libc::O_RDWR | libc::O_APPEND | libc::O_CLOEXEC)
}

fn open(path: &CStr, flags: c_int) -> Result<c_int, Failed> {
    // SAFETY: the path ends in NUL; the call reads nothing else of ours.
    let opened =
        unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o644) };
    checked(opened).map(|file| file as c_int)
}

/// Reads at a place of a file; 0 at its end.
pub(crate) fn read_at(file: c_int, into: &mut [u8], at: usize) -> Result<usize, Failed> {
    // SAFETY: `into` is writable for its length.
    checked(unsafe { libc::syscall(libc::SYS_pread64, file, into.as_mut_ptr(), into.len(), at) })
}

/// The first page of a file, shared by whoever maps it, for the life of the process.
pub(crate) fn shared_page(file: c_int) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), 4096, protection, libc::MAP_SHARED, file, 0) };
    (start != libc::MAP_FAILED).then_some(start.cast())
}

/// The same file behind another number, from `least` up; closed in what the process executes.
pub(crate) fn duplicate(file: c_int, least: c_int) -> Result<c_int, Failed> {
    // SAFETY: reads and changes no memory.
    let made = unsafe { libc::syscall(libc::SYS_fcntl, file, libc::F_DUPFD_CLOEXEC, least) };
    checked(made).map(|file| file as c_int)
}

/// Runs `body`, in which a limit on the size of files is an error and no signal: what is not counted must
/// not end the program.
pub(crate) fn without_size_signal<T>(body: impl FnOnce() -> T) -> T {
    let signal = 1u64 << (libc::SIGXFSZ - 1);
    let (bytes, mut before) = (size_of::<u64>(), 0u64);
    // SAFETY: two sets of signals of the size that is said, the second writable.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_BLOCK,
            &raw const signal,
            &raw mut before,
            bytes,
        )
    };
    let result = body();
    if before & signal == 0 {
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let nothing = ptr::null_mut::<libc::siginfo_t>();
        // SAFETY: a set as above, no place for what is told, and a time.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigtimedwait,
                &raw const signal,
                nothing,
                &raw const now,
                bytes,
            )
        };
    }
    let none = ptr::null_mut::<u64>();
    // SAFETY: as the first.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const before, none, bytes)
    };
    result
}

/// Seconds for which a reader may keep what is printed from being written.
const PATIENCE: i64 = 1;

fn is_writable_within(file: c_int, seconds: i64) -> bool {
    let mut wanted = libc::pollfd { fd: file, events: libc::POLLOUT, revents: 0 };
    let mut within = libc::timespec { tv_sec: seconds, tv_nsec: 0 };
    let same = ptr::null::<u64>();
    // SAFETY: one entry and a time, both writable, and no set of signals.
    let ready = unsafe {
        libc::syscall(libc::SYS_ppoll, &raw mut wanted, 1, &raw mut within, same, size_of::<u64>())
    };
    ready == 1
}

/// Writes all of it, in one call if the system takes it so.
pub(crate) fn write_all(file: c_int, mut text: &[u8]) -> Result<(), Failed> {
    while !text.is_empty() {
        match cachewise::write_quietly(file, text) {
            Ok(written) => text = text.get(written.max(1)..).unwrap_or(&[]),
            Err(why) if why.0 == libc::EINTR => {}
            // A terminal or pipe that the program made non-blocking.
            Err(why) if why.0 == libc::EAGAIN && is_writable_within(file, PATIENCE) => {}
            Err(why) => return Err(Failed(why.0)),
        }
    }
    Ok(())
}

pub(crate) fn close(file: c_int) {
    // SAFETY: the descriptor is the caller's and not used again.
    unsafe { libc::syscall(libc::SYS_close, file) };
}

/// The file that a descriptor stands for; 0 where it stands for none.
pub(crate) fn identity(file: c_int) -> u64 {
    status(file).map_or(0, |status| {
        status.st_ino.rotate_left(32) ^ status.st_dev ^ status.st_rdev.rotate_left(16) ^ 1 << 63
    })
}

/// A file, whatever its name is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// The file that a descriptor stands for.
pub(crate) fn object(file: c_int) -> Option<Object> {
    status(file).map(|status| Object { device: status.st_dev, inode: status.st_ino })
}

fn status(file: c_int) -> Option<libc::stat> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: `status` is writable for a stat.
    let failed = unsafe { libc::syscall(libc::SYS_fstat, file, status.as_mut_ptr()) } != 0;
    // SAFETY: all zero is a stat.
    (!failed).then(|| unsafe { status.assume_init() })
}

/// The inode of this process's PID namespace; 0 where there is no `/proc`.
pub(crate) fn pid_namespace() -> u64 {
    let Ok(namespace) = open(c"/proc/self/ns/pid", libc::O_RDONLY | libc::O_CLOEXEC) else {
        return 0;
    };
    let found = object(namespace).map_or(0, |object| object.inode);
    close(namespace);
    found
}

/// Zeroed pages for the life of the process.
pub(crate) fn pages(length: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
    (start != libc::MAP_FAILED).then_some(start.cast())
}

/// As [`pages`], and every forked child finds them zeroed again.
pub(crate) fn pages_of_each_process(length: usize) -> Option<*mut u8> {
    let start = pages(length)?;
    // SAFETY: the mapping is ours. Where the kernel is older than 4.14, a child repeats its
    // parent's counts.
    unsafe { libc::madvise(start.cast(), length, libc::MADV_WIPEONFORK) };
    Some(start)
}

/// A buffer for the life of the process.
pub(crate) fn buffer(length: usize) -> Option<&'static mut [u8]> {
    // SAFETY: `pages` gave that many zeroed bytes, and nobody else has them.
    pages(length).map(|start| unsafe { slice::from_raw_parts_mut(start, length) })
}
