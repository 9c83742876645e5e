//! Calls and bytes by operation and size, call sites of large calls, and how they are printed.
//!
//! `CACHEWISE_STATS=1` prints to stderr when the process exits, also where the program has closed it by
//! then, `CACHEWISE_STATS=FILE` at the end of that file; with what `cachewise exec --stats` sets, the first process
//! prints for all ([`Gathered`]). Counting takes no lock and allocates nothing: relaxed additions to one of
//! [`SHARDS`] sets of counters, by thread, and to a table of call sites that does not grow. The
//! counters lie in pages that a forked child finds zeroed, so each process prints its own calls.
//!
//! Not printed for a process that is ended by a signal or replaced by `exec`. Of one that ends by `_exit`, as shells and
//! forked workers do, all but the call sites: their names need a lock of the dynamic linker's, and `_exit` may be called
//! by a signal handler.

use crate::gathered::{Gathered, Sums};
use crate::os;
use crate::text::Text;
use cachewise_kernels as kernels;
use core::ffi::CStr;
use core::fmt::{self, Write as _};
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};

/// Calls of so many bytes and more are told apart by where they come from: below that the time of
/// a call is too short for its place to matter.
pub(crate) const LARGE: usize = 64 << 10;

/// Return address of a call; null where it is not known.
pub(crate) type Site = *const u8;

/// Operations that are counted apart. `memset` of zeros is zero, `bcmp` is compare, `mempcpy` is copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Copy,
    Move,
    Fill,
    Zero,
    Compare,
}

const OPERATIONS: [(Operation, &str); 5] = [
    (Operation::Copy, "copy"),
    (Operation::Move, "move"),
    (Operation::Fill, "fill"),
    (Operation::Zero, "zero"),
    (Operation::Compare, "compare"),
];

/// Length 0, and one class per octave: no object is larger than 2^47 bytes.
const CLASSES: usize = 49;

/// Sets of counters, so that threads seldom meet on a cache line.
const SHARDS: usize = 16;

/// Call sites that have a place in the table; what finds none is counted together.
const SITES: usize = 4096;

/// Call sites printed.
const PRINTED_SITES: usize = 24;

#[derive(Default)]
struct Count {
    calls: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    fn add(&self, n: usize) {
        self.calls.fetch_add(1, Relaxed);
        self.bytes.fetch_add(n as u64, Relaxed);
    }
}

struct CallSite {
    /// The return address, and the operation in the bits that no address has; 0 is free.
    key: AtomicUsize,
    count: Count,
}

/// All zero at first, as fresh pages are.
struct Counters {
    shards: [[[Count; CLASSES]; OPERATIONS.len()]; SHARDS],
    /// Calls of the allocator.
    blocks: [Count; SHARDS],
    sites: [CallSite; SITES],
    /// The process that began to count; 0 in a child that `fork` made. In a child of `vfork`, whose memory is its
    /// parent's, it is the parent.
    owner: AtomicU32,
    lost: Count,
    overlapping: Count,
    overlapping_site: AtomicUsize,
}

/// Set once by the constructor; null where nobody asked for statistics.
static COUNTERS: AtomicPtr<Counters> = AtomicPtr::new(ptr::null_mut());
/// Output file: an absolute path that ends in NUL; stderr where there is none.
static FILE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// The file that stderr was at the start: a program that closes it may open another in its place.
static STDERR: AtomicU64 = AtomicU64::new(0);
/// stderr once more, since many programs close it before they end: all of coreutils, to learn whether
/// what they wrote arrived. -1 where there is none.
static KEPT: AtomicI32 = AtomicI32::new(-1);
/// Numbers below are left to the program, some of which count on the next one that is free.
const FIRST_KEPT: i32 = 100;
/// Table in which all processes of a program gather their statistics; set once by the constructor, null where they do not.
static GATHERED: AtomicPtr<Gathered> = AtomicPtr::new(ptr::null_mut());
/// Printing copies too, which is nobody's business.
static PRINTING: AtomicBool = AtomicBool::new(false);

const ADDRESS_BITS: u32 = 56;

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
        counters.shards[shard()][operation as usize][class(n)].add(n);
    }
}

/// Counts a block that is asked for.
pub(crate) fn block(n: usize) {
    if let Some(counters) = counters() {
        counters.blocks[shard()].add(n);
    }
}

/// Counts a large call by where it comes from.
pub(crate) fn count_site(operation: Operation, n: usize, site: Site) {
    let Some(counters) = counters().filter(|_| !site.is_null()) else { return };
    let key = site.addr() | (operation as usize) << ADDRESS_BITS;
    let start = (key as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
    for step in 0..32 {
        let place = &counters.sites[(start as usize + step) % SITES];
        let found = match place.key.load(Relaxed) {
            0 => match place.key.compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => key,
                Err(other) => other,
            },
            other => other,
        };
        if found == key {
            return place.count.add(n);
        }
    }
    counters.lost.add(n);
}

/// Counts a `memcpy` whose buffers overlap, which C does not allow.
pub(crate) fn count_overlap(n: usize, site: Site) {
    if let Some(counters) = counters() {
        counters.overlapping.add(n);
        let _ = counters.overlapping_site.compare_exchange(0, site.addr(), Relaxed, Relaxed);
    }
}

/// The bytes that this process copied and moved by now, all sizes together; all ones where nothing is counted.
///
/// For whoever looks from inside the process, as the pytest plugin does.
#[unsafe(no_mangle)]
pub extern "C" fn cw_copied_bytes() -> u64 {
    let Some(counters) = counters() else { return u64::MAX };
    let of_copies = |shard: &[[Count; CLASSES]; OPERATIONS.len()], operation: Operation| -> u64 {
        shard[operation as usize].iter().map(|count| count.bytes.load(Relaxed)).sum()
    };
    let shards = counters.shards.iter();
    shards.map(|shard| of_copies(shard, Operation::Copy) + of_copies(shard, Operation::Move)).sum()
}

/// Begins to count where the environment says so.
pub(crate) fn start() {
    let Some(wanted) = os::variable(c"CACHEWISE_STATS") else { return };
    if let Err(problem) = prepare(wanted) {
        complain(wanted, problem);
    }
}

/// One line that says why there are none.
fn complain(wanted: &CStr, problem: os::Failed) {
    if os::variable(c"CACHEWISE_QUIET").is_none() {
        let mut line = [0; 512];
        let mut line = Text::new(&mut line);
        let _ = write!(line, "cachewise: CACHEWISE_STATS={}: {problem}", Shown(wanted));
        line.end_with(b"; no statistics\n");
        os::write_stderr(line.written());
    }
}

fn prepare(wanted: &CStr) -> Result<(), os::Failed> {
    STDERR.store(os::identity(libc::STDERR_FILENO), Relaxed);
    let gathered = Gathered::read(wanted);
    if wanted == c"1" || gathered.as_ref().is_some_and(|gathered| gathered.is_first) {
        KEPT.store(os::duplicate(libc::STDERR_FILENO, FIRST_KEPT).unwrap_or(-1), Relaxed);
    }
    if let Some(gathered) = gathered {
        let kept = os::pages(size_of::<Gathered>()).ok_or(os::Failed::NO_ROOM)?.cast::<Gathered>();
        // SAFETY: new pages, aligned and as large as is needed.
        unsafe { kept.write(gathered) };
        GATHERED.store(kept, Relaxed);
    } else if wanted != c"1" {
        // Opened once now, so that what is wrong with it is told now.
        os::close(os::open_to_append(wanted)?);
        let kept = os::buffer(8192).ok_or(os::Failed::NO_ROOM)?;
        let path = os::absolute(wanted, kept).ok_or(os::Failed::NO_ROOM)?;
        FILE.store(path.as_ptr().cast_mut().cast(), Relaxed);
    }
    let pages = os::pages_of_each_process(size_of::<Counters>()).ok_or(os::Failed::NO_ROOM)?;
    let counters = pages.cast::<Counters>();
    // SAFETY: new pages, aligned and all zero, which is no calls.
    unsafe { &*counters }.owner.store(os::process_id(), Relaxed);
    COUNTERS.store(counters, Relaxed);
    Ok(())
}

/// How a process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// By its destructors.
    Exit,
    /// By `_exit`, at any moment.
    AtOnce,
}

/// Prints.
pub(crate) fn finish(end: End) {
    let Some(counters) = counters() else { return };
    let owner = counters.owner.load(Relaxed);
    let is_anothers = owner != 0 && owner != os::process_id();
    if is_anothers || PRINTING.swap(true, Relaxed) {
        return;
    }
    let Some(pages) = os::buffer(80 << 10) else { return };
    // The stack of a signal handler may be small.
    let (scratch, pages) = pages.split_at_mut(16 << 10);
    let mut text = Text::new(pages);
    let mut sums = Sums::default();
    // Text drops what it has no room for.
    let _ = describe(counters, &mut text, &mut sums, end, scratch);
    // Between `fork` and an `exec` that failed.
    if owner == 0 && sums.calls == 0 {
        return;
    }
    let file = FILE.load(Relaxed);
    let was = STDERR.load(Relaxed);
    let is_stderr = |file: &i32| was != 0 && os::identity(*file) == was;
    let stderr = || [libc::STDERR_FILENO, KEPT.load(Relaxed)].into_iter().find(is_stderr);
    // SAFETY: null, or what `prepare` wrote into pages that are never given back.
    if let Some(gathered) = unsafe { GATHERED.load(Relaxed).as_ref() } {
        os::without_size_signal(|| {
            // A child that it forked has other pages of counters.
            if !gathered.is_first || owner == 0 {
                gathered.add(&sums, text.written());
            } else if let Some(stderr) = stderr() {
                gathered.print(stderr, &sums, text.written(), scratch);
            }
        });
    } else if file.is_null() {
        if let Some(file) = stderr() {
            let _ = os::without_size_signal(|| os::write_all(file, text.written()));
        }
    } else {
        // SAFETY: `prepare` stored a path that ends in NUL, in pages that are never given back.
        let path = unsafe { CStr::from_ptr(file.cast()) };
        let written = os::open_to_append(path).and_then(|file| {
            let written = os::without_size_signal(|| os::write_all(file, text.written()));
            os::close(file);
            written
        });
        if let Err(problem) = written
            && is_stderr(&libc::STDERR_FILENO)
        {
            complain(path, problem);
        }
    }
}

/// Lines of words with spaces between them: `operation size calls bytes` by operation and octave,
/// then the call sites.
fn describe(
    counters: &Counters,
    text: &mut Text<'_>,
    sums: &mut Sums,
    end: End,
    scratch: &mut [u8],
) -> fmt::Result {
    let (program, name) = (os::program(scratch), os::started_as());
    write!(text, "cachewise: calls of process {} ({}", os::process_id(), Bytes(program))?;
    if !name.is_empty() && name != os::file_name(program) {
        write!(text, " as {}", Bytes(name))?;
    }
    writeln!(text, ")")?;
    writeln!(text, "{:<9} {:>12} {:>14} {:>18} done by", "operation", "size", "calls", "bytes")?;
    for (operation, name) in OPERATIONS {
        let (mut all_calls, mut all_bytes) = (0, 0);
        for class in 0..CLASSES {
            let (mut calls, mut bytes) = (0, 0);
            for shard in &counters.shards {
                let count = &shard[operation as usize][class];
                calls += count.calls.load(Relaxed);
                bytes += count.bytes.load(Relaxed);
            }
            if calls > 0 {
                let mut size = [0; 16];
                let mut size = Text::new(&mut size);
                write!(size, "{}", Class(class))?;
                let size = Bytes(size.written());
                let by = DoneBy(operation, class);
                writeln!(text, "{name:<9} {size:>12} {calls:>14} {bytes:>18} {by}")?;
                let mut done_by = [0; 8];
                let mut done_by = Text::new(&mut done_by);
                write!(done_by, "{by}")?;
                sums.left += if done_by.written() == b"libc" { bytes } else { 0 };
            }
            all_calls += calls;
            all_bytes += bytes;
        }
        if all_calls > 0 {
            writeln!(text, "{name:<9} {:>12} {all_calls:>14} {all_bytes:>18}", "all")?;
        }
        sums.calls += all_calls;
        sums.bytes += all_bytes;
    }
    let sum = |of: fn(&Count) -> &AtomicU64| -> u64 {
        counters.blocks.iter().map(|count| of(count).load(Relaxed)).sum()
    };
    let (calls, bytes) = (sum(|count| &count.calls), sum(|count| &count.bytes));
    writeln!(text, "{:<9} {:>12} {calls:>14} {bytes:>18} malloc, calloc, realloc", "block", "all")?;
    if end == End::AtOnce {
        return Ok(());
    }
    describe_sites(counters, text)?;
    let overlapping = counters.overlapping.calls.load(Relaxed);
    if overlapping > 0 {
        write!(text, "memcpy of buffers that overlap: {overlapping} calls, the first from ")?;
        writeln!(text, "{}", At(counters.overlapping_site.load(Relaxed)))?;
    }
    Ok(())
}

fn describe_sites(counters: &Counters, text: &mut Text<'_>) -> fmt::Result {
    let key = |site: &CallSite| site.key.load(Relaxed);
    let bytes = |site: &CallSite| site.count.bytes.load(Relaxed);
    let known = counters.sites.iter().filter(|site| key(site) != 0).count();
    if known == 0 {
        return Ok(());
    }
    writeln!(text, "call sites of {}K and more:", LARGE >> 10)?;
    // The largest below the last one printed, over and over: no room is needed for sorting. Equal
    // sums are ordered by key, so that each has its turn.
    let mut last = (u64::MAX, usize::MAX);
    for _ in 0..PRINTED_SITES {
        let rest = counters.sites.iter().filter(|site| key(site) != 0);
        let rest = rest.filter(|site| (bytes(site), key(site)) < last);
        let Some(site) = rest.max_by_key(|site| (bytes(site), key(site))) else { break };
        last = (bytes(site), key(site));
        let name = OPERATIONS.get(last.1 >> ADDRESS_BITS).map_or("?", |(_, name)| name);
        let calls = site.count.calls.load(Relaxed);
        let at = At(last.1 & ((1 << ADDRESS_BITS) - 1));
        writeln!(text, "{name:<9} {:>12} {calls:>14} {:>18} {at}", "site", last.0)?;
    }
    if known > PRINTED_SITES {
        writeln!(text, "and {} more", known - PRINTED_SITES)?;
    }
    let lost = counters.lost.calls.load(Relaxed);
    if lost > 0 {
        writeln!(text, "{lost} calls from places that the table had no room for")?;
    }
    Ok(())
}

/// The sizes of a class: `0`, `1`, `2..4`, `1K..2K`; the end is not included.
struct Class(usize);

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 | 1 => write!(f, "{}", self.0),
            class if class + 1 == CLASSES => write!(f, "{}..", Size(class - 1)),
            class => write!(f, "{}..{}", Size(class - 1), Size(class)),
        }
    }
}

/// The kernels for the sizes of a class, from the smallest to the largest: a class may have
/// several.
struct DoneBy(Operation, usize);

impl fmt::Display for DoneBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = match self.0 {
            Operation::Copy => kernels::Operation::Copy,
            Operation::Move => kernels::Operation::Move,
            Operation::Fill => kernels::Operation::Fill,
            Operation::Zero => kernels::Operation::Zero,
            Operation::Compare => kernels::Operation::Compare,
        };
        let first = match self.1 {
            0 => 0,
            class => 1_u64 << (class - 1),
        };
        let last = (2 * first).saturating_sub(1).max(first);
        let mut size = first;
        let mut said = "";
        while size <= last {
            let decided = cachewise::decision(operation, cachewise::Reuse::Unknown, size);
            if decided.name() != said {
                if !said.is_empty() {
                    f.write_str(", ")?;
                }
                said = decided.name();
                f.write_str(said)?;
            }
            size = decided.to.max(size).saturating_add(1);
        }
        Ok(())
    }
}

/// A power of two by its exponent.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["", "K", "M", "G", "T", "P"];
        write!(f, "{}{}", 1u64 << (self.0 % 10), UNITS.get(self.0 / 10).unwrap_or(&"?"))
    }
}

/// An address as module, offset and symbol. It is a return address; the call is just before it.
struct At(usize);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(place) = cachewise::place(self.0) else { return write!(f, "{:#x}", self.0) };
        match place.module {
            Some(module) => Shown(module).fmt(f)?,
            None => {
                let mut path = [0; 1024];
                Bytes(os::program(&mut path)).fmt(f)?;
            }
        }
        write!(f, "+{:#x}", place.offset)?;
        if let Some((name, distance)) = place.symbol {
            write!(f, " {}+{distance:#x}", Shown(name))?;
        }
        Ok(())
    }
}

/// Text that others chose: what does not print is shown as `?`.
struct Shown<'a>(&'a CStr);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Bytes(self.0.to_bytes()).fmt(f)
    }
}

/// As [`Shown`], padded on the left where a width is asked for.
struct Bytes<'a>(&'a [u8]);

impl fmt::Display for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for _ in self.0.len()..f.width().unwrap_or(0) {
            f.write_char(' ')?;
        }
        for byte in self.0 {
            let shown = if byte.is_ascii_graphic() || *byte == b' ' { *byte } else { b'?' };
            f.write_char(char::from(shown))?;
        }
        Ok(())
    }
}
