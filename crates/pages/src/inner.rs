//! What all handles, caches and threads of a pool share: its memory, its lock, its paths past the
//! caches. Long for one reason: all of it is what may be done under the one lock, and is read
//! together.
//!
//! Bookkeeping lies in memory of its own ([`Control`] and the frames after it), mapped and not
//! allocated: it can be shared between processes, and a pool can be what an allocator is made of.

use crate::buddy::{Buddy, Core, Counts, Frame, FreeError, ORDERS, State, Tag, Use, order_for};
use crate::cache::{self, Magazines};
use crate::config::Verify;
use crate::engine::{Method, Range};
use crate::error::{Note, PoolError};
use crate::fork::{self, Slot};
use crate::os::{self, Alive, Backing, Lock, Locked, Mapping};
use crate::shared;
use crate::stats::{Events, OrderStats, ScrubberState, Stats, add, get};
use crate::thread;
use rustix::fd::OwnedFd;
use std::boxed::Box;
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::vec::Vec;

/// Single pages in a per-thread cache at most.
pub(crate) const CACHE_BLOCKS: usize = 256;
/// Pieces of zeroed memory in a per-thread cache, not yet cut into blocks, for each order.
pub(crate) const PIECES: usize = 32;
/// Orders that per-thread caches hold: up to 128 KiB of 4 KiB pages.
pub(crate) const CACHED_ORDERS: usize = 6;
/// Processes that can share a pool.
pub(crate) const PROCESSES: usize = 64;
/// The owner of everything in a pool that is not shared.
const SOLE_OWNER: u16 = 1;
const NO_OWNER: u32 = 0;
/// What serves a zeroed request, best first.
const ZERO_WANTED: [State; 3] = [State::ZeroResident, State::Dirty, State::ZeroAbsent];
/// How long an allocation waits for blocks in flight before it says that there are none. A chunk
/// takes microseconds, but the thread that has it is of idle priority: on a busy machine it may not
/// run for tenths of a second, and to be late is better than to have no memory.
const LANDING: Duration = Duration::from_secs(1);
/// How often it looks.
const LANDING_WAIT: Duration = Duration::from_micros(100);
/// For how many milliseconds after a look scrubbers take nothing: until the next one, and the clock's
/// granularity.
const HOLD_OFF: u32 = 30;

/// What follows it begins a pair of cache lines (that much is fetched together).
#[repr(align(128))]
struct Apart;

/// The pool's bookkeeping, except for the frames. Its layout is the same in every process that runs
/// this version; `shared.rs` refuses others.
#[repr(C)]
pub(crate) struct Control {
    pub(crate) identity: shared::Identity,
    pub(crate) ready: AtomicU32,
    /// Every hand-out reads what stands before it; what follows moves from CPU to CPU with the lock.
    _lock_apart: Apart,
    /// The lock of a shared pool. A private one's is in its slot (`fork.rs`).
    lock: Lock,
    /// Bytes of zeroed requests that came past the caches: the scrubber's work is being used. Only
    /// written under the lock.
    pub(crate) demand: AtomicU64,
    /// How often the lock was taken. Only written under it.
    holds: AtomicU64,
    core: UnsafeCell<Core>,
    _waiting_apart: Apart,
    /// Changes when scrubbers have something to look at; they wait on it.
    wake: AtomicU32,
    /// Not 0 while a scrubber may wait for something to be freed or asked for; whoever wakes it says 0,
    /// so that it is woken once. Those that wait for a time, or were told to rest, do not say so.
    sleepers: AtomicU32,
    /// Until when scrubbers take nothing: somebody needs what they have in flight. A moment and not
    /// a count, so that whoever dies waiting leaves nothing behind.
    hold_off: AtomicU32,
    pub(crate) events: Events,
    /// The processes attached (`shared.rs`).
    pub(crate) processes: [AtomicU64; PROCESSES],
}

/// Of [`Inner::gate`]: the pool is closed.
const CLOSED: u32 = 1;
/// Of [`Inner::gate`]: what is handed out as zero is read, at times.
const VERIFIED: u32 = 2;

/// What every hand-out reads comes first, and changes rarely.
#[repr(C)]
pub(crate) struct Inner {
    /// 0 where a hand-out has nothing to look at: not closed, nothing to verify.
    gate: AtomicU32,
    owner: AtomicU32,
    pub(crate) id: u64,
    base: *mut u8,
    frames: *const Frame,
    pub(crate) frame_shift: u32,
    pub(crate) capacity: u32,
    /// Blocks of each order in a per-thread cache at most.
    pub(crate) rooms: [u32; CACHED_ORDERS],
    pub(crate) backing: Backing,
    generation: AtomicU32,
    control: *const Control,
    slot: &'static Slot,
    settings: Settings,
    pub(crate) magazines: Magazines,
    notes: AtomicPtr<Noted>,
    verify_turn: AtomicU32,
    pub(crate) scrubber_state: AtomicU8,
    pub(crate) load_rests: AtomicU64,
    /// Not 0 while free resident memory is to be brought up to its mark, by the scrubber's thread.
    behind: AtomicU32,
    /// The file of a shared pool, and what tells it from any other.
    pub(crate) file: Option<(OwnedFd, (u64, u64))>,
    /// Says that this process lives. Only under the lock.
    alive: UnsafeCell<Option<Alive>>,
    /// Nothing reads these; they unmap.
    _mappings: Vec<Mapping>,
}

/// A note, and those before it. A list that only grows needs no lock, which a fork would have to see to.
struct Noted {
    note: Note,
    before: *mut Noted,
}

/// What the paths here need of the builder.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) growth: usize,
    pub(crate) cache_blocks: usize,
    pub(crate) verify: Verify,
    pub(crate) scrub_start: u32,
    pub(crate) max_order: u32,
    /// Bytes faulted in together.
    pub(crate) fault_around: usize,
    /// Bytes that can only be returned to the system together.
    pub(crate) trim_unit: usize,
    pub(crate) method: Method,
    /// Whether a hand-out waits for others: for the lock, and for blocks in flight.
    pub(crate) waits: bool,
    /// The order of a huge page; 0 where the pool asked for none.
    pub(crate) huge_order: u32,
    /// Free bytes at most that are made resident ahead of need.
    pub(crate) ahead: usize,
}

/// Where the parts of a pool are.
pub(crate) struct Places {
    pub(crate) control: *const Control,
    pub(crate) frames: *const Frame,
    pub(crate) base: *mut u8,
    pub(crate) capacity: u32,
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) file: Option<OwnedFd>,
}

// SAFETY: the control block and the frames are atomics, a lock, and what the lock protects; the data
// is reached through blocks, each of which has one owner.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// The lock, held.
pub(crate) struct Guard<'a> {
    inner: &'a Inner,
    /// False where this thread has all locks for a fork, and keeps them.
    taken: bool,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if !self.taken {
            return;
        }
        match self.inner.backing {
            Backing::Shared => self.inner.control().lock.unlock(),
            Backing::Private => {
                self.inner.slot.release();
                thread::current().end();
            }
        }
    }
}

impl Guard<'_> {
    pub(crate) fn buddy(&mut self) -> Buddy<'_> {
        // SAFETY: the lock is held for as long as the borrow of this guard lasts.
        let core = unsafe { &mut *self.inner.control().core.get() };
        Buddy::new(core, self.inner.frames())
    }
}

/// A call that has blocks in flight while it has no lock. A child that is forked from a signal handler
/// in its middle must not take these back before it is over.
struct Working<'a>(&'a thread::Thread);

impl Working<'_> {
    fn begin() -> Working<'static> {
        let thread = thread::current();
        thread.working.fetch_add(1, Ordering::Relaxed);
        Working(thread)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Milliseconds on a clock that all processes share.
pub(crate) fn now() -> u32 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    #[allow(clippy::unnecessary_cast, reason = "the fields have other types on other targets")]
    let millis = (time.tv_sec as u64) * 1000 + (time.tv_nsec as u64) / 1_000_000;
    millis as u32
}

/// Bytes before the frames.
pub(crate) const fn control_bytes() -> usize {
    size_of::<Control>().next_multiple_of(4096)
}

/// Bytes of bookkeeping for that many frames.
pub(crate) fn metadata_bytes(frames: usize) -> Option<usize> {
    frames.checked_mul(size_of::<Frame>())?.checked_add(control_bytes())
}

/// Makes an empty control block.
///
/// # Safety
/// `place` is writable and zero for [`control_bytes`], aligned to 4096, and nobody else uses it.
pub(crate) unsafe fn init_control(place: *mut Control, max_order: u32, backing: Backing) {
    if backing == Backing::Shared {
        // SAFETY: inside the block; the caller's promise.
        let lock = unsafe { &raw mut (*place).lock };
        // SAFETY: the caller's promise.
        unsafe { Lock::init(lock) };
    }
    // SAFETY: inside the block; the caller's promise.
    let core = unsafe { &raw mut (*place).core };
    // SAFETY: the caller's promise; an UnsafeCell has the layout of what it holds.
    unsafe { core.cast::<Core>().write(Core::new(max_order)) };
}

impl Inner {
    pub(crate) fn new(
        places: Places,
        backing: Backing,
        settings: Settings,
        notes: Vec<Note>,
    ) -> Arc<Inner> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        cache::ending::prepare();
        let identity = places.file.as_ref().and_then(os::file_identity);
        let inner = Arc::new(Inner {
            gate: AtomicU32::new(if settings.verify == Verify::Off { 0 } else { VERIFIED }),
            owner: AtomicU32::new(match backing {
                Backing::Private => u32::from(SOLE_OWNER),
                Backing::Shared => NO_OWNER,
            }),
            id: IDS.fetch_add(1, Ordering::Relaxed),
            base: places.base,
            frames: places.frames,
            frame_shift: os::page_size().trailing_zeros(),
            capacity: places.capacity,
            rooms: cache::rooms(settings.cache_blocks),
            backing,
            generation: AtomicU32::new(fork::generation()),
            control: places.control,
            slot: fork::slot(),
            settings,
            magazines: Magazines::default(),
            notes: AtomicPtr::default(),
            verify_turn: AtomicU32::new(0),
            scrubber_state: AtomicU8::new(0),
            load_rests: AtomicU64::new(0),
            behind: AtomicU32::new(0),
            file: places.file.zip(identity),
            alive: UnsafeCell::new(None),
            _mappings: places.mappings,
        });
        fork::enter(inner.slot, &inner);
        notes.into_iter().for_each(|note| inner.note(note));
        inner
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: mapped and initialised for as long as this value lives; all of it is atomic or
        // behind the lock.
        unsafe { &*self.control }
    }

    #[inline(always)]
    pub(crate) fn frames(&self) -> &[Frame] {
        // SAFETY: that many frames are mapped, all of them atomics, for as long as this value lives.
        unsafe { std::slice::from_raw_parts(self.frames, self.capacity as usize) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    #[inline(always)]
    pub(crate) fn owner(&self) -> u16 {
        self.owner.load(Ordering::Relaxed) as u16
    }

    /// Enters this process in a shared pool's list. Only under the lock, or when nobody else has the pool.
    pub(crate) fn enter(&self) -> Result<(), PoolError> {
        let Some((file, _)) = &self.file else { return Ok(()) };
        let (owner, alive) = shared::enter(self.control(), file)?;
        self.owner.store(u32::from(owner), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        drop(unsafe { std::mem::replace(&mut *self.alive.get(), alive) });
        Ok(())
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    pub(crate) fn bytes(&self, order: u32) -> usize {
        1usize << (order + self.frame_shift)
    }

    #[inline(always)]
    pub(crate) fn address(&self, index: u32) -> *mut u8 {
        self.base.wrapping_add((index as usize) << self.frame_shift)
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
        let new = Box::into_raw(Box::new(Noted { note, before: std::ptr::null_mut() }));
        let mut before = self.notes.load(Ordering::Acquire);
        loop {
            // SAFETY: made above, and nobody else's yet.
            unsafe { (*new).before = before };
            match self.notes.compare_exchange(before, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(other) => before = other,
            }
        }
    }

    pub(crate) fn notes(&self) -> Vec<Note> {
        let mut found = Vec::new();
        let mut next = self.notes.load(Ordering::Acquire);
        // SAFETY: null, or a note, which stays as long as this value.
        while let Some(noted) = unsafe { next.as_ref() } {
            found.insert(0, noted.note.clone());
            next = noted.before;
        }
        found
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.gate.load(Ordering::Relaxed) & CLOSED != 0
    }

    pub(crate) fn close(&self) {
        self.gate.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// Whether a hand-out has nothing to look at.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.gate.load(Ordering::Relaxed) == 0
    }

    /// Whether this process is the one that last locked the pool, and not a fork of it.
    pub(crate) fn is_current(&self) -> bool {
        self.generation.load(Ordering::Relaxed) == fork::generation()
    }

    pub(crate) fn lock(&self) -> Result<Guard<'_>, PoolError> {
        self.lock_for(true)
    }

    /// [`lock`](Inner::lock) for a hand-out, which may be told to wait for nobody.
    pub(crate) fn lock_to_take(&self) -> Result<Guard<'_>, PoolError> {
        self.lock_for(self.settings.waits)
    }

    fn lock_for(&self, wait: bool) -> Result<Guard<'_>, PoolError> {
        let mut guard = match self.backing {
            Backing::Private => self.lock_private(wait)?,
            Backing::Shared => self.lock_shared()?,
        };
        if !self.is_current() {
            // In a signal handler that interrupted the pool, which goes on after it.
            let under_way = thread::current().working.load(Ordering::Relaxed) != 0;
            if under_way || cache::interrupted(self) {
                return Err(PoolError::Reentered);
            }
            self.after_fork(&mut guard)?;
        }
        let holds = &self.control().holds;
        holds.store(get(holds).wrapping_add(1), Ordering::Relaxed);
        Ok(guard)
    }

    fn lock_private(&self, wait: bool) -> Result<Guard<'_>, PoolError> {
        let thread = thread::current();
        if self.slot.is_the_forkers(thread) {
            // In a program's fork handler: nobody else is in the pool, and nobody comes.
            return Ok(Guard { inner: self, taken: false });
        }
        if !thread.begin(self.id) {
            return Err(PoolError::Reentered);
        }
        if !self.slot.acquire(wait) {
            thread.end();
            return Err(PoolError::Busy);
        }
        Ok(Guard { inner: self, taken: true })
    }

    fn lock_shared(&self) -> Result<Guard<'_>, PoolError> {
        let control = self.control();
        let locked = control.lock.lock().map_err(|errno| match errno {
            rustix::io::Errno::DEADLK => PoolError::Reentered,
            errno => PoolError::System { what: "locking the pool", source: errno.into() },
        })?;
        let mut guard = Guard { inner: self, taken: true };
        if locked == Locked::OwnerDied {
            guard.buddy().rebuild(now());
            control.lock.repaired();
            self.reap(&mut guard);
        }
        Ok(guard)
    }

    /// Does what a fork left to be done, if there was one.
    pub(crate) fn settle(&self) {
        if !self.is_current() {
            drop(self.lock());
        }
    }

    /// First use in a forked child. A private pool is a copy: what belonged to threads that do not
    /// exist here comes back as dirty. A shared pool is the parent's: this process is a new owner
    /// and has no claim on what the parent holds.
    fn after_fork(&self, guard: &mut Guard<'_>) -> Result<(), PoolError> {
        self.magazines.forget(cache::place(self));
        match self.backing {
            Backing::Private => {
                let mut buddy = guard.buddy();
                buddy.rebuild(now());
                buddy.reclaim(|tag| tag.used() != Some(Use::Allocated), now());
            }
            Backing::Shared => self.enter()?,
        }
        self.scrubber_state.store(ScrubberState::Off as u8, Ordering::Relaxed);
        self.generation.store(fork::generation(), Ordering::Relaxed);
        Ok(())
    }

    /// Takes back what processes held that no longer exist. Returns the frames gained.
    pub(crate) fn reap(&self, guard: &mut Guard<'_>) -> u64 {
        let Some((file, identity)) = &self.file else { return 0 };
        let dead = shared::dead(self.control(), file, *identity, self.owner());
        if dead.is_empty() {
            return 0;
        }
        let gone = |tag: Tag| dead.contains(&tag.owner());
        let gained = guard.buddy().reclaim(gone, now());
        shared::leave(self.control(), &dead);
        gained
    }

    /// Lets scrubbers look again.
    pub(crate) fn wake_scrubber(&self, always: bool) {
        let control = self.control();
        let sleeps = || control.sleepers.load(Ordering::SeqCst) != 0;
        if always || (sleeps() && control.sleepers.swap(0, Ordering::SeqCst) != 0) {
            control.wake.fetch_add(1, Ordering::SeqCst);
            let _ = rustix::thread::futex::wake(&control.wake, self.futex_flags(), u32::MAX >> 1);
        }
    }

    fn futex_flags(&self) -> rustix::thread::futex::Flags {
        match self.backing {
            Backing::Private => rustix::thread::futex::Flags::PRIVATE,
            Backing::Shared => rustix::thread::futex::Flags::empty(),
        }
    }

    /// Whether an allocation waits for what scrubbers have in flight.
    pub(crate) fn holds_off(&self) -> bool {
        let left = self.control().hold_off.load(Ordering::Relaxed).wrapping_sub(now());
        (1..=HOLD_OFF).contains(&left)
    }

    /// Sleeps until woken, unless `ready` says that there is something to do already. Frees and requests
    /// wake it only if `by_use`.
    pub(crate) fn sleep(
        &self,
        timeout: Option<Duration>,
        by_use: bool,
        ready: impl FnOnce() -> bool,
    ) {
        let control = self.control();
        let seen = control.wake.load(Ordering::SeqCst);
        if by_use {
            control.sleepers.store(1, Ordering::SeqCst);
        }
        if !ready() {
            let timeout = timeout.map(|timeout| rustix::thread::futex::Timespec {
                tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(timeout.subsec_nanos()),
            });
            let flags = self.futex_flags();
            let _ = rustix::thread::futex::wait(&control.wake, flags, seen, timeout.as_ref());
        }
    }

    /// Says that so many frames of zeroed memory were asked for. Only under the lock.
    pub(crate) fn wanted(&self, frames: u64) {
        let demand = &self.control().demand;
        demand.store(get(demand).wrapping_add(frames << self.frame_shift), Ordering::Relaxed);
    }

    /// A zeroed run of `frames` frames, past the caches. Returns its first frame.
    #[cold]
    pub(crate) fn zalloc(&self, frames: u32) -> Result<u32, PoolError> {
        let order = self.order(frames)?;
        let events = &self.control().events;
        if frames == 1 << order
            && let Some((index, dirty)) = cache::take_zeroed(self, order)
        {
            if dirty {
                self.hot_zero(index, frames);
            }
            self.verify(index, frames)?;
            return Ok(index);
        }
        let mut guard = self.lock_to_take()?;
        self.wanted(u64::from(frames));
        if let Some(index) = guard.buddy().take(order, State::ZeroResident, self.owner()) {
            self.finish_run(&mut guard, index, frames, State::ZeroResident)?;
            let behind = self.falls_behind(&mut guard);
            drop(guard);
            if behind {
                self.wake_scrubber(true);
            }
            add(&events.zero_hits[order as usize], 1);
            self.verify(index, frames)?;
            return Ok(index);
        }
        drop(guard);
        add(&events.zero_misses[order as usize], 1);
        self.wake_scrubber(false);
        let (index, state) = self.take_any(frames, order, &ZERO_WANTED)?;
        match state {
            State::Dirty => {
                self.hot_zero(index, frames);
                add(&events.hot_zeroed, u64::from(frames) << self.frame_shift);
            }
            State::ZeroAbsent => self.populate(index, frames)?,
            State::ZeroResident => {}
        }
        self.verify(index, frames)?;
        Ok(index)
    }

    /// A run of `frames` frames with any contents, past the caches' stacks. Returns its first frame.
    #[cold]
    pub(crate) fn alloc(&self, frames: u32) -> Result<u32, PoolError> {
        let order = self.order(frames)?;
        let events = &self.control().events;
        if frames == 1 << order
            && let Some(index) = cache::take_dirty(self, order)
        {
            return Ok(index);
        }
        let wanted = [State::Dirty, State::ZeroResident, State::ZeroAbsent];
        let (index, state) = self.take_any(frames, order, &wanted)?;
        match state {
            State::Dirty => {}
            State::ZeroResident => add(&events.wasted, u64::from(frames) << self.frame_shift),
            State::ZeroAbsent => self.populate(index, frames)?,
        }
        add(&events.dirty_allocations, 1);
        Ok(index)
    }

    fn order(&self, frames: u32) -> Result<u32, PoolError> {
        if self.is_closed() {
            return Err(PoolError::Closed);
        }
        let max_order = self.settings.max_order;
        let order = order_for(frames);
        if order > max_order {
            return Err(PoolError::Order { order, max_order });
        }
        Ok(order)
    }

    /// A block from whatever there is: by state in the order given, then merged, then by growing,
    /// then from this thread's own cache, then from what others have in flight at the moment.
    fn take_any(
        &self,
        frames: u32,
        order: u32,
        wanted: &[State],
    ) -> Result<(u32, State), PoolError> {
        let mut deadline = None;
        let mut flushed = false;
        loop {
            let mut guard = self.lock_to_take()?;
            let found = self.take_once(&mut guard, frames, order, wanted);
            if let Some((index, state, whole)) = found {
                // Absent memory is faulted in as a whole first (`populate`).
                if whole && state != State::ZeroAbsent {
                    self.finish_run(&mut guard, index, frames, state)?;
                }
                let behind = self.falls_behind(&mut guard);
                drop(guard);
                if behind {
                    self.wake_scrubber(true);
                }
                return Ok((index, state));
            }
            let in_flight = guard.buddy().core().counts().in_flight;
            let reaped = self.reap(&mut guard);
            drop(guard);
            if reaped > 0 {
                continue;
            }
            if !flushed {
                flushed = true;
                cache::flush(self);
                continue;
            }
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + LANDING);
            if in_flight == 0 || !self.settings.waits || Instant::now() >= deadline {
                return Err(PoolError::Exhausted {
                    bytes: (frames as usize) << self.frame_shift,
                    capacity: (self.capacity as usize) << self.frame_shift,
                });
            }
            let until = now().wrapping_add(HOLD_OFF);
            self.control().hold_off.store(until, Ordering::Relaxed);
            std::thread::sleep(LANDING_WAIT);
        }
    }

    /// A block and its state, and whether it is a whole block of `order` or larger, from which the run is
    /// still to be cut, or the run itself.
    fn take_once(
        &self,
        guard: &mut Guard<'_>,
        frames: u32,
        order: u32,
        wanted: &[State],
    ) -> Option<(u32, State, bool)> {
        let owner = self.owner();
        let mut buddy = guard.buddy();
        let by_state = |buddy: &mut Buddy<'_>| {
            wanted.iter().find_map(|state| {
                if *state == State::ZeroAbsent {
                    return Some((buddy.take(self.around(order), *state, owner)?, *state, true));
                }
                let whole = buddy.take(order, *state, owner).map(|index| (index, *state, true));
                whole.or_else(|| Some((buddy.take_run(frames, *state, owner)?, *state, false)))
            })
        };
        // Absent memory in smaller portions where there are no larger ones.
        let absent = State::ZeroAbsent;
        let held = |buddy: &mut Buddy<'_>| {
            by_state(buddy)
                .or_else(|| Some((buddy.take(order, absent, owner)?, absent, true)))
                .or_else(|| {
                    buddy.take_mixed(order, owner).map(|(index, state)| (index, state, true))
                })
        };
        if let Some(found) = held(&mut buddy) {
            return Some(found);
        }
        self.grow(&mut buddy, order);
        held(&mut buddy)
    }

    /// How much free resident memory there is to be, by what is in use.
    fn mark(&self, counts: &Counts) -> u64 {
        let most = (self.settings.ahead >> self.frame_shift) as u64;
        let mark = most.min(counts.out / 8);
        // Less than the system brings at once is not worth a thread's while.
        if mark >> self.around(0) == 0 { 0 } else { mark }
    }

    /// After a hand-out: whether free resident memory has fallen below half its mark, and nobody was told.
    pub(crate) fn falls_behind(&self, guard: &mut Guard<'_>) -> bool {
        if self.settings.ahead == 0 || self.is_behind() {
            return false;
        }
        let buddy = guard.buddy();
        let counts = buddy.core().counts();
        let more = counts.zero_absent != 0 || buddy.core().managed() < self.capacity;
        if !more || counts.dirty + counts.zero_resident >= self.mark(&counts) / 2 {
            return false;
        }
        self.behind.store(1, Ordering::SeqCst);
        true
    }

    /// Whether [`grow_ahead`](Inner::grow_ahead) has something to do.
    pub(crate) fn is_behind(&self) -> bool {
        self.behind.load(Ordering::SeqCst) != 0
    }

    /// Forgets that there is to be more, until the next hand-out finds too little again.
    pub(crate) fn stay_behind(&self) {
        self.behind.store(0, Ordering::SeqCst);
    }

    /// Makes one portion of free memory resident, if there is to be more of it. False when that is done,
    /// or cannot be.
    pub(crate) fn grow_ahead(&self) -> bool {
        self.is_behind() && self.grow_portion()
    }

    fn grow_portion(&self) -> bool {
        let _working = Working::begin();
        let Ok(mut guard) = self.lock() else {
            self.stay_behind();
            return false;
        };
        let mut buddy = guard.buddy();
        let counts = buddy.core().counts();
        // Forgotten under the lock, as it is remembered: nobody who falls behind meanwhile is overheard.
        if counts.dirty + counts.zero_resident >= self.mark(&counts) {
            self.stay_behind();
            return false;
        }
        // Portion follows portion, so that larger blocks come of them.
        let (order, owner) = (self.around(0), self.owner());
        let taken = buddy.take_absent(order, owner).or_else(|| {
            self.grow(&mut buddy, order);
            buddy.take_absent(order, owner)
        });
        if taken.is_none() {
            self.stay_behind();
        }
        drop(guard);
        let Some((index, order)) = taken else { return false };
        let length = self.bytes(order);
        // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
        let populated = unsafe { os::populate(self.address(index), length) };
        let state = if populated.is_ok() { State::ZeroResident } else { State::ZeroAbsent };
        if populated.is_err() {
            self.stay_behind();
        }
        let Ok(mut guard) = self.lock() else { return false };
        let landed = guard.buddy().land(index, order, state, now());
        drop(guard);
        debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
        if populated.is_ok() {
            add(&self.control().events.grown_ahead, length as u64);
        }
        populated.is_ok()
    }

    /// The order in which absent memory is faulted in for a block of `order`: with huge pages the
    /// system brings a whole one anyway, and a few small ones cost little more than one.
    fn around(&self, order: u32) -> u32 {
        let unit = (self.settings.fault_around >> self.frame_shift).max(1).ilog2();
        order.max(unit.min(self.settings.max_order))
    }

    /// Gives back what a block has more than the run needs.
    fn finish_run(
        &self,
        guard: &mut Guard<'_>,
        index: u32,
        frames: u32,
        state: State,
    ) -> Result<(), PoolError> {
        if frames == 0 || frames.is_power_of_two() {
            return Ok(());
        }
        let result = guard.buddy().shrink(index, frames, state, self.owner(), now());
        result.map_err(|why| self.free_error(index, order_for(frames), why))
    }

    fn grow(&self, buddy: &mut Buddy<'_>, order: u32) {
        let managed = buddy.core().managed();
        let size = 1u64 << order;
        let fitting = u64::from(managed).next_multiple_of(size) + size;
        let step = (self.settings.growth >> self.frame_shift) as u64;
        let end = fitting.max(u64::from(managed) + step).min(u64::from(self.capacity));
        let count = u32::try_from(end - u64::from(managed)).unwrap_or(0);
        buddy.extend(count, State::ZeroAbsent, now());
    }

    pub(crate) fn hot_zero(&self, index: u32, frames: u32) {
        let length = (frames as usize) << self.frame_shift;
        let range = Range { start: self.address(index), length };
        // SAFETY: the run was just taken: mapped, and nobody else's.
        let zeroed = unsafe { Method::Through.zero(range) };
        debug_assert!(zeroed.is_ok(), "stores cannot be refused");
    }

    /// Faults in what a run needs of an absent block just taken, rounded up to what the system brings at
    /// once anyway, and gives the rest back: what came beyond the run as zero and resident, what did not
    /// come as absent.
    fn populate(&self, index: u32, frames: u32) -> Result<(), PoolError> {
        let taken = self.frames()[index as usize].tag().order();
        let around = (self.settings.fault_around >> self.frame_shift).max(1) as u32;
        let mut there = frames.next_multiple_of(around).min(1 << taken);
        // SAFETY: the block was just taken: mapped, and nobody else's.
        let mut populated =
            unsafe { os::populate(self.address(index), (there as usize) << self.frame_shift) };
        if populated.is_err() && there > frames {
            there = frames;
            let length = (there as usize) << self.frame_shift;
            // SAFETY: as above.
            populated = unsafe { os::populate(self.address(index), length) };
        }
        let mut guard = self.lock()?;
        let (owner, now) = (self.owner(), now());
        let result = match &populated {
            Ok(()) => guard.buddy().shrink_resident(index, taken, (frames, there), owner, now),
            Err(_) => guard.buddy().free(index, taken, State::ZeroAbsent, owner, now).map(|_| ()),
        };
        drop(guard);
        result.map_err(|why| self.free_error(index, taken, why))?;
        let bytes = (frames as usize) << self.frame_shift;
        populated.map_err(|errno| PoolError::NoMemory { bytes, source: errno.into() })?;
        add(&self.control().events.populated, u64::from(there) << self.frame_shift);
        Ok(())
    }

    /// Reads a zeroed run just taken, if it is its turn.
    pub(crate) fn verify(&self, index: u32, frames: u32) -> Result<(), PoolError> {
        let (every, abort) = match self.settings.verify {
            Verify::Off => return Ok(()),
            Verify::Report(every) => (every, false),
            Verify::Abort(every) => (every, true),
        };
        if !self.verify_turn.fetch_add(1, Ordering::Relaxed).is_multiple_of(every) {
            return Ok(());
        }
        let events = &self.control().events;
        add(&events.verified, 1);
        let bytes = (frames as usize) << self.frame_shift;
        let Some((address, byte)) = self.not_zero(index, bytes) else { return Ok(()) };
        add(&events.verify_failed, 1);
        let error = PoolError::NotZero { address, byte, bytes };
        if abort {
            let text = std::format!("cachewise: {error}; aborting\n");
            os::write_stderr(text.as_bytes());
            std::process::abort();
        }
        let mut guard = self.lock()?;
        let owner = self.owner();
        for (offset, order) in crate::buddy::run_parts(frames) {
            let withdrawn = guard.buddy().quarantine_allocated(index + offset, order, owner);
            withdrawn.map_err(|why| self.free_error(index, order, why))?;
        }
        add(&events.quarantined_ever, bytes as u64);
        Err(error)
    }

    /// The first byte that is not zero, with its address.
    pub(crate) fn not_zero(&self, index: u32, bytes: usize) -> Option<(usize, u8)> {
        let start = self.address(index);
        // SAFETY: the caller holds the block, so it is mapped and nobody writes to it.
        let slice = unsafe { std::slice::from_raw_parts(start, bytes) };
        // SAFETY: every bit pattern is a valid u128.
        let (before, middle, after) = unsafe { slice.align_to::<u128>() };
        let zero = before.iter().chain(after).all(|byte| *byte == 0)
            && middle.chunks(64).all(|words| words.iter().fold(0, |all, word| all | word) == 0);
        if zero {
            return None;
        }
        let place = slice.iter().position(|byte| *byte != 0)?;
        Some((start as usize + place, slice[place]))
    }

    /// Takes a run back, past the caches.
    pub(crate) fn free(&self, index: u32, frames: u32, zeroed: bool) -> Result<(), PoolError> {
        let state = if zeroed { State::ZeroResident } else { State::Dirty };
        let mut guard = self.lock()?;
        let owner = self.owner();
        let freed = guard.buddy().free_run(index, frames, state, owner, now());
        drop(guard);
        let order = freed.map_err(|why| self.free_error(index, order_for(frames), why))?;
        add(&self.control().events.frees, 1);
        if order >= self.settings.scrub_start {
            self.wake_scrubber(false);
        }
        Ok(())
    }

    pub(crate) fn free_error(&self, index: u32, order: u32, why: FreeError) -> PoolError {
        PoolError::Free { address: self.address(index) as usize, order, why }
    }

    /// The lowest order that can be returned to the system by itself.
    pub(crate) fn trim_order(&self) -> u32 {
        (self.settings.trim_unit >> self.frame_shift).max(1).ilog2()
    }

    /// Returns idle memory to the system until that many bytes were returned or none is left.
    pub(crate) fn trim(&self, most: usize) -> Result<usize, PoolError> {
        if self.is_closed() {
            return Err(PoolError::Closed);
        }
        cache::flush(self);
        let _working = Working::begin();
        let lowest = self.trim_order();
        let mut refused: Vec<(u32, u32)> = Vec::new();
        let mut failure = None;
        let mut bytes = 0;
        while bytes < most {
            // No more than was asked for, as far as blocks allow.
            let left = ((most - bytes) >> self.frame_shift).clamp(1, 1 << 17);
            let mut guard = self.lock()?;
            let taken = guard.buddy().take_to_trim(lowest, left.ilog2(), self.owner());
            drop(guard);
            let Some((index, order, _)) = taken else { break };
            let length = self.bytes(order);
            // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
            let discarded = unsafe { os::discard(self.address(index), length, self.backing) };
            if let Err(errno) = discarded {
                failure = Some(PoolError::system("returning memory to the system")(errno));
                refused.push((index, order));
                // Memory that cannot be returned (locked, for example) would come up again.
                if refused.len() >= 64 {
                    break;
                }
                continue;
            }
            let mut guard = self.lock()?;
            self.count_broken(&mut guard, index, order);
            let landed = guard.buddy().land(index, order, State::ZeroAbsent, now());
            drop(guard);
            landed.map_err(|why| self.free_error(index, order, why))?;
            bytes += length;
            add(&self.control().events.trimmed, length as u64);
        }
        if !refused.is_empty() {
            let mut guard = self.lock()?;
            for (index, order) in refused {
                // Part of it may have been dropped, so nothing is known of it.
                let landed = guard.buddy().land(index, order, State::Dirty, now());
                landed.map_err(|why| self.free_error(index, order, why))?;
            }
        }
        match failure {
            Some(failure) if bytes == 0 => Err(failure),
            _ => Ok(bytes),
        }
    }

    /// Counts a huge page that was whole until this block of it went back to the system.
    fn count_broken(&self, guard: &mut Guard<'_>, index: u32, order: u32) {
        let huge = self.settings.huge_order;
        if order < huge && guard.buddy().all_resident(index >> huge << huge, huge) {
            add(&self.control().events.huge_broken, 1);
        }
    }

    /// Returns one portion of idle memory to the system: what lies above the floor and was not used for
    /// that long. How many bytes that was, or in how many milliseconds there may be something, if ever.
    pub(crate) fn return_idle(
        &self,
        floor: usize,
        min_idle: u32,
        portion: usize,
    ) -> Result<usize, Option<u32>> {
        // Of a huge page no part goes back alone: what is left of it would be small pages.
        let unit = self.settings.trim_unit.max(self.settings.fault_around);
        let lowest = (unit >> self.frame_shift).max(1).ilog2().min(self.settings.max_order);
        let mut guard = self.lock().map_err(|_| None)?;
        let counts = guard.buddy().core().counts();
        let free = ((counts.dirty + counts.zero_resident) << self.frame_shift) as usize;
        let excess = free.saturating_sub(floor);
        if excess < self.bytes(lowest) {
            return Err(None);
        }
        let highest = (excess.min(portion) >> self.frame_shift).max(1).ilog2();
        let orders = (lowest, highest);
        let (index, order) = guard.buddy().take_idle(orders, min_idle, self.owner(), now())?;
        drop(guard);
        let length = self.bytes(order);
        // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
        let discarded = unsafe { os::discard(self.address(index), length, self.backing) };
        let state = if discarded.is_ok() { State::ZeroAbsent } else { State::Dirty };
        let mut guard = self.lock().map_err(|_| None)?;
        if discarded.is_ok() {
            self.count_broken(&mut guard, index, order);
        }
        let landed = guard.buddy().land(index, order, state, now());
        drop(guard);
        debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
        if discarded.is_err() {
            return Err(None);
        }
        add(&self.control().events.trimmed, length as u64);
        Ok(length)
    }

    /// Zeroes free dirty blocks in the calling thread, whatever their age, highest order first.
    pub(crate) fn scrub_now(&self, budget: usize) -> Result<usize, PoolError> {
        if self.is_closed() {
            return Err(PoolError::Closed);
        }
        self.settle();
        let _working = Working::begin();
        let begun = os::thread_cpu_time();
        let method = self.settings.method;
        let lowest = self.lowest_to_zero(method, 0);
        let mut bytes = 0;
        while bytes < budget {
            let left = ((budget - bytes) >> self.frame_shift).clamp(1, 1 << 9);
            let mut guard = self.lock()?;
            let taken = guard.buddy().take_to_zero(lowest, left.ilog2(), 0, self.owner(), now());
            drop(guard);
            let Some((index, order)) = taken else { break };
            let length = self.bytes(order);
            let range = Range { start: self.address(index), length };
            // SAFETY: in flight, so nobody else uses it, and whole pages of this mapping.
            let mut zeroed = unsafe { method.zero(range) };
            if zeroed.is_err() {
                add(&self.control().events.engine_faults, 1);
                // SAFETY: as above.
                zeroed = unsafe { Method::Around.zero(range) };
            }
            let state = if zeroed.is_ok() { State::ZeroResident } else { State::Dirty };
            let mut guard = self.lock()?;
            let landed = guard.buddy().land(index, order, state, now());
            drop(guard);
            landed.map_err(|why| self.free_error(index, order, why))?;
            bytes += length;
            add(&self.control().events.scrubbed, length as u64);
        }
        let used = os::thread_cpu_time().saturating_sub(begun);
        add(&self.control().events.scrub_cpu_ns, used.as_nanos() as u64);
        Ok(bytes)
    }

    /// Dropping pages works on what the system can drop; stores work on anything.
    pub(crate) fn lowest_to_zero(&self, method: Method, stop: u32) -> u32 {
        match method {
            Method::System(_) => stop.max(self.trim_order()),
            Method::Around | Method::Through => stop,
        }
    }

    pub(crate) fn stats(&self) -> Result<Stats, PoolError> {
        let mut guard = self.lock()?;
        let core = guard.buddy().core().clone();
        let shift = self.frame_shift;
        let counts = core.counts();
        let events = &self.control().events;
        let mut stats = Stats {
            capacity: u64::from(self.capacity) << shift,
            managed: u64::from(core.managed()) << shift,
            dirty: counts.dirty << shift,
            in_flight: counts.in_flight << shift,
            zero_resident: counts.zero_resident << shift,
            zero_absent: counts.zero_absent << shift,
            quarantined: counts.quarantined << shift,
            resident: (counts.total() - counts.zero_absent) << shift,
            dirty_allocations: get(&events.dirty_allocations),
            frees: get(&events.frees),
            hot_zeroed: get(&events.hot_zeroed),
            populated: get(&events.populated),
            grown_ahead: get(&events.grown_ahead),
            huge_broken: get(&events.huge_broken),
            scrubbed: get(&events.scrubbed),
            scrub_cpu: Duration::from_nanos(get(&events.scrub_cpu_ns)),
            wasted: get(&events.wasted) + (core.wasted() << shift),
            trimmed: get(&events.trimmed),
            quarantined_ever: get(&events.quarantined_ever),
            engine_faults: get(&events.engine_faults),
            verified: get(&events.verified),
            verify_failed: get(&events.verify_failed),
            lock_holds: get(&self.control().holds),
            scrubber: ScrubberState::from_code(self.scrubber_state.load(Ordering::Relaxed)),
            load_rests: get(&self.load_rests),
            ..Stats::default()
        };
        for order in 0..ORDERS {
            let blocks = |state| u64::from(core.blocks(state, order as u32));
            stats.orders[order] = OrderStats {
                dirty: blocks(State::Dirty),
                zero_resident: blocks(State::ZeroResident),
                zero_absent: blocks(State::ZeroAbsent),
                zero_hits: get(&events.zero_hits[order]),
                zero_misses: get(&events.zero_misses[order]),
            };
        }
        self.magazines.all().for_each(|magazine| magazine.add_to(&mut stats, shift));
        drop(guard);
        stats.cached = stats.cached.min(counts.out << shift);
        stats.allocated = (counts.out << shift) - stats.cached;
        stats.zero_hits = stats.orders.iter().map(|order| order.zero_hits).sum();
        stats.zero_misses = stats.orders.iter().map(|order| order.zero_misses).sum();
        Ok(stats)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // A fork that never used the pool holds nothing in a shared one.
        if self.backing == Backing::Shared && self.is_current() {
            let owner = self.owner();
            if let Ok(mut guard) = self.lock() {
                guard.buddy().reclaim(|tag| tag.owner() == owner, now());
                shared::leave(self.control(), &[owner]);
            }
        }
        fork::leave(self.slot, self.id);
        let mut next = *self.notes.get_mut();
        while !next.is_null() {
            // SAFETY: made by `note`, and in the list once.
            next = unsafe { Box::from_raw(next) }.before;
        }
    }
}
