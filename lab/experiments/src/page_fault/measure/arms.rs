//! The ways to get a page, each as a program would.

use super::ready::{Ready, out_of_memory};
use crate::prelude::*;
use crate::threads;
use cachewise_pages::{PageSize, Pool, PoolError, Scrub};
use memmap2::{Advice, MmapMut, MmapOptions};
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The most that a thread's cache holds: of four orders 32 pages, zeroed and dirty.
const CACHE: usize = 4 * 2 * 32 * PAGE_SIZE;
/// Looks at the others before a waiting thread lets somebody else have its CPU: some 100 us, longer
/// than it takes to start a thread.
const LOOKS: usize = 1 << 14;

pub(super) const PAGE_LINES: usize = PAGE_SIZE / LINE;

/// One setting of the measurement: pages handed out, lines touched of each, threads, repetitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultCell {
    pub(super) pages: usize,
    pub(super) lines: usize,
    pub(super) threads: usize,
    pub(super) reps: usize,
}

impl FaultCell {
    /// Duration in arbitrary units: preparing and reading count like one repetition.
    pub(super) fn weight(&self) -> f64 {
        (self.reps + 1) as f64 / self.threads as f64
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arm {
    /// An anonymous mapping of base pages, faulted in by the touch.
    Kernel,
    /// An anonymous mapping of transparent huge pages.
    Huge,
    /// `mmap` with `MAP_POPULATE`, base pages or huge as the system likes.
    MapPopulate,
    /// Base pages, `madvise(MADV_POPULATE_WRITE)`.
    Populate,
    /// Pages that are there and zero: a fault each, which zeroes nothing.
    Ready,
    /// Ready pages read first, so that a fault maps its neighbours too.
    ReadyAround,
    /// One `calloc`, one `free`.
    Calloc,
    /// The pool with nothing zeroed: at hand-out.
    HotZero,
    /// The pool with everything zeroed before.
    Prezeroed,
    /// A zeroed pool on base pages, since huge ones make a TLB's life easier by themselves.
    PrezeroedBase,
    /// The pool with everything zeroed at first, and the scrubber against the program.
    Draining,
}

impl Arm {
    /// All of them in the order of the enumeration, with their names.
    pub(super) const ALL: [(Arm, &str); 11] = [
        (Arm::Kernel, KERNEL_FAULT),
        (Arm::Huge, "kernel THP"),
        (Arm::MapPopulate, "MAP_POPULATE"),
        (Arm::Populate, "MADV_POPULATE_WRITE"),
        (Arm::Ready, READY_FAULT),
        (Arm::ReadyAround, READY_AROUND),
        (Arm::Calloc, "calloc"),
        (Arm::HotZero, "pool hot-zero"),
        (Arm::Prezeroed, PREZEROED),
        (Arm::PrezeroedBase, "pool prezeroed 4k"),
        (Arm::Draining, DRAINING),
    ];

    pub(super) fn name(self) -> &'static str {
        Arm::ALL[self as usize].1
    }

    /// Candidates that are made ready before every sample are not repeated in it; all others are.
    pub(super) fn takes_part(self, repeated: bool) -> bool {
        match self {
            Arm::Prezeroed | Arm::PrezeroedBase | Arm::Ready | Arm::ReadyAround => !repeated,
            Arm::Draining => repeated,
            _ => true,
        }
    }

    fn is_ready(self) -> bool {
        matches!(self, Arm::Ready | Arm::ReadyAround)
    }

    fn pool(self, pools: &Pools) -> Option<&Pool> {
        match self {
            Arm::HotZero => Some(&pools.hot),
            Arm::Prezeroed | Arm::Draining => Some(&pools.huge),
            Arm::PrezeroedBase => Some(&pools.base),
            _ => None,
        }
    }
}

/// The pools, resident from the start, and the pages that are ready for their faults.
pub(super) struct Pools {
    ready: Ready,
    huge: Pool,
    base: Pool,
    /// Without a scrubber: one that is only paused is told of every page that is dirty.
    hot: Pool,
}

/// A scrubber that nothing but the program holds back: draining is meant to be a race.
pub(super) fn unhindered() -> Scrub {
    Scrub {
        start: 0,
        load: f64::INFINITY,
        cpu_share: 1.0,
        min_idle: Duration::ZERO,
        unused_limit: u64::MAX,
        ..Scrub::default()
    }
}

pub(super) fn pause(pool: &Pool) {
    while !pool.pause_scrubber() {
        std::thread::yield_now();
    }
}

impl Pools {
    pub(super) fn new(bytes: usize) -> Result<Pools> {
        let scrub = unhindered();
        let threads = std::thread::available_parallelism().map_or(1, usize::from).max(2);
        // Caches are full where they are a quarter of the pool, that of this process's first thread among
        // them. Of many CPUs' threads each takes little, and fills none.
        let room = bytes + (4 * CACHE * (threads + 1)).min(3 * bytes);
        let room = room.next_multiple_of(HUGE_PAGE);
        let pool = |pages, scrub: Scrub| {
            Pool::builder().capacity(room).initial(room).page_size(pages).scrub(scrub).build()
        };
        let huge = pool(PageSize::Transparent, scrub.clone())?;
        huge.pause_scrubber();
        let off = Scrub { enabled: false, ..scrub };
        let base = pool(PageSize::Base, off.clone())?;
        let hot = pool(PageSize::Transparent, off)?;
        Ok(Pools { ready: Ready::new(bytes)?, huge, base, hot })
    }

    pub(super) fn notes(&self) -> Vec<String> {
        let notes = [&self.huge, &self.base, &self.hot].into_iter().flat_map(Pool::notes);
        notes.map(|note| format!("page pool: {note}")).collect()
    }

    /// Brings the arm's pages into their state, and says what CPU zeroing had used before that.
    fn prepare(&self, arm: Arm) -> Result<Duration> {
        let before = self.zeroing(arm)?;
        if arm.is_ready() {
            self.ready.prepare()?;
        }
        let Some(pool) = arm.pool(self) else { return Ok(before) };
        if arm == Arm::HotZero {
            let all = pool.capacity() / pool.page_size();
            let taken: Result<Vec<_>, _> = (0..all).map(|_| pool.alloc_raw(0)).collect();
            // SAFETY: taken above, and used by nobody.
            taken.and_then(|pages| unsafe { free(pool, pages) })?;
            pool.flush_thread_cache();
        } else {
            pool.scrub_now(usize::MAX)?;
        }
        if arm == Arm::Draining {
            pool.resume_scrubber();
        }
        Ok(before)
    }

    /// The CPU that zeroing the arm's pages has taken so far; its scrubber rests then.
    fn zeroing(&self, arm: Arm) -> Result<Duration> {
        if arm.is_ready() {
            return Ok(self.ready.zeroing());
        }
        let Some(pool) = arm.pool(self) else { return Ok(Duration::ZERO) };
        pause(pool);
        Ok(pool.stats()?.scrub_cpu)
    }
}

/// Seconds of one sample, of all its threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) wall: f64,
    pub(super) scrub: f64,
    /// CPU of giving back, as far as it is not in `user` and `system`.
    pub(super) release: f64,
    /// Reading all of every page afterwards, by the wall clock.
    pub(super) later: f64,
    pub(super) faults: f64,
}

enum Held<'p> {
    Mapping { first: *mut u8, mapping: MmapMut },
    Allocation { start: *mut u8, first: *mut u8 },
    Pages { pool: &'p Pool, pages: Vec<NonNull<u8>> },
}

impl Held<'_> {
    fn page(&self, index: usize) -> *mut u8 {
        match self {
            Held::Mapping { first, .. } | Held::Allocation { first, .. } => {
                first.wrapping_add(index * PAGE_SIZE)
            }
            Held::Pages { pages, .. } => pages[index].as_ptr(),
        }
    }

    /// Gives all of it back; what is left is an empty list to keep addresses in.
    fn give_back(self) -> Result<Vec<NonNull<u8>>> {
        match self {
            Held::Mapping { mapping, .. } => drop(mapping),
            // SAFETY: allocated by `take`, and nobody has a pointer into it.
            Held::Allocation { start, .. } => unsafe { libc::free(start.cast()) },
            Held::Pages { pool, mut pages } => {
                // SAFETY: taken by `take`, and nobody has a pointer into them.
                unsafe { free(pool, pages.drain(..)) }?;
                return Ok(pages);
            }
        }
        Ok(Vec::new())
    }
}

/// Gives back pages.
///
/// # Safety
/// They were taken from that pool one by one, and nobody uses them any more.
pub(super) unsafe fn free(
    pool: &Pool,
    pages: impl IntoIterator<Item = NonNull<u8>>,
) -> Result<(), PoolError> {
    // SAFETY: the caller's promise.
    pages.into_iter().try_for_each(|page| unsafe { pool.free_raw(page, 0) })
}

/// A new mapping, with room for a huge page's alignment, faulted in ahead where the arm says so.
fn map(arm: Arm, bytes: usize) -> Result<MmapMut> {
    let mut options = MmapOptions::new();
    options.len(if arm == Arm::Huge { bytes + HUGE_PAGE } else { bytes });
    if arm == Arm::MapPopulate {
        options.populate();
    }
    let mapping = options.map_anon().map_err(out_of_memory("mmap"))?;
    let advice = match arm {
        Arm::Huge => Some(Advice::HugePage),
        Arm::MapPopulate => None,
        _ => Some(Advice::NoHugePage),
    };
    // Refused where the kernel has no huge pages, and then there is nothing to advise.
    let _ = advice.map(|advice| mapping.advise(advice));
    if arm == Arm::Populate {
        mapping.advise(Advice::PopulateWrite).map_err(out_of_memory("MADV_POPULATE_WRITE"))?;
    }
    Ok(mapping)
}

/// Takes a share of the pages and touches them one after another. Where a page is handed out by
/// itself, it is touched before the next one is asked for, as a fault does. `room` is an empty list
/// to keep addresses in.
fn take<'p>(
    arm: Arm,
    pools: &'p Pools,
    (share, lines): (Range<usize>, usize),
    mut room: Vec<NonNull<u8>>,
) -> Result<Held<'p>> {
    let pages = share.len();
    let step = PAGE_SIZE / lines.clamp(1, PAGE_LINES);
    let touch = |page: *mut u8| {
        for line in 0..lines {
            // SAFETY: inside a page that the caller holds.
            unsafe { page.wrapping_add(line * step).write_volatile(1) };
        }
    };
    if let Some(pool) = arm.pool(pools) {
        for _ in 0..pages {
            let page = pool.zalloc_raw(0)?;
            touch(page.as_ptr());
            room.push(page);
        }
        return Ok(Held::Pages { pool, pages: room });
    }
    let held = if arm.is_ready() {
        let mut mapping = pools.ready.map_for(arm == Arm::ReadyAround)?;
        let first = mapping.as_mut_ptr().wrapping_add(share.start * PAGE_SIZE);
        Held::Mapping { first, mapping }
    } else if arm == Arm::Calloc {
        // SAFETY: always callable.
        let start = unsafe { libc::calloc(pages + 1, PAGE_SIZE) }.cast::<u8>();
        if start.is_null() {
            return Err(out_of_memory("calloc")(io::Error::last_os_error()));
        }
        Held::Allocation { start, first: start.wrapping_add(start.align_offset(PAGE_SIZE)) }
    } else {
        let mut mapping = map(arm, pages * PAGE_SIZE)?;
        Held::Mapping { first: mapping.as_mut_ptr(), mapping }
    };
    for page in 0..pages {
        let page = held.page(page);
        if arm == Arm::ReadyAround {
            // SAFETY: inside the mapping, which is as long as all shares.
            unsafe { page.read_volatile() };
        }
        touch(page);
    }
    Ok(held)
}

/// CPU time of a thread, in seconds. The scheduler counts `cpu` exactly; the two others are told
/// apart by the tick, and only their proportion is used.
struct Usage {
    cpu: f64,
    user: f64,
    system: f64,
    faults: f64,
}

impl Usage {
    /// Exact CPU since `before`, as user and system.
    fn since(&self, before: &Usage) -> (f64, f64) {
        let cpu = self.cpu - before.cpu;
        let (user, system) = (self.user - before.user, self.system - before.system);
        let share = if user + system > 0.0 { system / (user + system) } else { 0.0 };
        (cpu * (1.0 - share), cpu * share)
    }
}

fn usage() -> Usage {
    let usage = cachewise_measure::children::usage(libc::RUSAGE_THREAD);
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let (user, system) = (seconds(usage.ru_utime), seconds(usage.ru_stime));
    let faults = (usage.ru_minflt + usage.ru_majflt) as f64;
    Usage { cpu: cachewise_measure::clock::thread_cpu_ns() / 1e9, user, system, faults }
}

/// The meeting point of a sample's threads. They wait awake: one that has to be woken begins tens of
/// microseconds after the others, which is as long as a thousand pages take.
struct Gate {
    threads: usize,
    arrived: AtomicUsize,
}

impl Gate {
    /// Lets everybody pass, since not all will come.
    fn open(&self) {
        self.arrived.fetch_add(2 * self.threads, Ordering::AcqRel);
    }

    /// Returns when every thread has called it as often as this one: `meeting` times.
    fn wait(&self, meeting: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0;
        while self.arrived.load(Ordering::Acquire) < meeting * self.threads {
            looks += 1;
            if looks < LOOKS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// One thread's part of a sample, and when its timed part and its reading began and ended.
struct Part {
    sample: Sample,
    taking: (Instant, Instant),
    reading: (Instant, Instant),
}

/// One sample: each thread takes and touches its share, again and again if the cell says so. All
/// but the last giving back is part of it; then all pages are read, and given back.
pub(super) fn sample(arm: Arm, pools: &Pools, cell: &FaultCell) -> Result<Sample> {
    let before = pools.prepare(arm)?;
    let gate = Gate { threads: cell.threads, arrived: AtomicUsize::new(0) };
    let parts: Vec<Part> = std::thread::scope(|scope| {
        let start = |thread| {
            let from = |thread| cell.pages * thread / cell.threads;
            let share = (from(thread)..from(thread + 1), cell.lines);
            let gate = &gate;
            let started = threads::start(scope, move || part(arm, pools, share, cell.reps, gate));
            started.inspect_err(|_| gate.open())
        };
        let threads: Vec<_> = (0..cell.threads).map(start).collect::<Result<_>>()?;
        let panicked = |_| Err(LabError::Child("a thread of page-fault panicked".to_owned()));
        let ended = threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked));
        ended.collect::<Result<_>>()
    })?;
    let span = |of: fn(&Part) -> (Instant, Instant)| {
        let first = parts.iter().map(|part| of(part).0).min();
        let last = parts.iter().map(|part| of(part).1).max();
        first.zip(last).map_or(0.0, |(first, last)| (last - first).as_secs_f64())
    };
    let sum = |of: fn(&Sample) -> f64| parts.iter().map(|part| of(&part.sample)).sum();
    Ok(Sample {
        user: sum(|sample| sample.user),
        system: sum(|sample| sample.system),
        release: sum(|sample| sample.release),
        faults: sum(|sample| sample.faults),
        wall: span(|part| part.taking),
        later: span(|part| part.reading),
        scrub: pools.zeroing(arm)?.saturating_sub(before).as_secs_f64(),
    })
}

fn part(
    arm: Arm,
    pools: &Pools,
    (share, lines): (Range<usize>, usize),
    reps: usize,
    gate: &Gate,
) -> Result<Part> {
    let pages = share.len();
    // The list's own pages are there before, and the pool knows the thread: both are done once in a
    // thread's life and not once a page.
    let mut room = vec![NonNull::dangling(); pages];
    room.clear();
    let known = match arm.pool(pools) {
        Some(_) => take(arm, pools, (0..1, 0), room).and_then(Held::give_back),
        None => Ok(room),
    };
    gate.wait(1);
    let before = usage();
    let begun = Instant::now();
    // Errors wait until everybody has met: nobody is left alone at the gate.
    let taken: Result<Held<'_>> = (|| {
        let mut held = take(arm, pools, (share.clone(), lines), known?)?;
        for _ in 1..reps {
            held = take(arm, pools, (share.clone(), lines), held.give_back()?)?;
        }
        Ok(held)
    })();
    let taking = (begun, Instant::now());
    let after = usage();
    gate.wait(2);
    let begun = Instant::now();
    if let Ok(held) = &taken {
        for page in 0..pages {
            // SAFETY: a page that this thread holds; fresh ones are zero, and so initialised.
            unsafe { Reader::every(held.page(page), PAGE_SIZE, 64) };
        }
    }
    let reading = (begun, Instant::now());
    let read = usage();
    taken?.give_back()?;
    let released = usage();
    let (user, system) = after.since(&before);
    let sample = Sample {
        user,
        system,
        release: released.cpu - read.cpu,
        faults: after.faults - before.faults,
        ..Sample::default()
    };
    Ok(Part { sample, taking, reading })
}

/// Takes pages without touching them, and reads every byte. Returns the pages read.
pub(super) fn check(arm: Arm, pools: &Pools, pages: usize) -> Result<u64> {
    pools.prepare(arm)?;
    let held = take(arm, pools, (0..pages, 0), Vec::with_capacity(pages))?;
    for index in 0..pages {
        // SAFETY: a page that is held, and initialised.
        let bytes = unsafe { std::slice::from_raw_parts_mut(held.page(index), PAGE_SIZE) };
        if let Some(at) = bytes.iter().position(|byte| *byte != 0) {
            let what = format!("{}: byte {at} of page {index} is {}, not 0", arm.name(), bytes[at]);
            return Err(LabError::WrongBytes(what));
        }
        // For whoever gets the page next.
        bytes.fill(0xA5);
    }
    held.give_back()?;
    if let Some(pool) = arm.pool(pools) {
        pool.flush_thread_cache();
    }
    Ok(pages as u64)
}
