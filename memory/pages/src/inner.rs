//! A pool as all its handles, caches and threads share it: its layers (`layers`), and the operations on them.
//! `closing` and `child` have the memory, `growth` takes it into use. Above it `cache.rs` has the threads' caches,
//! `serve.rs` hands out and takes back, `upkeep.rs` zeroes, returns and counts free memory.
//!
//! Bookkeeping lies in memory of its own ([`Control`] and the frames after it), mapped and not
//! allocated: a pool can be what an allocator is made of.

mod child;
mod closing;
mod growth;

use crate::buddy::{Buddy, Core, Frame, FreeError, State, Tag, Use};
use crate::closed::Closed;
use crate::config::Verify;
use crate::engine::Method;
use crate::error::{Note, PoolError};
use crate::inherited::{Inherited, Memory};
use crate::layers::{Background, Caches, Chunks, Control, Gate, Lists};
use crate::lock::{self, Slot};
use crate::magazine::{Magazine, Magazines, Shares};
use crate::os::{self, Mapping};
use crate::stats::{ScrubberState, get};
use crate::thread;
use std::boxed::Box;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use std::vec::Vec;

/// For how many milliseconds after a look scrubbers take nothing: until the next one, and the
/// clock's granularity.
const HOLD_OFF: u32 = 30;

/// Flag of [`Gate`]: the pool is closed.
const CLOSED: u32 = 1;
/// Flag of [`Gate`]: some of the blocks handed out as zero are read.
const VERIFIED: u32 = 2;
/// Flag of [`Gate`]: an engine said that it had zeroed a block, and had not.
const DISTRUSTED: u32 = 4;

/// A pool: its layers, each on top of those before, then settings and notes. The fields that every hand-out reads come
/// first, and change rarely. In frames, whenever the lock is free:
///
/// ```text
/// chunks.capacity = managed + never managed
/// managed         = allocated + cached + dirty + in flight + zero resident + zero absent + quarantined
/// cached         <= chunks.capacity / 4
/// closed         <= never managed + zero absent
/// ```
#[repr(C)]
pub(crate) struct Inner {
    pub(crate) gate: Gate<Inner>,
    pub(crate) chunks: Chunks,
    lists: Lists,
    pub(crate) caches: Caches,
    settings: Settings,
    pub(crate) background: Background,
    /// Number of zeroed blocks handed out, of which every n-th is read.
    pub(crate) verify_turn: AtomicU32,
    /// The newest note.
    notes: AtomicPtr<Noted>,
}

/// A note, and those before it. A list that only grows needs no lock, which a fork would have to
/// see to.
struct Noted {
    note: Note,
    before: *mut Noted,
}

/// The builder's settings that the operations here need.
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
    /// True if a hand-out waits for others: for the lock, and for blocks in flight.
    pub(crate) waits: bool,
    /// The order of a huge page; 0 where the pool asked for none.
    pub(crate) huge_order: u32,
    /// Frames from the first on that are in no huge page.
    pub(crate) small: u32,
    /// Free bytes at most that are made resident ahead of need.
    pub(crate) ahead: usize,
    /// True if free absent memory becomes address space alone again.
    pub(crate) closes: bool,
    /// The node that all pages are wanted on.
    pub(crate) numa_node: Option<u32>,
    /// True if memory is locked when it is opened, as the process locks all its mappings.
    pub(crate) locks: bool,
    /// True if absent memory is handed out as it is, and faulted in where it is touched. For allocators, whose
    /// callers ask for more than they use.
    pub(crate) fault_on_touch: bool,
}

/// The places of a pool's parts.
pub(crate) struct Places {
    pub(crate) control: *const Control,
    pub(crate) frames: *const Frame,
    pub(crate) base: *mut u8,
    pub(crate) capacity: u32,
    pub(crate) memory: Memory,
    pub(crate) mappings: Vec<Mapping>,
}

// SAFETY: the control block and the frames are atomics, a lock, and what the lock protects; the
// data is reached through blocks, each of which has one owner.
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
        self.inner.gate.slot.release();
        thread::current().end();
    }
}

impl Guard<'_> {
    pub(crate) fn buddy(&mut self) -> Buddy<'_> {
        // SAFETY: the lock is held for as long as the borrow of this guard lasts.
        let core = unsafe { &mut *self.inner.control().core.get() };
        Buddy::new(core, self.inner.frames())
    }
}

/// A call that has blocks in flight while it has no lock. A child that is forked from a signal
/// handler in its middle must not take these back before it is over.
pub(crate) struct Working<'a>(&'a thread::Thread);

impl Working<'_> {
    pub(crate) fn begin() -> Working<'static> {
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

/// Milliseconds on a clock that never goes back.
pub(crate) fn now() -> u32 {
    #[cfg(all(feature = "testing", debug_assertions))]
    if let Some(now) = crate::schedule::clock() {
        return now;
    }
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    Duration::try_from(time).map_or(0, |time| time.as_millis() as u32)
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
pub(crate) unsafe fn init_control(place: *mut Control, max_order: u32) {
    // SAFETY: inside the block; the caller's promise.
    let core = unsafe { &raw mut (*place).core };
    // SAFETY: the caller's promise; an UnsafeCell has the layout of what it holds.
    unsafe { core.cast::<Core>().write(Core::new(max_order)) };
}

impl Inner {
    pub(crate) fn new(
        places: Places,
        settings: Settings,
        notes: Vec<Note>,
        slot: &'static Slot<Inner>,
    ) -> Arc<Inner> {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let shift = os::page_size().trailing_zeros();
        let huge = os::huge_page_size().ilog2().saturating_sub(shift);
        let closed = Box::new(Closed::new(places.capacity, huge, settings.closes));
        let flags = if settings.verify == Verify::Off { 0 } else { VERIFIED };
        let inner = Arc::new(Inner {
            gate: Gate {
                flags: AtomicU32::new(flags),
                generation: AtomicU32::new(lock::generation()),
                id: IDS.fetch_add(1, Ordering::Relaxed),
                slot,
            },
            chunks: Chunks {
                base: places.base,
                frame_shift: shift,
                capacity: places.capacity,
                closed,
                inherited: Inherited::new(places.memory),
                _mappings: places.mappings,
            },
            lists: Lists { frames: places.frames, control: places.control },
            caches: Caches { shares: Shares::default(), magazines: Magazines::default() },
            settings,
            background: Background::default(),
            verify_turn: AtomicU32::new(0),
            notes: AtomicPtr::default(),
        });
        slot.enter(inner.gate.id, &inner);
        notes.into_iter().for_each(|note| inner.note(note));
        inner
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: mapped and initialised for as long as this value lives; all of it is atomic or
        // behind the lock.
        unsafe { &*self.lists.control }
    }

    #[inline(always)]
    pub(crate) fn frames(&self) -> &[Frame] {
        // SAFETY: that many frames are mapped, all of them atomics, for as long as this value
        // lives.
        unsafe { std::slice::from_raw_parts(self.lists.frames, self.chunks.capacity as usize) }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.chunks.base
    }

    pub(crate) fn bytes(&self, order: u32) -> usize {
        1usize << (order + self.chunks.frame_shift)
    }

    #[inline(always)]
    pub(crate) fn address(&self, index: u32) -> *mut u8 {
        self.chunks.base.wrapping_add((index as usize) << self.chunks.frame_shift)
    }

    /// The frame at an address.
    #[inline(always)]
    pub(crate) fn index(&self, address: *const u8) -> Result<u32, FreeError> {
        let offset = (address as usize).wrapping_sub(self.chunks.base as usize);
        if offset >= (self.chunks.capacity as usize) << self.chunks.frame_shift {
            return Err(FreeError::Foreign);
        }
        if offset & ((1 << self.chunks.frame_shift) - 1) != 0 {
            return Err(FreeError::Misaligned);
        }
        u32::try_from(offset >> self.chunks.frame_shift).map_err(|_| FreeError::Foreign)
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
        self.gate.flags.load(Ordering::Relaxed) & CLOSED != 0
    }

    pub(crate) fn close(&self) {
        self.gate.flags.fetch_or(CLOSED, Ordering::SeqCst);
    }

    /// Checks whether an engine said that it had zeroed a block, and had not.
    pub(crate) fn distrusts(&self) -> bool {
        self.gate.flags.load(Ordering::Relaxed) & DISTRUSTED != 0
    }

    /// An engine was caught in a lie: whatever is zero and unused is dirty from here on. What threads' caches
    /// hold is zeroed again when it is handed out.
    pub(crate) fn distrust(&self) {
        self.gate.flags.fetch_or(DISTRUSTED, Ordering::SeqCst);
        let Ok(mut guard) = self.lock() else { return };
        let now = now();
        while let Some((index, order)) = guard.buddy().take_zeroed_away() {
            let landed = guard.buddy().land(index, order, State::Dirty, now);
            debug_assert!(landed.is_ok(), "block in flight {index}: {landed:?}");
        }
    }

    /// Checks whether a hand-out has nothing to look at.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.gate.flags.load(Ordering::Relaxed) == 0
    }

    /// Checks whether this process is the one that last locked the pool, and not a fork of it.
    pub(crate) fn is_current(&self) -> bool {
        self.gate.generation.load(Ordering::Relaxed) == lock::generation()
    }

    pub(crate) fn lock(&self) -> Result<Guard<'_>, PoolError> {
        self.lock_for(true)
    }

    /// [`lock`](Inner::lock) for a hand-out, which may be told to wait for nobody.
    pub(crate) fn lock_to_take(&self) -> Result<Guard<'_>, PoolError> {
        self.lock_for(self.settings.waits)
    }

    /// [`lock`](Inner::lock), to bring back what is in flight.
    pub(crate) fn lock_to_land(&self) -> Result<Guard<'_>, PoolError> {
        os::may_land().map_err(PoolError::system("locking the pool"))?;
        self.lock()
    }

    fn lock_for(&self, wait: bool) -> Result<Guard<'_>, PoolError> {
        let mut guard = self.acquire(wait)?;
        if !self.is_current() {
            // In a signal handler that interrupted the pool, which goes on after it.
            let under_way = thread::current().working.load(Ordering::Relaxed) != 0;
            if under_way || Magazine::is_interrupted(self.gate.id) {
                return Err(PoolError::Reentered);
            }
            self.after_fork(&mut guard);
        }
        let holds = &self.control().holds;
        holds.store(get(holds).wrapping_add(1), Ordering::Relaxed);
        Ok(guard)
    }

    fn acquire(&self, wait: bool) -> Result<Guard<'_>, PoolError> {
        let thread = thread::current();
        if self.gate.slot.is_the_forkers(thread) {
            // In a program's fork handler: nobody else is in the pool, and nobody comes.
            return Ok(Guard { inner: self, taken: false });
        }
        // Between the steps of a fork a signal handler finds it so.
        if self.gate.slot.is_held_by(thread) || !thread.begin(self.gate.id) {
            return Err(PoolError::Reentered);
        }
        if !self.gate.slot.acquire(wait) {
            thread.end();
            return Err(PoolError::Busy);
        }
        Ok(Guard { inner: self, taken: true })
    }

    /// Does what a fork left to be done, if there was one.
    pub(crate) fn settle(&self) {
        if !self.is_current() {
            drop(self.lock());
        }
    }

    /// First use in a forked child: what belonged to threads that do not exist here comes back as
    /// dirty.
    fn after_fork(&self, guard: &mut Guard<'_>) {
        self.caches.magazines.forget(Magazine::of_this_thread(self.gate.id));
        self.share_out();
        let mut buddy = guard.buddy();
        buddy.rebuild(now());
        let gone = |tag: Tag| tag.used() != Some(Use::Allocated);
        buddy.reclaim(gone, State::Dirty, now());
        self.background.state.store(ScrubberState::Off as u8, Ordering::Relaxed);
        self.gate.generation.store(lock::generation(), Ordering::Relaxed);
    }

    /// Shares out what caches may hold. Only under the lock.
    pub(crate) fn share_out(&self) {
        self.caches.magazines.share_out(
            &self.caches.shares,
            self.chunks.capacity,
            self.settings.cache_blocks,
        );
    }

    /// Has scrubbers take nothing for a moment.
    pub(crate) fn hold_off(&self) {
        let until = now().wrapping_add(HOLD_OFF);
        self.control().hold_off.store(until, Ordering::Relaxed);
    }

    /// Lets scrubbers look again: all, or if one waits for what is freed and asked for.
    pub(crate) fn wake_scrubber(&self, always: bool) {
        self.control().wake.ring(always);
    }

    /// Checks whether frees and requests would wake it.
    #[cfg(all(test, not(miri)))]
    pub(crate) fn scrubber_listens(&self) -> bool {
        self.control().wake.is_listened_for()
    }

    /// Checks whether an allocation waits for blocks that scrubbers have in flight.
    pub(crate) fn holds_off(&self) -> bool {
        let left = self.control().hold_off.load(Ordering::Relaxed).wrapping_sub(now());
        (1..=HOLD_OFF).contains(&left)
    }

    /// Sleeps until woken, unless `ready` says that there is something to do already. Frees and
    /// requests wake it only if `by_use`, and what they change is looked at under the lock.
    pub(crate) fn sleep(
        &self,
        timeout: Option<Duration>,
        by_use: bool,
        ready: impl FnOnce() -> bool,
    ) {
        self.control().wake.wait(timeout, by_use, ready);
    }

    /// Says that so many frames of zeroed memory were asked for. Only under the lock.
    pub(crate) fn wanted(&self, frames: u64) {
        let demand = &self.control().demand;
        demand
            .store(get(demand).wrapping_add(frames << self.chunks.frame_shift), Ordering::Relaxed);
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gate.slot.leave(self.gate.id);
        let mut next = *self.notes.get_mut();
        while !next.is_null() {
            // SAFETY: made by `note`, and in the list once.
            next = unsafe { Box::from_raw(next) }.before;
        }
    }
}
