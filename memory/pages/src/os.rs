//! Every call to the operating system, in one place. Each can be told to fail in tests (`inject`).

use cachewise::uncancelled;
use cachewise_host::{Groups, Meminfo, Room, Tree};
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use rustix::thread::CpuSet;
use std::boxed::Box;
use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::string::String;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::vec::Vec;

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

/// Before a block in flight is brought back: where tests refuse the lock.
#[allow(clippy::unnecessary_wraps, reason = "it fails in tests alone")]
pub(crate) fn may_land() -> Result<()> {
    may_fail!(Land);
    Ok(())
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

/// Checks whether the system gives transparent huge pages to programs that ask for them.
pub(crate) fn gives_huge_pages() -> bool {
    text("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_some_and(|text| !text.contains("[never]"))
}

/// Bytes of the default hugetlb page.
pub fn hugetlb_size() -> usize {
    let size = uncancelled(|| Meminfo::read(&Tree::default())).bytes("Hugepagesize");
    let size = size.and_then(|size| usize::try_from(size).ok());
    size.filter(|size| size.is_power_of_two()).unwrap_or(2 << 20)
}

/// Memory this process may use: the machine's, or its control group's limit if that is less.
pub fn memory() -> usize {
    usize::try_from(uncancelled(Room::of_process).whole).unwrap_or(usize::MAX)
}

/// Bytes that this process may use in addition: what the machine has available, or what its control groups
/// have left if that is less.
pub(crate) fn available() -> usize {
    usize::try_from(uncancelled(Room::of_process).available).unwrap_or(usize::MAX)
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

/// The system's figures of how short memory is: of this process's control group, or else of the
/// machine.
#[derive(Debug)]
pub(crate) struct Pressure {
    /// Pressure stall information.
    stalls: PathBuf,
    /// Files that count how often a control group was at its limit.
    events: Vec<PathBuf>,
    seen: Option<u64>,
    next: Instant,
    short: bool,
}

impl Pressure {
    /// Time between two looks.
    pub(crate) const LOOK: Duration = Duration::from_secs(1);

    pub(crate) fn new() -> Pressure {
        let groups = groups();
        let first = |name: &str| groups.iter().map(|group| group.join(name)).find(|f| f.exists());
        // Outer groups count by their own limits, not by the groups inside them.
        let around = groups.iter().flat_map(|group| {
            ["memory.events.local", "memory.failcnt"].map(|name| group.join(name))
        });
        let events = around.filter(|file| file.exists()).chain(first("memory.events")).collect();
        let stalls = first("memory.pressure");
        Pressure {
            stalls: stalls.unwrap_or_else(|| PathBuf::from("/proc/pressure/memory")),
            events,
            seen: None,
            next: Instant::now(),
            short: false,
        }
    }

    /// Checks whether memory is short: a thread waited for it for a hundredth of the last ten seconds, or
    /// the group was at its limit since the last look.
    pub(crate) fn is_short(&mut self) -> bool {
        if Instant::now() < self.next {
            return self.short;
        }
        self.next = Instant::now() + Pressure::LOOK;
        let read = |file: &Path| text(file).unwrap_or_default();
        let events = self.events.iter().map(|file| limits(&read(file))).sum();
        let hit = self.seen.is_some_and(|before| events > before);
        self.seen = Some(events);
        self.short = hit || stalled(&read(&self.stalls)) >= 1.0;
        self.short
    }
}

/// Per cent of the last ten seconds in which somebody waited for memory.
fn stalled(text: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix("some avg10="));
    line.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or(0.0)
}

/// Number of times that a control group was at one of its limits: by name, or one number in version 1.
fn limits(text: &str) -> u64 {
    let of = |line: &str| {
        let Some((name, count)) = line.split_once(' ') else { return line.trim().parse().ok() };
        matches!(name, "high" | "max" | "oom").then(|| count.trim().parse::<u64>().ok())?
    };
    text.lines().filter_map(of).sum()
}

/// The folders of this process's control groups that may limit its memory, and of those around
/// them: in version 2, and of version 1's memory controller.
pub fn groups() -> Vec<PathBuf> {
    let groups = uncancelled(Groups::of_process);
    groups.memory_folders().iter().map(|folder| Path::new("/").join(folder)).collect()
}

/// CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A thread of this library's.
#[derive(Debug)]
pub(crate) struct Spawned(libc::pthread_t);

impl Spawned {
    pub(crate) fn join(self) {
        uncancelled(|| {
            // SAFETY: a thread of this process that nobody else joins: a forked child forgets it.
            unsafe { libc::pthread_join(self.0, ptr::null_mut()) };
        });
    }
}

/// The process in which threads can be started; 0 before this library's constructor.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The CPUs that the process had when the library was loaded: before its threads were bound to some.
static CPUS: OnceLock<CpuSet> = OnceLock::new();

/// When the library is loaded.
pub(crate) fn loaded() {
    PROCESS.store(process(), Ordering::Relaxed);
    if let Ok(cpus) = rustix::thread::sched_getaffinity(None) {
        let _ = CPUS.set(cpus);
    }
}

/// In a forked child, whose main thread is the one that forked.
pub(crate) fn forked() {
    MAIN_LEFT.store(false, Ordering::Relaxed);
    PROCESS.store(process(), Ordering::Relaxed);
}

/// Checks whether a thread that is started belongs to the process whose memory this is. A child of `vfork` has
/// its parent's memory: its threads end with it, whatever they hold.
pub(crate) fn may_spawn() -> bool {
    let known = PROCESS.load(Ordering::Relaxed);
    known == 0 || known == process()
}

fn process() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().cast_unsigned()
}

/// True once the main thread has left this process by `pthread_exit`.
static MAIN_LEFT: AtomicBool = AtomicBool::new(false);

/// At the end of a thread. Whether it was the main one.
pub(crate) fn thread_ends() -> bool {
    let is_main = rustix::thread::gettid() == rustix::process::getpid();
    MAIN_LEFT.fetch_or(is_main, Ordering::SeqCst);
    is_main
}

pub(crate) fn main_left() -> bool {
    MAIN_LEFT.load(Ordering::SeqCst)
}

/// Checks whether the main thread has left, and so have all others but those of pools; if that cannot be found
/// out, whether the main thread has: the process ends with its last thread, which must not be a pool's.
pub(crate) fn is_alone() -> bool {
    main_left() && others().unwrap_or(true)
}

/// Checks whether there are no threads but the main one and those of pools.
fn others() -> Option<bool> {
    // Its name there, which is not `getpid` where /proc is of another namespace.
    let main = std::fs::read_link("/proc/self").ok()?;
    let folder = std::fs::read_dir("/proc/self/task").ok()?;
    let mut of_pools = folder.flatten().filter(|task| task.file_name() != main).map(|task| {
        text(task.path().join("comm"))
            .is_none_or(|name| name.trim_end().as_bytes() == NAME.to_bytes())
    });
    Some(of_pools.all(|one| one))
}

/// The name of pools' threads.
const NAME: &CStr = c"cw-pool";

struct Start(Box<dyn FnOnce() + Send>);

extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: made by `spawn` for this thread alone.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    // SAFETY: always callable.
    let this = unsafe { libc::pthread_self() };
    // SAFETY: this thread, and a string that ends in NUL.
    unsafe { libc::pthread_setname_np(this, NAME.as_ptr()) };
    (start.0)();
    ptr::null_mut()
}

/// Bytes of a thread's stack; where the program's own thread-local storage needs more, the default.
const STACK: usize = 256 << 10;

/// Starts a thread on which no signal handler of the program runs, with the process's CPUs and the
/// ordinary policy, whatever the calling thread has. Not the standard library's: that
/// one keeps storage of the calling thread with a destructor, for which it takes the loader's lock,
/// and an allocator calls this.
pub(crate) fn spawn(body: impl FnOnce() + Send + 'static) -> std::io::Result<Spawned> {
    #[cfg(feature = "testing")]
    inject::check(inject::Call::Thread)?;
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is writable.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set was filled; the old one is writable. The new thread inherits it.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let start = Box::into_raw(Box::new(Start(Box::new(body))));
    let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: writable.
    unsafe { libc::pthread_attr_init(attributes.as_mut_ptr()) };
    // SAFETY: initialised.
    unsafe { libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK) };
    let mut thread = std::mem::MaybeUninit::<libc::pthread_t>::uninit();
    let mut create = |attributes: *const libc::pthread_attr_t| {
        // SAFETY: a place for the thread, valid or no attributes, and `begin` takes what `start`
        // is.
        unsafe { libc::pthread_create(thread.as_mut_ptr(), attributes, begin, start.cast()) }
    };
    let mut refused = create(attributes.as_ptr());
    if refused == libc::EINVAL {
        refused = create(ptr::null());
    }
    // SAFETY: initialised, not used again.
    unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
    // SAFETY: filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    if refused != 0 {
        // SAFETY: no thread was made, so it is still ours.
        drop(unsafe { Box::from_raw(start) });
        return Err(std::io::Error::from_raw_os_error(refused));
    }
    // SAFETY: a thread was made.
    let thread = unsafe { thread.assume_init() };
    make_ordinary(thread);
    Ok(Spawned(thread))
}

/// Gives a new thread the process's CPUs and ordinary priority, whatever the calling thread has; woken, it does not
/// take a CPU from a thread that runs (`SCHED_BATCH`).
fn make_ordinary(thread: libc::pthread_t) {
    if let Some(cpus) = CPUS.get()
        && rustix::thread::sched_getaffinity(None).is_ok_and(|own| own != *cpus)
    {
        let set = std::ptr::from_ref(cpus).cast::<libc::cpu_set_t>();
        // SAFETY: a thread that nobody has joined; rustix's set is the system's, bit by bit.
        let _ = unsafe { libc::pthread_setaffinity_np(thread, size_of::<CpuSet>(), set) };
    }
    let parameters = libc::sched_param { sched_priority: 0 };
    for policy in [libc::SCHED_BATCH, libc::SCHED_OTHER] {
        // SAFETY: a thread that nobody has joined, and valid parameters.
        if unsafe { libc::pthread_setschedparam(thread, policy, &raw const parameters) } == 0 {
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

    /// Moves the mapping's first `length` bytes to `place`, without copying, and unmaps the rest.
    ///
    /// # Safety
    /// Nothing is mapped at `place` for that length that anybody uses.
    pub(crate) unsafe fn move_to(self, length: usize, place: *mut u8) -> Result<()> {
        let (from, flags) = (self.start.cast(), rustix::mm::MremapFlags::MAYMOVE);
        // SAFETY: this mapping's own memory goes to a place that is free by the caller's promise.
        unsafe { rustix::mm::mremap_fixed(from, length, length, flags, place.cast()) }?;
        Ok(())
    }

    /// True if a limit on locked memory kept the mapping from being locked, as the process wants all memory.
    pub(crate) fn is_unlocked(&self) -> bool {
        self.unlocked
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Private memory of explicit huge pages, all of it reserved.
    pub(crate) fn hugetlb(length: usize) -> Result<Mapping> {
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
        Ok(Mapping { start: whole.cast(), length, whole, whole_length: length, unlocked: false })
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Unmaps what [`private`](Mapping::private) mapped, aligned to a page, and was forgotten.
    ///
    /// # Safety
    /// It was so, with that length, and nobody has a pointer into it.
    pub(crate) unsafe fn unmap(start: *mut u8, length: usize) {
        // SAFETY: the caller's promise; where the start needs no moving, the room for that is
        // behind it.
        let _ = unsafe { rustix::mm::munmap(start.cast(), length + page_size()) };
    }

    /// Keeps it out of core dumps.
    pub(crate) fn leave_out_of_dumps(&self) {
        // SAFETY: the range is this mapping's own, and this advice does not change its contents.
        let _ =
            unsafe { rustix::mm::madvise(self.start.cast(), self.length, Advice::LinuxDontDump) };
    }

    /// Asks for huge pages, or for none.
    pub(crate) fn advise_huge(&self, huge: bool) -> Result<()> {
        // SAFETY: the range is this mapping's own.
        unsafe { advise_huge(self.start, self.length, huge) }
    }

    /// Asks for no huge pages in the first so many bytes.
    pub(crate) fn advise_small(&self, bytes: usize) -> Result<()> {
        // SAFETY: the range is this mapping's own.
        unsafe { advise_huge(self.start, bytes.min(self.length), false) }
    }

    /// Wants all pages, present and future, on one node.
    pub(crate) fn bind(&self, node: u32) -> Result<()> {
        // SAFETY: the range is this mapping's own.
        unsafe { bind(self.start, self.length, node) }
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

/// Makes address space alone of memory that nobody uses.
///
/// # Safety
/// As for [`open`], and nobody uses the range.
pub(crate) unsafe fn close(start: *mut u8, length: usize) -> Result<()> {
    may_fail!(Close);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the caller's promise.
    unsafe { rustix::mm::mmap_anonymous(start.cast(), length, ProtFlags::empty(), flags) }?;
    Ok(())
}

/// Asks for huge pages, or for none.
///
/// # Safety
/// The range is whole pages of a mapping of the caller's.
pub(crate) unsafe fn advise_huge(start: *mut u8, length: usize, huge: bool) -> Result<()> {
    may_fail!(Huge);
    let advice = if huge { Advice::LinuxHugepage } else { Advice::LinuxNoHugepage };
    // SAFETY: the caller's promise; this advice does not change contents.
    unsafe { rustix::mm::madvise(start.cast(), length, advice) }
}

/// Wants all pages, present and future, on one node.
///
/// # Safety
/// As for [`advise_huge`].
pub(crate) unsafe fn bind(start: *mut u8, length: usize, node: u32) -> Result<()> {
    may_fail!(Bind);
    const MPOL_BIND: libc::c_int = 2;
    let bits = usize::BITS;
    let mut mask = std::vec![0usize; (node / bits) as usize + 1];
    mask[(node / bits) as usize] |= 1 << (node % bits);
    let bits = libc::c_ulong::try_from(mask.len() * bits as usize + 1).unwrap_or(0);
    let mask = mask.as_ptr();
    // SAFETY: the caller's promise; the mask has the bits that are said (the kernel takes them less
    // one), and placement does not change contents.
    let refused =
        unsafe { libc::syscall(libc::SYS_mbind, start, length, MPOL_BIND, mask, bits, 0) };
    if refused == 0 { Ok(()) } else { Err(last_error()) }
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
/// As for [`discard`].
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
/// As for [`discard`].
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
/// As for [`discard`].
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

#[cfg(test)]
mod tests;
