//! Calls and bytes by operation and size: the counters, and where they are printed.
//!
//! `CACHEWISE_STATS=1` prints to stderr when the process exits, also where the program has closed it by
//! then, `CACHEWISE_STATS=FILE` at the end of that file; with what `cachewise exec --stats` sets, all processes count in
//! one place ([`Shared`]), and the first one prints. Counting takes no lock and allocates nothing: relaxed additions to
//! one of [`SHARDS`] sets of counters, by thread. Where each process has its own, they lie in pages that a forked child
//! finds zeroed.
//!
//! Services end by SIGTERM: where it has its default action, the statistics are printed first. Not printed for a process
//! that another signal ends, or that is replaced by `exec`.

use crate::shared::{self, Shared};
use crate::table::{self, Shown};
use cachewise::Cursor;
use cachewise::os::{self, Errno, File};
use core::ffi::{CStr, c_int};
use core::fmt::Write as _;
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering::Relaxed,
};

/// Operations that are counted apart. `memset` of zeros is zero, `bcmp` is compare, `mempcpy` is copy.
pub(crate) use cachewise_kernels::Operation;

pub(crate) const OPERATIONS: [Operation; 5] =
    [Operation::Copy, Operation::Move, Operation::Fill, Operation::Zero, Operation::Compare];

/// Length 0, and one class per octave: no object is larger than 2^47 bytes.
pub(crate) const CLASSES: usize = 49;

/// Sets of counters, so that threads seldom meet on a cache line.
const SHARDS: usize = 16;

#[derive(Default)]
#[repr(C)]
struct Count {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    fn add(&self, n: usize) {
        self.calls.fetch_add(1, Relaxed);
        self.bytes.fetch_add(n as u64, Relaxed);
    }

    /// Adds calls and bytes to a sum.
    fn add_to(&self, [calls, bytes]: [u64; 2]) -> [u64; 2] {
        [calls + self.calls.load(Relaxed), bytes + self.bytes.load(Relaxed)]
    }
}

/// All zero at first, as fresh pages are. `cachewise advise` reads those that processes share (`lab/advise`, `gathered.rs`).
#[repr(C)]
pub(crate) struct Counters {
    shards: [[[Count; CLASSES]; OPERATIONS.len()]; SHARDS],
    /// Calls of the allocator.
    blocks: [Count; SHARDS],
    /// The process that began to count, where each has its own counters; 0 in a child that `fork` made. In a child of
    /// `vfork`, whose memory is its parent's, it is the parent.
    owner: AtomicU32,
    /// Processes that ended by themselves, of those that share the counters.
    pub(crate) ended: AtomicU64,
}

const _: () = assert!(size_of::<Counters>() <= shared::BYTES);

impl Counters {
    /// Calls and bytes of an operation and class.
    pub(crate) fn of(&self, place: usize, class: usize) -> [u64; 2] {
        self.shards.iter().fold([0; 2], |sum, shard| shard[place][class].add_to(sum))
    }

    /// Calls of the allocator, and the bytes that they asked for.
    pub(crate) fn blocks(&self) -> [u64; 2] {
        self.blocks.iter().fold([0; 2], |sum, count| count.add_to(sum))
    }
}

/// Set once by the constructor; null where nobody asked for statistics.
static COUNTERS: AtomicPtr<Counters> = AtomicPtr::new(ptr::null_mut());
/// The process that prints the counters that all share, for those of its PID namespace; 0 where each has its own.
static PRINTER: AtomicU32 = AtomicU32::new(0);
/// Number of no process.
const NOBODY: u32 = u32::MAX;
/// Output file: an absolute path that ends in NUL; stderr where there is none.
static FILE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// stderr once more, since many programs close it before they end: all of coreutils, to learn whether
/// what they wrote arrived. -1 where there is none.
static KEPT: AtomicI32 = AtomicI32::new(-1);
/// Numbers below are left to the program, some of which count on the next one that is free.
const FIRST_KEPT: i32 = 100;
/// Printing copies too, which is nobody's business.
static PRINTING: AtomicBool = AtomicBool::new(false);

fn counters() -> Option<&'static Counters> {
    if PRINTING.load(Relaxed) {
        return None;
    }
    // SAFETY: null, or pages for the life of the process, all zero at first; atomics only.
    unsafe { COUNTERS.load(Relaxed).as_ref() }
}

const fn class(n: usize) -> usize {
    let octave = if n == 0 { 0 } else { 1 + n.ilog2() as usize };
    if octave < CLASSES { octave } else { CLASSES - 1 }
}

/// This thread's set: by where its `errno` lies, mixed (Knuth, TAOCP volume 3, 6.4: multiplication by
/// 2^64 over the golden ratio).
fn shard() -> usize {
    // SAFETY: always callable.
    let thread = unsafe { libc::__errno_location() } as u64;
    ((thread >> 6).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60) as usize % SHARDS
}

/// Counts a call.
pub(crate) fn count(operation: Operation, n: usize) {
    if let Some(counters) = counters() {
        let place = OPERATIONS.iter().position(|of| *of == operation).unwrap_or(0);
        counters.shards[shard()][place][class(n)].add(n);
    }
}

/// Counts a block that is asked for.
pub(crate) fn block(n: usize) {
    if let Some(counters) = counters() {
        counters.blocks[shard()].add(n);
    }
}

/// The bytes that this process copied and moved by now, all sizes together; all ones where nothing is counted.
///
/// For whoever looks from inside the process, as the pytest plugin does.
#[unsafe(no_mangle)]
pub extern "C" fn cw_copied_bytes() -> u64 {
    let Some(counters) = counters() else { return u64::MAX };
    // Copies and moves come first.
    let bytes = |place| (0..CLASSES).map(move |class| counters.of(place, class)[1]).sum::<u64>();
    bytes(0) + bytes(1)
}

/// A variable's value, unless it stands for none.
fn variable(name: &CStr) -> Option<&'static CStr> {
    os::variable(name).filter(|value| *value != c"0" && !os::is_secure())
}

/// Begins to count where the environment says so.
pub(crate) fn start() {
    let Some(wanted) = variable(c"CACHEWISE_STATS") else { return };
    if let Err(problem) = prepare(wanted) {
        complain(wanted, problem);
    }
}

/// One line that says why there are none.
fn complain(wanted: &CStr, problem: Errno) {
    if variable(c"CACHEWISE_QUIET").is_none() {
        let mut line = [0; 512];
        let (path, end) = line.split_at_mut(400);
        let (mut path, mut end) = (Cursor::new(path), Cursor::new(end));
        // A longer path is cut.
        let _ = write!(path, "cachewise: CACHEWISE_STATS={}", Shown(wanted.to_bytes()));
        let _ = writeln!(end, ": {problem}; no statistics");
        let (head, tail) = (path.written().len(), end.written().len());
        line.copy_within(400..400 + tail, head);
        os::write_stderr(&line[..head + tail]);
    }
}

fn prepare(wanted: &CStr) -> Result<(), Errno> {
    const NO_ROOM: Errno = Errno(libc::ENOMEM);
    let shared = Shared::read(wanted);
    if wanted == c"1" || shared.is_some() {
        KEPT.store(os::duplicate(libc::STDERR_FILENO, FIRST_KEPT).unwrap_or(-1), Relaxed);
    } else {
        // Opened once now, so that what is wrong with it is told now.
        drop(open_to_append(wanted)?);
        let kept = os::Scratch::new(8192)?.leak();
        FILE.store(absolute(wanted, kept).ok_or(NO_ROOM)?.as_ptr().cast_mut().cast(), Relaxed);
    }
    let pages = match &shared {
        Some(shared) => shared.map(),
        None => os::pages_of_each_process(size_of::<Counters>()),
    };
    // SAFETY: null, or as large as is needed, aligned, and once all zero, which is no calls; atomics only.
    let counters = unsafe { pages.cast::<Counters>().as_ref() }.ok_or(NO_ROOM)?;
    match shared {
        Some(shared) => PRINTER.store(shared.printer().unwrap_or(NOBODY), Relaxed),
        None => counters.owner.store(os::process_id(), Relaxed),
    }
    COUNTERS.store(ptr::from_ref(counters).cast_mut(), Relaxed);
    if [0, os::process_id()].contains(&PRINTER.load(Relaxed)) {
        take_end();
    }
    Ok(())
}

/// Takes SIGTERM, if nobody has it. A program that wants it takes it later.
fn take_end() {
    // The first process of a PID namespace is not ended by it.
    if os::process_id() == 1 {
        return;
    }
    type Sigaction =
        unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;
    let found = os::next_definition(c"sigaction");
    if found.is_null() {
        return;
    }
    // SAFETY: the C library's function, which has this C type.
    let sigaction = unsafe { core::mem::transmute::<*mut libc::c_void, Sigaction>(found) };
    // SAFETY: all zeros are a valid value.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: only asks.
    let asked = unsafe { sigaction(libc::SIGTERM, ptr::null(), &mut action) };
    if asked != 0 || action.sa_sigaction != libc::SIG_DFL {
        return;
    }
    action.sa_sigaction = ended as extern "C" fn(c_int) as usize;
    action.sa_flags = libc::SA_RESETHAND | libc::SA_ONSTACK;
    // SAFETY: a handler that keeps to what a handler may do.
    let _ = unsafe { sigaction(libc::SIGTERM, &action, ptr::null_mut()) };
}

/// The handler: prints, and the signal's default action ends the process as it returns.
extern "C" fn ended(signal: c_int) {
    finish();
    // SAFETY: always callable.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    // SAFETY: numbers alone.
    let _ = unsafe { libc::syscall(libc::SYS_tgkill, os::process_id(), thread, signal) };
}

/// The absolute path of a relative one, in `into`; ends in NUL.
fn absolute<'a>(path: &CStr, into: &'a mut [u8]) -> Option<&'a CStr> {
    let mut length = 0;
    if !path.to_bytes().starts_with(b"/") {
        // SAFETY: `into` is writable for its length.
        let call = unsafe { libc::syscall(libc::SYS_getcwd, into.as_mut_ptr(), into.len()) };
        // The length counts the NUL, in whose place the slash goes.
        length = os::checked(call).ok()?;
        *into.get_mut(length.checked_sub(1)?)? = b'/';
    }
    Cursor::new(into.get_mut(length..)?).push(path.to_bytes_with_nul()).ok()?;
    CStr::from_bytes_until_nul(into).ok()
}

fn open_to_append(path: &CStr) -> Result<File, Errno> {
    File::open_with(path, libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT)
}

/// Writes all of it, in one call if the system takes it so.
fn write_all(file: c_int, mut text: &[u8]) -> Result<(), Errno> {
    /// Milliseconds for which a reader may keep what is printed from being written.
    const PATIENCE: i64 = 1000;
    let is_writable = || {
        let mut wanted = libc::pollfd { fd: file, events: libc::POLLOUT, revents: 0 };
        let (seconds, rest) = (PATIENCE / 1000, PATIENCE % 1000 * 1_000_000);
        let mut within = libc::timespec { tv_sec: seconds, tv_nsec: rest };
        let (wanted, within) = (&raw mut wanted, &raw mut within);
        // SAFETY: one entry and a time, both writable, and no set of signals.
        unsafe { libc::syscall(libc::SYS_ppoll, wanted, 1, within, ptr::null::<u64>(), 8) == 1 }
    };
    while !text.is_empty() {
        match os::write(file, text) {
            Ok(written) => text = text.get(written.max(1)..).unwrap_or(&[]),
            Err(Errno(libc::EINTR)) => {}
            // A terminal or pipe that the program made non-blocking.
            Err(Errno(libc::EAGAIN)) if is_writable() => {}
            Err(why) => return Err(why),
        }
    }
    Ok(())
}

/// Prints, where this process is the one that does.
pub(crate) fn finish() {
    let Some(counters) = counters() else { return };
    let (printer, me) = (PRINTER.load(Relaxed), os::process_id());
    let owner = counters.owner.load(Relaxed);
    let prints = if printer == 0 { [0, me].contains(&owner) } else { printer == me };
    if printer != 0 {
        counters.ended.fetch_add(1, Relaxed);
    }
    if !prints || PRINTING.swap(true, Relaxed) {
        return;
    }
    let Ok(mut pages) = os::Scratch::new(64 << 10) else { return };
    let mut text = Cursor::new(pages.bytes());
    // An error says that there was no room for all of it.
    let calls = table::describe(counters, &mut text).unwrap_or(1);
    // Between `fork` and an `exec` that failed.
    if printer == 0 && owner == 0 && calls == 0 {
        return;
    }
    let file = FILE.load(Relaxed);
    if file.is_null() {
        let stderr = [libc::STDERR_FILENO, KEPT.load(Relaxed)];
        if let Some(file) = stderr.into_iter().find(|file| os::is_first_stderr(*file)) {
            let _ = write_all(file, text.written());
        }
        return;
    }
    // SAFETY: `prepare` stored a path that ends in NUL, in pages that are never given back.
    let path = unsafe { CStr::from_ptr(file.cast()) };
    let written =
        open_to_append(path).and_then(|file| write_all(file.descriptor(), text.written()));
    if let Err(problem) = written {
        complain(path, problem);
    }
}
