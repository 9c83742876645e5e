//! What all handles, caches and threads of a pool share: its memory, its lock, its paths past the
//! caches. Long for one reason: all of it is what may be done under the one lock, and is read
//! together.
//!
//! Bookkeeping lies in memory of its own ([`Control`] and the frames after it), mapped and not
//! allocated: it can be shared between processes, and a pool can be what an allocator is made of.

use crate::buddy::{Buddy, Core, Frame, FreeError, ORDERS, State, Tag, Use, order_for};
use crate::cache::{self, Counters};
use crate::config::Verify;
use crate::engine::{Method, Range};
use crate::error::{Note, PoolError};
use crate::fork;
use crate::os::{self, Backing, Lock, Locked, Mapping};
use crate::shared;
use crate::stats::{Events, OrderStats, ScrubberState, Stats, add, get};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// A process attached to a pool: its number and when it started.
#[repr(C)]
pub(crate) struct Process {
    pub(crate) pid: AtomicU32,
    pub(crate) start: AtomicU64,
}

/// The pool's bookkeeping, except for the frames. Its layout is the same in every process that runs
/// this version; `shared.rs` refuses others.
#[repr(C)]
pub(crate) struct Control {
    pub(crate) identity: shared::Identity,
    pub(crate) ready: AtomicU32,
    pub(crate) closed: AtomicU32,
    /// Every hand-out reads what stands before it; what follows moves from CPU to CPU with the lock.
    _lock_apart: Apart,
    pub(crate) lock: Lock,
    /// Bytes of zeroed requests that came past the caches: the scrubber's work is being used. Only
    /// written under the lock.
    pub(crate) demand: AtomicU64,
    core: UnsafeCell<Core>,
    _waiting_apart: Apart,
    /// Changes when scrubbers have something to look at; they wait on it.
    wake: AtomicU32,
    /// Scrubbers that wait for something to be freed. Those that wait for a time are not counted:
    /// nothing freed meanwhile is old enough sooner, and waking them at each free costs both sides.
    sleepers: AtomicU32,
    /// Until when scrubbers take nothing: somebody needs what they have in flight. A moment and not
    /// a count, so that whoever dies waiting leaves nothing behind.
    hold_off: AtomicU32,
    pub(crate) events: Events,
    pub(crate) processes: [Process; PROCESSES],
}

pub(crate) struct Inner {
    pub(crate) id: u64,
    control: *const Control,
    frames: *const Frame,
    base: *mut u8,
    pub(crate) frame_shift: u32,
    pub(crate) capacity: u32,
    owner: AtomicU32,
    generation: AtomicU32,
    pub(crate) backing: Backing,
    settings: Settings,
    /// Counters of the per-thread caches. Only under the lock.
    counters: UnsafeCell<Vec<Arc<Counters>>>,
    notes: Mutex<Vec<Note>>,
    verify_turn: AtomicU32,
    pub(crate) scrubber_state: AtomicU8,
    pub(crate) local_closed: AtomicBool,
    /// Nothing reads these; they unmap.
    _mappings: Vec<Mapping>,
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
}

/// Where the parts of a pool are.
pub(crate) struct Places {
    pub(crate) control: *const Control,
    pub(crate) frames: *const Frame,
    pub(crate) base: *mut u8,
    pub(crate) capacity: u32,
    pub(crate) mappings: Vec<Mapping>,
}

// SAFETY: the control block and the frames are atomics, a lock, and what the lock protects; the data
// is reached through blocks, each of which has one owner.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

/// The lock, held.
pub(crate) struct Guard<'a> {
    inner: &'a Inner,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.inner.control().lock.unlock();
    }
}

impl Guard<'_> {
    pub(crate) fn buddy(&mut self) -> Buddy<'_> {
        // SAFETY: the lock is held for as long as the borrow of this guard lasts.
        let core = unsafe { &mut *self.inner.control().core.get() };
        Buddy::new(core, self.inner.frames())
    }

    fn counters(&mut self) -> &mut Vec<Arc<Counters>> {
        // SAFETY: the lock is held for as long as the borrow of this guard lasts.
        unsafe { &mut *self.inner.counters.get() }
    }

    pub(crate) fn register(&mut self, counters: Arc<Counters>) {
        self.counters().push(counters);
    }

    /// Forgets a cache's counters, whose events were added to the pool's.
    pub(crate) fn unregister(&mut self, counters: &Arc<Counters>) {
        self.counters().retain(|known| !Arc::ptr_eq(known, counters));
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
    // SAFETY: inside the block; the caller's promise.
    let lock = unsafe { &raw mut (*place).lock };
    // SAFETY: the caller's promise.
    unsafe { Lock::init(lock, backing) };
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
        let inner = Arc::new(Inner {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            control: places.control,
            frames: places.frames,
            base: places.base,
            frame_shift: os::page_size().trailing_zeros(),
            capacity: places.capacity,
            owner: AtomicU32::new(match backing {
                Backing::Private => u32::from(SOLE_OWNER),
                Backing::Shared => NO_OWNER,
            }),
            generation: AtomicU32::new(fork::generation()),
            backing,
            settings,
            counters: UnsafeCell::new(Vec::new()),
            notes: Mutex::new(notes),
            verify_turn: AtomicU32::new(0),
            scrubber_state: AtomicU8::new(0),
            local_closed: AtomicBool::new(false),
            _mappings: places.mappings,
        });
        if backing == Backing::Private {
            fork::register(&inner);
        }
        inner
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: mapped and initialised for as long as this value lives; all of it is atomic or
        // behind the lock.
        unsafe { &*self.control }
    }

    /// The place of the lock, for `fork.rs`.
    pub(crate) fn lock_place(&self) -> *mut Lock {
        // SAFETY: inside the control block.
        unsafe { &raw const (*self.control).lock }.cast_mut()
    }

    pub(crate) fn frames(&self) -> &[Frame] {
        // SAFETY: that many frames are mapped, all of them atomics, for as long as this value lives.
        unsafe { std::slice::from_raw_parts(self.frames, self.capacity as usize) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn owner(&self) -> u16 {
        self.owner.load(Ordering::Relaxed) as u16
    }

    pub(crate) fn set_owner(&self, owner: u16) {
        self.owner.store(u32::from(owner), Ordering::Relaxed);
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    pub(crate) fn bytes(&self, order: u32) -> usize {
        1usize << (order + self.frame_shift)
    }

    pub(crate) fn address(&self, index: u32) -> *mut u8 {
        self.base.wrapping_add((index as usize) << self.frame_shift)
    }

    /// The frame at an address.
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

    pub(crate) fn is_closed(&self) -> bool {
        self.local_closed.load(Ordering::Relaxed)
            || self.control().closed.load(Ordering::Relaxed) != 0
    }

    /// Whether this process is the one that last locked the pool, and not a fork of it.
    pub(crate) fn is_current(&self) -> bool {
        self.generation.load(Ordering::Relaxed) == fork::generation()
    }

    pub(crate) fn lock(&self) -> Result<Guard<'_>, PoolError> {
        let control = self.control();
        let locked = control.lock.lock().map_err(|errno| match errno {
            rustix::io::Errno::DEADLK => PoolError::Reentered,
            errno => PoolError::System { what: "locking the pool", source: errno.into() },
        })?;
        let mut guard = Guard { inner: self };
        if locked == Locked::OwnerDied {
            guard.buddy().rebuild(now());
            control.lock.repaired();
            self.reap(&mut guard);
        }
        if !self.is_current() {
            self.after_fork(&mut guard)?;
        }
        Ok(guard)
    }

    /// First use in a forked child. A private pool is a copy: what belonged to threads that do not
    /// exist here comes back as dirty. A shared pool is the parent's: this process is a new owner
    /// and has no claim on what the parent holds.
    fn after_fork(&self, guard: &mut Guard<'_>) -> Result<(), PoolError> {
        for counters in guard.counters().iter() {
            counters.forget();
        }
        match self.backing {
            Backing::Private => {
                let mut buddy = guard.buddy();
                buddy.rebuild(now());
                buddy.reclaim(|tag| tag.used() != Some(Use::Allocated), now());
            }
            Backing::Shared => self.set_owner(shared::enter(self.control())?),
        }
        self.scrubber_state.store(ScrubberState::Off as u8, Ordering::Relaxed);
        self.generation.store(fork::generation(), Ordering::Relaxed);
        Ok(())
    }

    /// Takes back what processes held that no longer exist. Returns the frames gained.
    pub(crate) fn reap(&self, guard: &mut Guard<'_>) -> u64 {
        if self.backing == Backing::Private {
            return 0;
        }
        let dead = shared::dead(self.control());
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
        if always || control.sleepers.load(Ordering::SeqCst) != 0 {
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

    /// Sleeps until woken, unless `ready` says that there is something to do already.
    pub(crate) fn sleep(&self, timeout: Option<Duration>, ready: impl FnOnce() -> bool) {
        let control = self.control();
        let seen = control.wake.load(Ordering::SeqCst);
        let counted = u32::from(timeout.is_none());
        control.sleepers.fetch_add(counted, Ordering::SeqCst);
        if !ready() {
            let timeout = timeout.map(|timeout| rustix::thread::futex::Timespec {
                tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(timeout.subsec_nanos()),
            });
            let flags = self.futex_flags();
            let _ = rustix::thread::futex::wait(&control.wake, flags, seen, timeout.as_ref());
        }
        control.sleepers.fetch_sub(counted, Ordering::SeqCst);
    }

    /// A zeroed run of `frames` frames, past the caches. Returns its first frame.
    pub(crate) fn zalloc(&self, frames: u32) -> Result<u32, PoolError> {
        let order = self.order(frames)?;
        let events = &self.control().events;
        let bytes = u64::from(frames) << self.frame_shift;
        let batch = if frames == 1 << order { cache::batch(self, order) } else { 0 };
        let mut pieces = [0; PIECES];
        let mut guard = self.lock()?;
        let owner = self.owner();
        // Only ever written under the lock.
        let demand = &self.control().demand;
        demand.store(get(demand).wrapping_add(bytes), Ordering::Relaxed);
        if batch > 0 {
            let found = guard.buddy().take_cached(order, batch, owner, &mut pieces);
            drop(guard);
            cache::fill(self, order, &pieces[..found]);
            if let Some(index) = cache::take(self, order, true, true) {
                self.verify(index, frames)?;
                return Ok(index);
            }
        } else if let Some(index) = guard.buddy().take(order, State::ZeroResident, owner) {
            self.finish_run(&mut guard, index, frames, State::ZeroResident)?;
            drop(guard);
            add(&events.zero_hits[order as usize], 1);
            self.verify(index, frames)?;
            return Ok(index);
        } else {
            drop(guard);
        }
        add(&events.zero_misses[order as usize], 1);
        self.wake_scrubber(false);
        if frames == 1 << order
            && let Some(index) = cache::take(self, order, false, false)
        {
            self.hot_zero(index, frames);
            self.verify(index, frames)?;
            return Ok(index);
        }
        let (index, state) = self.take_any(frames, order, &ZERO_WANTED)?;
        match state {
            State::Dirty => self.hot_zero(index, frames),
            State::ZeroAbsent => self.populate(index, frames, order)?,
            State::ZeroResident => {}
        }
        self.verify(index, frames)?;
        Ok(index)
    }

    /// A run of `frames` frames with any contents, past the caches. Returns its first frame.
    pub(crate) fn alloc(&self, frames: u32) -> Result<u32, PoolError> {
        let order = self.order(frames)?;
        let events = &self.control().events;
        let wanted = [State::Dirty, State::ZeroResident, State::ZeroAbsent];
        let (index, state) = self.take_any(frames, order, &wanted)?;
        match state {
            State::Dirty => {}
            State::ZeroResident => add(&events.wasted, u64::from(frames) << self.frame_shift),
            State::ZeroAbsent => self.populate(index, frames, order)?,
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
            let mut guard = self.lock()?;
            let found = self.take_once(&mut guard, order, wanted);
            if let Some((index, state)) = found {
                // Absent memory is faulted in as a whole first (`populate`).
                if state != State::ZeroAbsent {
                    self.finish_run(&mut guard, index, frames, state)?;
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
            if in_flight == 0 || Instant::now() >= deadline {
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

    fn take_once(
        &self,
        guard: &mut Guard<'_>,
        order: u32,
        wanted: &[State],
    ) -> Option<(u32, State)> {
        let owner = self.owner();
        let mut buddy = guard.buddy();
        let by_state = |buddy: &mut Buddy<'_>| {
            wanted.iter().find_map(|state| {
                let order = match state {
                    State::ZeroAbsent => self.around(order),
                    _ => order,
                };
                Some((buddy.take(order, *state, owner)?, *state))
            })
        };
        // Absent memory in smaller portions where there are no larger ones.
        let held = |buddy: &mut Buddy<'_>| {
            by_state(buddy)
                .or_else(|| Some((buddy.take(order, State::ZeroAbsent, owner)?, State::ZeroAbsent)))
                .or_else(|| buddy.take_mixed(order, owner))
        };
        if let Some(found) = held(&mut buddy) {
            return Some(found);
        }
        self.grow(&mut buddy, order);
        held(&mut buddy)
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

    fn hot_zero(&self, index: u32, frames: u32) {
        let length = (frames as usize) << self.frame_shift;
        let range = Range { start: self.address(index), length };
        // SAFETY: the run was just taken: mapped, and nobody else's.
        let zeroed = unsafe { Method::Through.zero(range) };
        debug_assert!(zeroed.is_ok(), "stores cannot be refused");
        add(&self.control().events.hot_zeroed, length as u64);
    }

    /// Faults in an absent block just taken, and gives back what the run does not need of it as
    /// zero and resident.
    fn populate(&self, index: u32, frames: u32, order: u32) -> Result<(), PoolError> {
        let taken = self.frames()[index as usize].tag().order();
        let mut length = self.bytes(taken);
        // SAFETY: the block was just taken: mapped, and nobody else's.
        let mut populated = unsafe { os::populate(self.address(index), length) };
        if populated.is_err() && taken > order {
            length = self.bytes(order);
            // SAFETY: as above.
            populated = unsafe { os::populate(self.address(index), length) };
        }
        let rest =
            if length == self.bytes(taken) { State::ZeroResident } else { State::ZeroAbsent };
        let mut guard = self.lock()?;
        let (owner, now) = (self.owner(), now());
        let result = match &populated {
            Ok(()) => guard.buddy().shrink_from(index, taken, frames, rest, owner, now),
            Err(_) => guard.buddy().free(index, taken, State::ZeroAbsent, owner, now).map(|_| ()),
        };
        drop(guard);
        result.map_err(|why| self.free_error(index, taken, why))?;
        let bytes = (frames as usize) << self.frame_shift;
        populated.map_err(|errno| PoolError::NoMemory { bytes, source: errno.into() })?;
        add(&self.control().events.populated, length as u64);
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

    /// Zeroes free dirty blocks in the calling thread, whatever their age, highest order first.
    pub(crate) fn scrub_now(&self, budget: usize) -> Result<usize, PoolError> {
        if self.is_closed() {
            return Err(PoolError::Closed);
        }
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
            scrubbed: get(&events.scrubbed),
            scrub_cpu: Duration::from_nanos(get(&events.scrub_cpu_ns)),
            wasted: get(&events.wasted) + (core.wasted() << shift),
            trimmed: get(&events.trimmed),
            quarantined_ever: get(&events.quarantined_ever),
            engine_faults: get(&events.engine_faults),
            verified: get(&events.verified),
            verify_failed: get(&events.verify_failed),
            scrubber: ScrubberState::from_code(self.scrubber_state.load(Ordering::Relaxed)),
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
        for counters in guard.counters() {
            counters.add_to(&mut stats, shift);
        }
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
        match self.backing {
            Backing::Private => fork::unregister(self),
            Backing::Shared => {
                // A fork that never used the pool holds nothing in it.
                if self.is_current() {
                    let owner = self.owner();
                    if let Ok(mut guard) = self.lock() {
                        guard.buddy().reclaim(|tag| tag.owner() == owner, now());
                        shared::leave(self.control(), &[owner]);
                    }
                }
            }
        }
    }
}
