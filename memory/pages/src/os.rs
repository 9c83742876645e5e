//! Every call to the operating system, in one place. Each can be told to fail in tests (`inject`).

use cachewise::uncancelled;
use cachewise_host::{Meminfo, Room, Tree};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use std::ffi::c_void;
use std::path::Path;
use std::ptr;
use std::string::String;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

type Result<T> = std::result::Result<T, Errno>;

#[cfg(feature = "testing")]
pub mod inject;

#[cfg(feature = "testing")]
macro_rules! may_fail {
    ($call:ident) => {
        inject::check(inject::Call::$call)?
    };
}
#[cfg(not(feature = "testing"))]
macro_rules! may_fail {
    ($call:ident) => {};
}

/// The text of a file, if it can be read.
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    uncancelled(|| std::fs::read_to_string(path)).ok()
}

/// Does nothing for that long.
pub(crate) fn sleep(time: Duration) {
    uncancelled(|| std::thread::sleep(time));
}

/// CPUs that this process may use.
pub fn cpus() -> usize {
    uncancelled(|| std::thread::available_parallelism().map_or(1, usize::from))
}

pub(crate) fn page_size() -> usize {
    rustix::param::page_size()
}

/// Bytes of a transparent huge page, from the system or, where it does not say, of an x86-64's.
pub fn huge_page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        text("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")
            .and_then(|text| text.trim().parse().ok())
            .filter(|size: &usize| size.is_power_of_two())
            .unwrap_or(2 << 20)
    })
}

/// Bytes of the default hugetlb page.
pub fn hugetlb_size() -> usize {
    let size = uncancelled(|| Meminfo::read(&Tree::default())).bytes("Hugepagesize");
    let size = size.and_then(|size| usize::try_from(size).ok());
    size.filter(|size| size.is_power_of_two()).unwrap_or(2 << 20)
}

/// Memory this process may use: the machine's, or its control group's limit if that is less.
pub(crate) fn memory() -> usize {
    usize::try_from(uncancelled(Room::of_process).whole).unwrap_or(usize::MAX)
}

/// The load average of the last minute.
pub(crate) fn load() -> f64 {
    #[cfg(feature = "testing")]
    if let Some(load) = inject::injected_load() {
        return load;
    }
    rustix::system::sysinfo().loads[0] as f64 / 65536.0
}

/// The time that the calling thread wanted to run and did not, since it was started; where the system says that.
pub(crate) fn thread_wait() -> Option<Duration> {
    let nanoseconds = text("/proc/thread-self/schedstat")?.split(' ').nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Number of forks between the first process that used this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The process that runs: another number in a forked child.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Has this library count forks from now on; once, before the first pool.
pub(crate) fn count_forks() {
    extern "C" fn child() {
        GENERATION.fetch_add(1, Ordering::Relaxed);
        MAIN_LEFT.store(false, Ordering::Relaxed);
    }
    static COUNTED: AtomicBool = AtomicBool::new(false);
    if !COUNTED.swap(true, Ordering::AcqRel) {
        // SAFETY: the handler is a function that lives as long as the process, and calls nothing.
        unsafe { libc::pthread_atfork(None, None, Some(child)) };
    }
}

/// True once the main thread has left this process by `pthread_exit`.
static MAIN_LEFT: AtomicBool = AtomicBool::new(false);

/// At the end of a thread.
pub(crate) fn thread_ends() {
    let is_main = rustix::thread::gettid() == rustix::process::getpid();
    MAIN_LEFT.fetch_or(is_main, Ordering::SeqCst);
}

pub(crate) fn main_left() -> bool {
    MAIN_LEFT.load(Ordering::SeqCst)
}

/// Checks whether the main thread has left, and so have all others but those of pools; if that cannot be found
/// out, whether the main thread has: the process ends with its last thread, which must not be a pool's.
pub(crate) fn is_alone() -> bool {
    main_left() && uncancelled(others).unwrap_or(true)
}

/// Checks whether there are no threads but the main one and those of pools.
fn others() -> Option<bool> {
    // Its name there, which is not `getpid` where /proc is of another namespace.
    let main = std::fs::read_link("/proc/self").ok()?;
    let folder = std::fs::read_dir("/proc/self/task").ok()?;
    let mut of_pools = folder
        .flatten()
        .filter(|task| task.file_name() != main)
        .map(|task| text(task.path().join("comm")).is_none_or(|name| name.trim_end() == NAME));
    Some(of_pools.all(|one| one))
}

/// The name of pools' threads.
const NAME: &str = "cw-pool";
/// Bytes of such a thread's stack.
const STACK: usize = 256 << 10;

/// Starts a thread on which no signal handler of the program runs, with the CPUs of the main thread and the ordinary
/// policy, whatever the calling thread has.
pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    #[cfg(feature = "testing")]
    inject::check(inject::Call::Thread)?;
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is writable.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set was filled; the old one is writable. The new thread inherits it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let builder = std::thread::Builder::new().name(NAME.into()).stack_size(STACK);
    let thread = uncancelled(|| {
        builder.spawn(|| {
            become_ordinary();
            body();
        })
    });
    // SAFETY: filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    thread
}

/// Gives the calling thread the main thread's CPUs, and the ordinary priority at which, woken, it does not take a CPU
/// from a thread that runs (`SCHED_BATCH`).
fn become_ordinary() {
    let main = Some(rustix::process::getpid());
    if let Ok(cpus) = rustix::thread::sched_getaffinity(main) {
        let _ = rustix::thread::sched_setaffinity(None, &cpus);
    }
    // Priority 0; musl's has further fields.
    let parameters = std::mem::MaybeUninit::<libc::sched_param>::zeroed();
    for policy in [libc::SCHED_BATCH, libc::SCHED_OTHER] {
        // SAFETY: this thread, and parameters of numbers, which are zero.
        if unsafe { libc::sched_setscheduler(0, policy, parameters.as_ptr()) } == 0 {
            break;
        }
    }
}

/// Writes to stderr; nothing can be done about failure.
pub(crate) fn write_stderr(text: &[u8]) {
    uncancelled(|| {
        // SAFETY: `text` is readable for its length.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    });
}

/// Address space, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *mut u8,
    length: usize,
    whole: *mut c_void,
    whole_length: usize,
    unlocked: bool,
}

// SAFETY: a mapping is an address range that this value owns; whoever dereferences its pointer
// answers for the absence of races.
unsafe impl Send for Mapping {}
// SAFETY: as above; no method writes to the memory.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Private memory, zero, none of it there yet, its start aligned.
    pub(crate) fn private(length: usize, align: usize) -> Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        Mapping::with(access, MapFlags::NORESERVE, length, align)
    }

    /// Private memory as [`private`](Mapping::private) maps it, which is not locked though the process locks all its
    /// mappings.
    pub(crate) fn unlocked(length: usize, align: usize) -> Result<Mapping> {
        let mapping = Mapping::reserved(length, align)?;
        // SAFETY: the mapping just made, which nobody uses.
        unsafe { unlock(mapping.start, length) }?;
        // SAFETY: as above.
        unsafe { open(mapping.start, length) }?;
        Ok(mapping)
    }

    /// Address space alone, its start aligned: it counts for nothing and is in no core dump before it is
    /// [opened](open).
    pub(crate) fn reserved(length: usize, align: usize) -> Result<Mapping> {
        Mapping::with(ProtFlags::empty(), MapFlags::empty(), length, align)
    }

    fn with(access: ProtFlags, more: MapFlags, length: usize, align: usize) -> Result<Mapping> {
        may_fail!(Map);
        let whole_length = length.checked_add(align).ok_or(Errno::NOMEM)?;
        let flags = MapFlags::PRIVATE | more;
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let mapped =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), whole_length, access, flags) };
        let (whole, unlocked) = match mapped {
            Err(Errno::AGAIN) => (map_unlocked(access, flags, whole_length)?, true),
            mapped => (mapped?, false),
        };
        let start = whole.cast::<u8>();
        let start = start.wrapping_add(start.align_offset(align));
        Ok(Mapping { start, length, whole, whole_length, unlocked })
    }

    /// Maps a file's first `length` bytes at an aligned start, shared with all other mappings of the file.
    pub(crate) fn shared(file: impl AsFd, length: usize, align: usize) -> Result<Mapping> {
        let mapping = Mapping::reserved(length, align)?;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the range is this mapping's own, and nobody has a pointer into it yet.
        unsafe { rustix::mm::mmap(mapping.start.cast(), length, access, flags, file, 0) }?;
        Ok(mapping)
    }

    /// Keeps the memory out of forked children: their address space has a gap there.
    pub(crate) fn keep_from_children(&self) -> Result<()> {
        // SAFETY: the range is this mapping's own; this advice changes no contents.
        unsafe { rustix::mm::madvise(self.start.cast(), self.length, Advice::LinuxDontFork) }
    }

    /// True if a limit on locked memory kept the mapping from being locked, as the process wants all memory.
    pub(crate) fn is_unlocked(&self) -> bool {
        self.unlocked
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Private memory of explicit huge pages of that size, all of it reserved; where it is mapped, the first one is there.
    pub(crate) fn hugetlb(length: usize, unit: usize) -> Result<Mapping> {
        may_fail!(Hugetlb);
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
        let whole = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::HUGETLB,
            )
        }?;
        let (start, whole_length) = (whole.cast(), length);
        let mapping = Mapping { start, length, whole, whole_length, unlocked: false };
        // A control group may allow none of those that were reserved.
        // SAFETY: a huge page of the mapping just made.
        unsafe { populate(start, unit) }?;
        Ok(mapping)
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Keeps it out of core dumps.
    pub(crate) fn leave_out_of_dumps(&self) {
        // SAFETY: the range is this mapping's own, and this advice does not change its contents.
        let _ =
            unsafe { rustix::mm::madvise(self.start.cast(), self.length, Advice::LinuxDontDump) };
    }

    /// Asks for huge pages, or for none.
    pub(crate) fn advise_huge(&self, huge: bool) -> Result<()> {
        may_fail!(Huge);
        let advice = if huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
        // SAFETY: the range is this mapping's own; this advice does not change contents.
        unsafe { rustix::mm::madvise(self.start.cast(), self.length, advice) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly what was mapped, and nobody has a pointer into it any more.
        let _ = unsafe { rustix::mm::munmap(self.whole, self.whole_length) };
    }
}

/// Maps memory that is not locked, in a process that locks all future mappings (`MCL_FUTURE`) and may lock less:
/// one page, unlocked, then grown. The system looks at the limit only where it grows a locked mapping.
fn map_unlocked(access: ProtFlags, flags: MapFlags, length: usize) -> Result<*mut c_void> {
    let page = page_size();
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let first = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), page, access, flags) }?;
    // SAFETY: the mapping just made, which nobody else knows.
    let unlocked = unsafe { rustix::mm::munlock(first, page) };
    let grown = unlocked.and_then(|()| {
        // SAFETY: as above; where it moves, nobody has a pointer into it.
        unsafe { rustix::mm::mremap(first, page, length, rustix::mm::MremapFlags::MAYMOVE) }
    });
    if grown.is_err() {
        // SAFETY: as above; it did not move.
        let _ = unsafe { rustix::mm::munmap(first, page) };
    }
    grown
}

/// Checks whether the process locks all its future mappings: a new page is locked then.
fn locks_mappings() -> Result<bool> {
    let flags = MapFlags::PRIVATE;
    let size = page_size();
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing.
    let page =
        unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), size, ProtFlags::empty(), flags) };
    let page = match page {
        // There is not one page left that it may lock.
        Err(Errno::AGAIN) => return Ok(true),
        page => page?,
    };
    // SAFETY: the mapping just made. Of locked memory this says busy, and it changes nothing.
    let synced = unsafe { rustix::mm::msync(page, size, rustix::mm::MsyncFlags::INVALIDATE) };
    // SAFETY: the mapping just made, of which nobody else knows.
    let _ = unsafe { rustix::mm::munmap(page, size) };
    Ok(synced == Err(Errno::BUSY))
}

/// Locks memory just opened, page by page as it comes, in a process that locks all its mappings.
///
/// # Safety
/// The range is whole pages of a mapping of the caller's.
pub(crate) unsafe fn lock_as_the_process_does(start: *mut u8, length: usize) -> Result<()> {
    if locks_mappings()? {
        let flags = rustix::mm::MlockFlags::ONFAULT;
        // SAFETY: the caller's promise; this changes no contents.
        unsafe { rustix::mm::mlock_with(start.cast(), length, flags) }?;
    }
    Ok(())
}

/// Words for why the system gives no page: a bad address is its answer where it would end a touch with a signal.
pub(crate) fn refused(errno: Errno) -> String {
    match errno {
        Errno::FAULT => "the control group allows no more of them, or none is left".into(),
        errno => std::format!("{errno}"),
    }
}

/// Error of that number, in the words of [`refused`].
pub(crate) fn error(errno: Errno) -> std::io::Error {
    match errno {
        Errno::FAULT => std::io::Error::new(std::io::ErrorKind::OutOfMemory, refused(errno)),
        errno => errno.into(),
    }
}

fn last_error() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::INVAL, Errno::from_raw_os_error)
}

/// Unlocks memory.
///
/// # Safety
/// The range is whole pages of a mapping of the caller's.
pub(crate) unsafe fn unlock(start: *mut u8, length: usize) -> Result<()> {
    // SAFETY: the caller's promise; this changes no contents.
    unsafe { rustix::mm::munlock(start.cast(), length) }
}

/// Makes memory of address space.
///
/// # Safety
/// The range is whole pages of a [reserved](Mapping::reserved) mapping, and nobody else changes its protection.
pub(crate) unsafe fn open(start: *mut u8, length: usize) -> Result<()> {
    may_fail!(Open);
    let protection = MprotectFlags::READ | MprotectFlags::WRITE;
    // SAFETY: the caller's promise.
    unsafe { rustix::mm::mprotect(start.cast(), length, protection) }
}

/// Puts ordinary memory in the place of explicit huge pages that the system does not give.
///
/// # Safety
/// The range is whole huge pages of a mapping of the caller's, and nobody uses it.
pub(crate) unsafe fn replace(start: *mut u8, length: usize) -> Result<()> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
    // SAFETY: the caller's promise.
    unsafe { rustix::mm::mmap_anonymous(start.cast(), length, access, flags) }?;
    // SAFETY: as above; this advice changes no contents.
    let _ = unsafe { rustix::mm::madvise(start.cast(), length, Advice::LinuxHugepage) };
    // SAFETY: as above.
    unsafe { rustix::mm::madvise(start.cast(), length, Advice::LinuxDontFork) }
}

/// Gives pages back to the system; they read as zero afterwards and fault when touched. After an
/// error they may hold anything of their old contents.
///
/// # Safety
/// The range is whole pages of a private mapping, and nobody else uses it.
pub(crate) unsafe fn discard(start: *mut u8, length: usize) -> Result<()> {
    may_fail!(Discard);
    if !drops_pages() {
        return Err(Errno::OPNOTSUPP);
    }
    // SAFETY: the caller's promise.
    unsafe { dont_need(start, length) }
}

/// # Safety
/// Promises of [`discard`].
unsafe fn dont_need(start: *mut u8, length: usize) -> Result<()> {
    #[cfg(feature = "testing")]
    if inject::keeps_pages() {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { rustix::mm::madvise(start.cast(), length, Advice::LinuxDontNeed) }
}

/// Checks whether the system really drops pages that are given back. Emulators and kernels in user space
/// have answered that they did, and kept the contents.
fn drops_pages() -> bool {
    const YES: u8 = 1;
    static KNOWN: AtomicU8 = AtomicU8::new(0);
    let known = KNOWN.load(Ordering::Relaxed);
    if known != 0 && cfg!(not(feature = "testing")) {
        return known == YES;
    }
    let dropped = || {
        let page = Mapping::private(page_size(), page_size()).ok()?;
        // SAFETY: mapped, writable, and nobody else's.
        unsafe { page.start.write_volatile(1) };
        // SAFETY: a whole page of a private mapping that nobody else uses.
        unsafe { dont_need(page.start, page_size()) }.ok()?;
        // SAFETY: mapped, and nobody else's.
        Some(unsafe { page.start.read_volatile() } == 0)
    };
    let dropped = dropped().unwrap_or(false);
    KNOWN.store(if dropped { YES } else { YES + 1 }, Ordering::Relaxed);
    dropped
}

/// Makes pages be there without changing what they hold.
///
/// # Safety
/// Promises of [`discard`].
pub(crate) unsafe fn populate(start: *mut u8, length: usize) -> Result<()> {
    may_fail!(Populate);
    // SAFETY: the caller's promise; this advice changes no contents.
    match unsafe { rustix::mm::madvise(start.cast(), length, Advice::LinuxPopulateWrite) } {
        // Linux before 5.14.
        Err(Errno::INVAL) => {
            // SAFETY: the caller's promise.
            unsafe { touch(start, length) };
            Ok(())
        }
        answer => answer,
    }
}

/// Makes pages be there by writing one byte of each, the one it had.
///
/// # Safety
/// Promises of [`discard`].
unsafe fn touch(start: *mut u8, length: usize) {
    for offset in (0..length).step_by(page_size()) {
        let byte = start.wrapping_add(offset);
        // SAFETY: inside the caller's range, which nobody else uses.
        let value = unsafe { byte.read_volatile() };
        // SAFETY: as above.
        unsafe { byte.write_volatile(value) };
    }
}

/// Bytes of a range that are in memory.
pub(crate) fn resident(start: *mut u8, length: usize) -> Result<usize> {
    let page = page_size();
    let mut map = std::vec![0u8; length.div_ceil(page)];
    // SAFETY: the map has a byte for each page of the range; nothing is written to the range.
    let refused = unsafe { libc::mincore(start.cast(), length, map.as_mut_ptr()) };
    if refused != 0 {
        return Err(last_error());
    }
    Ok(map.iter().filter(|byte| **byte & 1 == 1).count() * page)
}
