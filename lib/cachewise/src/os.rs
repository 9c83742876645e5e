//! Requests to Linux: the environment, one file, one line on stderr, some scratch
//! pages. By system call, because all of it may run inside the first `memcpy` of a process: before
//! `main`, before `malloc` works, in a signal handler, in a forked child. So nothing here
//! allocates, is a cancellation point, or leaves `errno` changed for long: callers wrap a whole
//! sequence in [`preserving_errno`].
//!
//! Not for use by programs, but for the libraries that are made of this one.

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::{fmt, ptr, slice};

/// Ends the program, with glibc's word for an overflow where the C library is glibc: programs of others load
/// libraries of this one, too.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
pub extern "C" fn overflow() -> ! {
    core::arch::naked_asm!(
        ".weak __chk_fail",
        "mov rax, qword ptr [rip + __chk_fail@GOTPCREL]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ud2",
    )
}

/// Ends the program; by a jump to nowhere where the C library is not glibc.
#[cfg(not(target_arch = "x86_64"))]
#[inline(never)]
pub extern "C" fn overflow() -> ! {
    #[link(name = "c")]
    unsafe extern "C" {
        /// glibc's `*** buffer overflow detected ***: terminated`.
        fn __chk_fail() -> !;
    }
    // SAFETY: no instruction; the symbol need not be there.
    unsafe { core::arch::asm!(".weak __chk_fail") };
    // SAFETY: always callable; does not return.
    unsafe { __chk_fail() }
}

/// Ends the program; what a panic does where no standard library has a say in it.
pub fn abort() -> ! {
    // SAFETY: always callable.
    unsafe { libc::abort() }
}

/// The definition of a function behind this object in the order in which the dynamic linker looks names up; for an
/// object that `dlopen` loaded, whose order is its own dependencies', the program's. Null where there is none, and in a
/// static program.
///
/// `dlsym` may allocate and waits while another thread is in `dlopen`: for constructors, when no other thread is there.
pub fn next_definition(name: &CStr) -> *mut c_void {
    unsafe extern "C" {
        fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
        fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    }
    // Not there in a static program, nor where glibc has it in a library of its own (before 2.34) that nobody has loaded.
    // SAFETY: no instruction.
    unsafe { core::arch::asm!(".weak dlsym", ".weak dlopen") };
    let there = [dlsym as *const (), dlopen as *const ()];
    if core::hint::black_box(there).iter().any(|function| function.is_null()) {
        return ptr::null_mut();
    }
    // SAFETY: the name ends in NUL, and the handle is one of those that stand for an order.
    let next = unsafe { dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if !next.is_null() {
        return next;
    }
    // Not `RTLD_DEFAULT`, whose order begins with this object where it is linked with `-Bsymbolic`.
    // SAFETY: without a name, the program is meant.
    let program = unsafe { dlopen(ptr::null(), libc::RTLD_LAZY) };
    // SAFETY: a handle, and a name that ends in NUL.
    unsafe { dlsym(program, name.as_ptr()) }
}

/// An `errno` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub c_int);

impl Errno {
    /// Returns whether it says that there is no such file.
    pub fn is_missing(self) -> bool {
        matches!(self.0, libc::ENOENT | libc::ENOTDIR)
    }
}

/// The words of `strerror` for what opening and reading a file can say; `strerror` itself may
/// allocate and takes a lock for its locale.
impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            libc::ENOENT => "no such file or directory",
            libc::ENOTDIR => "not a directory",
            libc::EACCES | libc::EPERM => "permission denied",
            libc::EISDIR => "a directory",
            libc::ELOOP => "too many levels of symbolic links",
            libc::ENAMETOOLONG => "file name too long",
            libc::EMFILE | libc::ENFILE => "too many open files",
            libc::EAGAIN => "no data yet, not a regular file",
            libc::EIO => "input/output error",
            libc::ENXIO | libc::ENODEV => "no such device",
            libc::ENOMEM => "out of memory",
            libc::EROFS => "a read-only file system",
            libc::ENOSPC => "no space left on the device",
            libc::EFBIG => "file too large",
            libc::EDQUOT => "disk quota exceeded",
            libc::ENOTSUP => "a device or a pipe",
            libc::EPIPE => "nobody reads it",
            other => return write!(f, "error {other}"),
        })
    }
}

/// Runs `body`, then sets `errno` back: `memcpy` does not change it.
pub fn preserving_errno(body: impl FnOnce()) {
    // SAFETY: always callable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: libc's promise: a valid place for the calling thread.
    let before = unsafe { *place };
    body();
    // SAFETY: as above.
    unsafe { *place = before };
}

/// Does something in which `pthread_cancel` must not end the calling thread: opening files, sleeping,
/// joining. Neither an allocator's functions nor copies are cancellation points; their callers may hold
/// locks, and other threads use what is on this one's stack.
///
/// Not for use by programs.
pub fn uncancelled<T>(work: impl FnOnce() -> T) -> T {
    // Miri cancels no thread.
    let _restored = if cfg!(miri) { None } else { Some(Uncancelled::begin()) };
    work()
}

unsafe extern "C" {
    // The `libc` crate lacks it; the state's number is that of glibc and musl.
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

struct Uncancelled(c_int);

impl Uncancelled {
    fn begin() -> Uncancelled {
        const DISABLE: c_int = 1;
        let mut before = 0;
        // SAFETY: `before` is writable; only this thread's state changes.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Uncancelled(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut disabled = 0;
        // SAFETY: the state that was in force before, and a place for the one that was meanwhile.
        unsafe { pthread_setcancelstate(self.0, &raw mut disabled) };
    }
}

/// Returns whether the process runs with more privilege than its caller, who must not choose its files.
pub fn is_secure() -> bool {
    // SAFETY: always callable; reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The calling process.
pub fn process_id() -> u32 {
    // SAFETY: always callable; the raw call, since libc's may be cached across `clone`.
    let id = unsafe { libc::syscall(libc::SYS_getpid) };
    id as u32
}

/// Returns whether there is an environment: the C library's initialisation, which comes before all other
/// constructors and after all IFUNC resolvers, sets it.
pub fn has_environment() -> bool {
    unsafe extern "C" {
        static environ: *const *const c_char;
    }
    // SAFETY: libc's variable, of that type; another thread that changes it races with this, as it
    // does with every `getenv`.
    unsafe { !environ.is_null() }
}

/// An environment variable that is set and not empty.
///
/// The text lives in the environment: another thread that changes the environment during the
/// library's first call races with this, as it does with every `getenv`.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends in NUL.
    let value: *const c_char = unsafe { libc::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: getenv's promise: a string that ends in NUL. See above for how long it lives.
    let value = unsafe { CStr::from_ptr(value) };
    (!value.is_empty()).then_some(value)
}

/// A system call's result, or the `errno` it left.
pub fn checked(result: c_long) -> Result<usize, Errno> {
    usize::try_from(result).map_err(|_| {
        // SAFETY: always callable.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: libc's promise: a valid place for the calling thread.
        Errno(unsafe { *place })
    })
}

/// A file that is open.
pub struct File(c_int);

impl File {
    /// Opens a file for reading.
    pub fn open(path: &CStr) -> Result<File, Errno> {
        File::open_with(path, libc::O_RDONLY)
    }

    /// Opens a file in another way; one that is made can be read by everybody.
    pub fn open_with(path: &CStr, flags: c_int) -> Result<File, Errno> {
        // Non-blocking, so that a pipe under the profile's name does not stop the program.
        let flags = flags | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
        let path = path.as_ptr();
        // SAFETY: the path ends in NUL; the call reads nothing else of ours.
        let opened = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path, flags, 0o644) };
        checked(opened).map(|file| File(file as c_int))
    }

    /// The number of its descriptor.
    pub fn descriptor(&self) -> c_int {
        self.0
    }

    /// Reads until the file ends or `into` is full; returns the number of bytes.
    pub fn read(&self, into: &mut [u8]) -> Result<usize, Errno> {
        let mut length = 0;
        while let Some(free) = into.get_mut(length..).filter(|free| !free.is_empty()) {
            // SAFETY: `free` is writable for its length.
            let read =
                unsafe { libc::syscall(libc::SYS_read, self.0, free.as_mut_ptr(), free.len()) };
            match checked(read) {
                Ok(0) => break,
                Ok(bytes) => length += bytes,
                Err(Errno(libc::EINTR)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(length)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours and is not used again.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// Returns whether a file of that name can be seen.
pub fn exists(path: &CStr) -> bool {
    // SAFETY: the path ends in NUL.
    let result =
        unsafe { libc::syscall(libc::SYS_faccessat, libc::AT_FDCWD, path.as_ptr(), libc::F_OK) };
    result == 0
}

/// The file that a descriptor stands for: device and number, 0 where it stands for none.
#[allow(clippy::unnecessary_cast, reason = "numbers of other widths on other targets")]
pub fn identity(file: c_int) -> [u64; 2] {
    status(file).map_or([0; 2], |status| [status.st_dev as u64, status.st_ino as u64])
}

fn status(file: c_int) -> Option<libc::stat> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // The C library's own function is newer than the oldest one that the library runs on.
    // SAFETY: `status` is writable for a stat, which is the kernel's on targets of 64 bits.
    if unsafe { libc::syscall(libc::SYS_fstat, file, status.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: all zero is a stat, and fstat succeeded.
    Some(unsafe { status.assume_init() })
}

/// The file that stderr was when the library was loaded.
static STDERR: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// True if that is known.
static NOTED: AtomicBool = AtomicBool::new(false);

/// For this object's constructor: remembers which file stderr is.
pub fn note_stderr() {
    // Miri does not know the call.
    if cfg!(miri) {
        return;
    }
    preserving_errno(|| {
        let now = identity(libc::STDERR_FILENO);
        STDERR.iter().zip(now).for_each(|(place, part)| place.store(part, Ordering::Relaxed));
        NOTED.store(true, Ordering::Release);
    });
}

/// Returns whether a descriptor stands for the file that stderr was when the library was loaded.
pub fn is_first_stderr(file: c_int) -> bool {
    let was = STDERR.each_ref().map(|place| place.load(Ordering::Relaxed));
    was != [0; 2] && identity(file) == was
}

/// Writes to stderr in one call, so that the line stays whole; nothing can be done about failure. Not into
/// another file that the program has opened in its place since, which may be its data.
pub fn write_stderr(text: &[u8]) {
    if !NOTED.load(Ordering::Acquire) || is_first_stderr(libc::STDERR_FILENO) {
        let _ = write(libc::STDERR_FILENO, text);
    }
}

/// Writes some of the bytes; how many. That a pipe has no reader, or a file its largest size, is an
/// error here and no signal: the program, which wrote nothing there, would die of it.
pub fn write(file: c_int, bytes: &[u8]) -> Result<usize, Errno> {
    // The kernel's sets of signals: a bit each, from signal 1 on.
    const SET: usize = size_of::<u64>();
    let ours = 1_u64 << (libc::SIGPIPE - 1) | 1 << (libc::SIGXFSZ - 1);
    let (mut before, mut pending) = (0_u64, 0_u64);
    // SAFETY: sets of that size, the second writable.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, &ours, &raw mut before, SET)
    };
    // SAFETY: a writable set of that size.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &raw mut pending, SET) };
    // SAFETY: `bytes` is readable for its length.
    let call = unsafe { libc::syscall(libc::SYS_write, file, bytes.as_ptr(), bytes.len()) };
    let written = checked(call);
    if written.is_err() {
        let came = ours & !pending;
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let none = ptr::null_mut::<libc::siginfo_t>();
        // SAFETY: a set of that size, no place for what is known of the signal, and a time.
        unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, &came, none, &raw const at_once, SET) };
    }
    let none = ptr::null_mut::<u64>();
    // SAFETY: the set that was, of that size; no place for the one that is.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_SETMASK, &raw const before, none, SET)
    };
    written
}

/// Duplicate of a descriptor, from `least` up; closed in what the process executes.
///
/// # Errors
/// An error of `fcntl`.
pub fn duplicate(file: c_int, least: c_int) -> Result<c_int, Errno> {
    // SAFETY: reads and changes no memory.
    let made = unsafe { libc::syscall(libc::SYS_fcntl, file, libc::F_DUPFD_CLOEXEC, least) };
    checked(made).map(|file| file as c_int)
}

/// Pages for the life of the process: zeroed ones, or those of a file, shared by whoever maps it; null where they
/// cannot be had.
pub fn pages(length: usize, file: Option<c_int>) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (flags, file) = match file {
        Some(file) => (libc::MAP_SHARED, file),
        None => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping touches nothing that exists.
    let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, file, 0) };
    if start == libc::MAP_FAILED { ptr::null_mut() } else { start.cast() }
}

/// Zeroed pages for the life of the process, that every forked child finds zeroed again; null where they cannot be had.
pub fn pages_of_each_process(length: usize) -> *mut u8 {
    let start = pages(length, None);
    // SAFETY: the mapping is ours, or null, which is refused. Where the kernel is older than 4.14, a child repeats its
    // parent's counts.
    unsafe { libc::madvise(start.cast(), length, libc::MADV_WIPEONFORK) };
    start
}

/// Zeroed pages of this call's own, given back when dropped.
pub struct Scratch {
    start: *mut u8,
    length: usize,
}

impl Scratch {
    pub fn new(length: usize) -> Result<Scratch, Errno> {
        let start = pages(length, None);
        if start.is_null() { Err(Errno(libc::ENOMEM)) } else { Ok(Scratch { start, length }) }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the mapping has `length` bytes, is initialised (zero), and is only reached
        // through this exclusive borrow.
        unsafe { slice::from_raw_parts_mut(self.start, self.length) }
    }

    /// Keeps the pages for the life of the process.
    pub fn leak(self) -> &'static mut [u8] {
        let (start, length) = (self.start, self.length);
        core::mem::forget(self);
        // SAFETY: as in `bytes`; nobody gives the mapping back any more.
        unsafe { slice::from_raw_parts_mut(start, length) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and no borrow of it is left.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
