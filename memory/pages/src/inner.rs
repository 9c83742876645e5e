//! A pool as all its handles, caches and threads share it: its memory, the lock, and what changes under the lock. On it stand
//! `cache` (the threads' caches, whose memory `magazine` has), `serve` (hands out and takes back), and `upkeep` (zeroes,
//! returns and counts free memory).

pub(crate) mod cache;
pub(crate) mod magazine;
pub(crate) mod serve;
mod upkeep;

use crate::buddy::{Buddy, Core, Frame, FreeError, State, order_for};
use crate::config::Verify;
use crate::engine::{Method, Range};
use crate::error::{Note, PoolError};
use crate::inner::magazine::{Magazines, Room};
use crate::os::{self, Mapping};
use crate::stats::{Events, get};
use crate::thread;
use crate::waiting::{Bell, Word};
use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::vec::Vec;

/// For how many milliseconds after a look scrubbers take nothing: until the next one, and the
/// clock's granularity.
const HOLD_OFF: u32 = 30;
/// Bytes by which a pool grows, at least.
pub(crate) const GROWTH: usize = 4 << 20;

/// Flags: the pool is closed; some of the blocks handed out as zero are read; an engine said that it had zeroed a block,
/// and had not.
const CLOSED: u32 = 1;
const VERIFIED: u32 = 2;
const DISTRUSTED: u32 = 4;

/// A pool. The fields that every hand-out reads come first, and change rarely. In frames, whenever the lock is free:
///
/// ```text
/// capacity        = managed + never managed
/// managed         = allocated + cached + dirty + in flight + zero resident + zero absent + quarantined
/// cached         <= capacity / 4
/// ```
#[repr(C)]
pub(crate) struct Inner {
    /// Closed, verified, distrusted; 0 where a hand-out from a cache has nothing to look at.
    flags: AtomicU32,
    /// The process that made it ([`os::generation`]).
    generation: u32,
    /// The pool's number; none is used twice.
    pub(crate) id: u64,
    /// First byte; aligned to a huge page.
    base: *mut u8,
    /// A tag and links for each frame.
    frames: *const Frame,
    /// Number of frames.
    pub(crate) capacity: u32,
    /// Bytes of a frame, as a power of two: a page of the system.
    pub(crate) frame_shift: u32,
    /// The most that threads' caches may hold.
    pub(crate) room: Room,
    settings: Settings,
    locked: Locked,
    /// All caches of this pool. Changed under the lock.
    pub(crate) magazines: Magazines,
    /// State of the scrubber, as [`ScrubberState`](crate::stats::ScrubberState).
    pub(crate) state: AtomicU8,
    /// Number of zeroed blocks handed out, of which every n-th is read.
    pub(crate) verify_turn: AtomicU32,
    notes: Mutex<Vec<Note>>,
    mappings: ManuallyDrop<Vec<Mapping>>,
}

/// The lock and what changes under it, apart from what is only read.
#[repr(C, align(128))]
struct Locked {
    word: Word,
    core: UnsafeCell<Core>,
    /// Bytes of zeroed requests that came past the caches: the scrubber's work is being used. Only
    /// written under the lock.
    demand: AtomicU64,
    /// Wakes scrubbers.
    wake: Bell,
    /// Until when scrubbers take nothing: somebody needs what they have in flight. A moment and not
    /// a count, so that a thread that ends while it waits leaves nothing behind.
    hold_off: AtomicU32,
    events: Events,
}

/// The builder's settings that the operations here need.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) verify: Verify,
    pub(crate) scrub_start: u32,
    pub(crate) max_order: u32,
    /// Bytes faulted in together.
    pub(crate) fault_around: usize,
    /// Bytes that can only be returned to the system together.
    pub(crate) trim_unit: usize,
    pub(crate) method: Method,
    pub(crate) kind: Kind,
    /// True if memory is locked as the pool grows into it, as the process locks all its mappings.
    pub(crate) locks: bool,
}

/// The kind of memory that a pool has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Private: address space, until the pool grows into it.
    Private,
    /// Private, in explicit huge pages.
    Hugetlb,
    /// A lease, or registered with a device: nothing is returned.
    Lent,
}

/// The places of a pool's parts.
pub(crate) struct Places {
    pub(crate) frames: *const Frame,
    pub(crate) base: *mut u8,
    pub(crate) capacity: u32,
    pub(crate) mappings: Vec<Mapping>,
}

// SAFETY: the frames are atomics, and the core is behind the lock; the data is reached through blocks, each of which
// has one owner.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// The lock, held.
pub(crate) struct Guard<'a>(&'a Inner);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.locked.word.release();
    }
}

impl Guard<'_> {
    pub(crate) fn buddy(&mut self) -> Buddy<'_> {
        // SAFETY: the lock is held for as long as the borrow of this guard lasts.
        let core = unsafe { &mut *self.0.locked.core.get() };
        Buddy::new(core, self.0.frames())
    }
}

/// Milliseconds on a clock that never goes back.
pub(crate) fn now() -> u32 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    Duration::try_from(time).map_or(0, |time| time.as_millis() as u32)
}

impl Inner {
    pub(crate) fn new(
        places: Places,
        settings: Settings,
        cache_blocks: usize,
        notes: Vec<Note>,
    ) -> Inner {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let flags = if settings.verify == Verify::Off { 0 } else { VERIFIED };
        Inner {
            flags: AtomicU32::new(flags),
            generation: os::generation(),
            id: IDS.fetch_add(1, Ordering::Relaxed),
            base: places.base,
            frames: places.frames,
            capacity: places.capacity,
            frame_shift: os::page_size().trailing_zeros(),
            room: Room::new(places.capacity, cache_blocks),
            locked: Locked {
                word: Word::default(),
                core: UnsafeCell::new(Core::new(settings.max_order)),
                demand: AtomicU64::new(0),
                wake: Bell::default(),
                hold_off: AtomicU32::new(0),
                events: Events::default(),
            },
            settings,
            magazines: Magazines::default(),
            state: AtomicU8::new(0),
            verify_turn: AtomicU32::new(0),
            notes: Mutex::new(notes),
            mappings: ManuallyDrop::new(places.mappings),
        }
    }

    #[inline(always)]
    pub(crate) fn frames(&self) -> &[Frame] {
        // SAFETY: that many frames are mapped, all of them atomics, for as long as this value
        // lives.
        unsafe { std::slice::from_raw_parts(self.frames, self.capacity as usize) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn events(&self) -> &Events {
        &self.locked.events
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    pub(crate) fn bytes(&self, order: u32) -> usize {
        1usize << (order + self.frame_shift)
    }

    /// Bytes of that many frames.
    pub(crate) fn length(&self, frames: u32) -> usize {
        (frames as usize) << self.frame_shift
    }

    /// The highest order of blocks of at most so many bytes; at least 0.
    pub(crate) fn order_in(&self, bytes: usize) -> u32 {
        (bytes >> self.frame_shift).max(1).ilog2()
    }

    #[inline(always)]
    pub(crate) fn address(&self, index: u32) -> *mut u8 {
        self.base.wrapping_add((index as usize) << self.frame_shift)
    }

    /// The memory of that many frames.
    pub(crate) fn range(&self, index: u32, frames: u32) -> Range {
        Range { start: self.address(index), length: self.length(frames) }
    }

    /// The frame at an address.
    #[inline(always)]
    pub(crate) fn index(&self, address: *const u8) -> Result<u32, FreeError> {
        let offset = (address as usize).wrapping_sub(self.base as usize);
        if offset >= (self.capacity as usize) << self.frame_shift {
            return Err(FreeError::Foreign);
        }
        if offset & ((1 << self.frame_shift) - 1) != 0 {
            return Err(FreeError::Misaligned);
        }
        u32::try_from(offset >> self.frame_shift).map_err(|_| FreeError::Foreign)
    }

    pub(crate) fn note(&self, note: Note) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Checks whether this is the process that made the pool, and not its forked child.
    #[inline(always)]
    pub(crate) fn is_here(&self) -> bool {
        self.generation == os::generation()
    }

    /// Checks whether a hand-out has nothing to look at.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.flags.load(Ordering::Relaxed) == 0 && self.is_here()
    }

    /// An error where the pool is closed, or the parent's.
    pub(crate) fn usable(&self) -> Result<(), PoolError> {
        if !self.is_here() {
            return Err(PoolError::Forked);
        }
        if self.is_closed() { Err(PoolError::Closed) } else { Ok(()) }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & CLOSED != 0
    }

    pub(crate) fn close(&self) {
        self.flags.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// Checks whether an engine said that it had zeroed a block, and had not.
    pub(crate) fn distrusts(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & DISTRUSTED != 0
    }

    /// An engine was caught in a lie: whatever is zero and unused is dirty from here on. What threads' caches
    /// hold is zeroed again when it is handed out.
    pub(crate) fn distrust(&self) {
        self.flags.fetch_or(DISTRUSTED, Ordering::SeqCst);
        let Ok(mut guard) = self.lock() else { return };
        let now = now();
        while let Some((index, order)) = guard.buddy().take_zeroed_away() {
            let landed = guard.buddy().land(index, order, State::Dirty, now);
            debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
        }
    }

    /// The lock. Refused in a forked child, which may have a copy of it that nobody releases, and in a signal handler that
    /// interrupted its holder.
    pub(crate) fn lock(&self) -> Result<Guard<'_>, PoolError> {
        if !self.is_here() {
            return Err(PoolError::Forked);
        }
        let mark = thread::current().mark();
        if self.locked.word.is_held_by(mark) {
            return Err(PoolError::Reentered);
        }
        self.locked.word.acquire(mark);
        Ok(Guard(self))
    }

    /// Takes more frames into use, so that a run of so many, or a block as large, is among them. As many as usual, or where
    /// the system refuses that, as few as will do.
    pub(crate) fn grow(&self, buddy: &mut Buddy<'_>, frames: u32) -> rustix::io::Result<()> {
        let managed = buddy.core().managed();
        let size = 1u64 << order_for(frames).min(self.settings.max_order);
        let fitting = u64::from(managed).next_multiple_of(size) + u64::from(frames).max(size);
        let usual = u64::from(managed) + (GROWTH >> self.frame_shift) as u64;
        let end = |wanted: u64| wanted.min(u64::from(self.capacity)) as u32;
        let opened = |end| self.open(managed, end).map(|()| end);
        let grown = opened(end(fitting.max(usual))).or_else(|_| opened(end(fitting)))?;
        buddy.extend(grown - managed, State::ZeroAbsent, now());
        Ok(())
    }

    /// Makes memory of the address space between two frames. Only under the lock, or before the pool is used.
    pub(crate) fn open(&self, from: u32, end: u32) -> rustix::io::Result<()> {
        let Range { start, length } = self.range(from, end - from);
        if length == 0 {
            return Ok(());
        }
        match self.settings.kind {
            Kind::Private => {
                // SAFETY: whole pages of this mapping, which nobody uses yet.
                unsafe { os::open(start, length) }?;
                if self.settings.locks {
                    // SAFETY: as above.
                    unsafe { os::lock_as_the_process_does(start, length) }?;
                }
                Ok(())
            }
            Kind::Hugetlb => self.huge_or_small(from, end),
            Kind::Lent => Ok(()),
        }
    }

    /// Touches explicit huge pages between two frames by a call that says what a touch would end the process for: a control
    /// group may allow fewer than were reserved. From the first that is not given on, all that is left is ordinary memory.
    fn huge_or_small(&self, from: u32, end: u32) -> rustix::io::Result<()> {
        let (unit, whole) = (self.settings.trim_unit, self.length(self.capacity));
        let pages = (self.length(from).next_multiple_of(unit)..self.length(end)).step_by(unit);
        for offset in pages {
            let start = self.base.wrapping_add(offset);
            // SAFETY: a huge page of this mapping, which nobody uses yet.
            if let Err(errno) = unsafe { os::populate(start, unit) } {
                // SAFETY: as above, to the end of the mapping.
                unsafe { os::replace(start, whole - offset) }?;
                if !self.notes().iter().any(|note| matches!(note, Note::NoHugetlb(_))) {
                    self.note(Note::NoHugetlb(os::refused(errno)));
                }
                break;
            }
        }
        Ok(())
    }

    /// Zeroes frames just taken, through the caches.
    pub(crate) fn hot_zero(&self, index: u32, frames: u32) {
        // SAFETY: the run was just taken: mapped, and nobody else's.
        let zeroed = unsafe { Method::Through.zero(self.range(index, frames)) };
        debug_assert!(zeroed.is_ok(), "stores cannot be refused");
    }

    /// Has scrubbers take nothing for a moment.
    pub(crate) fn hold_off(&self) {
        let until = now().wrapping_add(HOLD_OFF);
        self.locked.hold_off.store(until, Ordering::Relaxed);
    }

    /// Checks whether an allocation waits for blocks that scrubbers have in flight.
    pub(crate) fn holds_off(&self) -> bool {
        let left = self.locked.hold_off.load(Ordering::Relaxed).wrapping_sub(now());
        (1..=HOLD_OFF).contains(&left)
    }

    /// Lets scrubbers look again: all, or if one waits for what is freed and asked for.
    pub(crate) fn wake_scrubber(&self, always: bool) {
        self.locked.wake.ring(always);
    }

    /// Sleeps until woken, unless `ready` says that there is something to do already. Frees and
    /// requests wake it only if `by_use`, and what they change is looked at under the lock.
    pub(crate) fn sleep(
        &self,
        timeout: Option<Duration>,
        by_use: bool,
        ready: impl FnOnce() -> bool,
    ) {
        self.locked.wake.wait(timeout, by_use, ready);
    }

    /// Says that so many frames of zeroed memory were asked for. Only under the lock.
    pub(crate) fn wanted(&self, frames: u64) {
        let demand = get(&self.locked.demand).wrapping_add(frames << self.frame_shift);
        self.locked.demand.store(demand, Ordering::Relaxed);
    }

    /// Bytes of zeroed memory that were asked for.
    pub(crate) fn demand(&self) -> u64 {
        get(&self.locked.demand)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A child was not given memory that a fork cannot copy: what is there now may be somebody else's.
        if self.is_here() || self.settings.kind == Kind::Private {
            // SAFETY: not used again.
            unsafe { ManuallyDrop::drop(&mut self.mappings) };
        }
    }
}
