//! The pool as a program holds it.

mod make;

use crate::buddy::{FreeError, Inconsistent, State, order_for};
use crate::cache;
use crate::config::{Builder, EngineChoice};
use crate::engine::Method;
use crate::error::{Note, PoolError};
use crate::inner::Inner;
use crate::lock::{self, Turn};
use crate::os;
use crate::scrubber::Scrubber;
use crate::stats::Stats;
use std::boxed::Box;
use std::ptr::NonNull;
use std::string::ToString;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;
use std::vec::Vec;

/// Bytes faulted in together where pages are small: few enough that a hand-out stays short.
pub(crate) const FAULT_AROUND: usize = 64 << 10;

/// A pool of page blocks. Clones are handles of the same pool; dropping the last handle unmaps the
/// pool, so no block may be in use then. Blocks of [`alloc`](Pool::alloc) and
/// [`zalloc`](Pool::zalloc) borrow the handle; for raw blocks the caller is responsible.
///
/// Every method may be called from any thread. In a signal handler that interrupted the pool in
/// the same thread a call may return [`PoolError::Reentered`]. A program's fork handlers may call
/// it, in any order. After a fork, the child has a copy: the same allocated blocks, no scrubber
/// until [`resume_scrubber`](Pool::resume_scrubber); a block being zeroed at that
/// moment is dirty in the child.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
    // Goes last, and with it the scrubber, which is stopped before the memory goes away.
    handle: Arc<Handle>,
}

struct Handle {
    /// Whoever starts, stops or orders the scrubber.
    turn: Turn,
    /// Null, or a `Box`'s; one word, so that a fork copies it whole.
    scrubber: AtomicPtr<Scrubber>,
    /// The generation, plus one, of the process in which it was started or found impossible to
    /// start.
    started: AtomicU32,
    scrub: crate::config::Scrub,
    scrub_later: bool,
    give_back: Option<crate::config::GiveBack>,
    inner: Arc<Inner>,
}

impl Handle {
    /// The scrubber, if there is one in this process. Only in turn.
    fn scrubber(&self) -> Option<&Scrubber> {
        // SAFETY: null, or a scrubber that only `drop` takes down.
        let scrubber = unsafe { self.scrubber.load(Ordering::Acquire).as_ref() };
        scrubber.filter(|scrubber| scrubber.is_here())
    }

    /// Starts the scrubber; one that is a forked parent's is forgotten. Only in turn.
    fn start(&self, engine: EngineChoice, deadline: Duration, strikes: u32) {
        self.started.store(lock::generation().wrapping_add(1), Ordering::Relaxed);
        let what = (self.scrub.clone(), self.give_back.clone());
        match Scrubber::start(&self.inner, what, engine, deadline, strikes) {
            Ok(scrubber) => {
                self.scrubber.store(Box::into_raw(Box::new(scrubber)), Ordering::Release);
            }
            Err(error) => self.inner.note(Note::NoScrubber(error.to_string())),
        }
    }

    /// Starts a scrubber with a built-in engine unless there is one.
    fn start_own(&self) {
        let engine = match self.inner.settings().method {
            Method::Around => EngineChoice::CpuAround,
            Method::Through => EngineChoice::CpuThrough,
            Method::System | Method::Populate => EngineChoice::System,
        };
        self.start(engine, Duration::from_secs(1), 3);
    }

    /// After something was given back: starts the scrubber where that was put off until now.
    fn given_back(&self) {
        let here = lock::generation().wrapping_add(1);
        if self.scrub_later && self.started.load(Ordering::Relaxed) != here && os::may_spawn() {
            let _turn = self.turn.take();
            if self.started.load(Ordering::Relaxed) != here {
                self.start_own();
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let scrubber = *self.scrubber.get_mut();
        if !scrubber.is_null() {
            // SAFETY: made by `Box::into_raw`, and this is the last handle.
            unsafe { Box::from_raw(scrubber) }.stop(&self.inner);
        }
    }
}

impl core::fmt::Debug for Pool {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Pool")
            .field("base", &self.base())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// The settings of a new pool, all at their defaults.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Pages that hold that many bytes; at least one.
    ///
    /// # Errors
    /// [`PoolError::Exhausted`] if no pool has so many.
    pub fn frames_for(&self, bytes: usize) -> Result<u32, PoolError> {
        let frames = bytes.max(1).div_ceil(self.page_size());
        let fits = frames <= 1 << self.inner.settings().max_order;
        match u32::try_from(frames) {
            Ok(frames) if fits => Ok(frames),
            _ => Err(PoolError::Exhausted { bytes, capacity: self.capacity() }),
        }
    }

    /// [`alloc`](Pool::alloc) for callers that keep addresses, as a C interface does. Free the block
    /// with [`free_raw`](Pool::free_raw).
    ///
    /// # Errors
    /// As [`alloc`](Pool::alloc).
    #[inline]
    pub fn alloc_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        if self.inner.is_open()
            && let Some(index) = cache::take(&self.inner, order, false)
        {
            return Ok(self.at(index));
        }
        self.block(order, false)
    }

    /// [`zalloc`](Pool::zalloc) for callers that keep addresses.
    ///
    /// # Errors
    /// As [`zalloc`](Pool::zalloc).
    #[inline]
    pub fn zalloc_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        if self.inner.is_open()
            && let Some(index) = cache::take(&self.inner, order, true)
        {
            return Ok(self.at(index));
        }
        self.block(order, true)
    }

    /// [`zalloc_to_fill`](Pool::zalloc_to_fill) for callers that keep addresses.
    ///
    /// # Errors
    /// As [`zalloc`](Pool::zalloc).
    pub fn zalloc_to_fill_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        if self.inner.is_open()
            && let Some(index) = cache::take_hot(&self.inner, order)
        {
            self.inner.hot_zero(index, 1 << order);
            return Ok(self.at(index));
        }
        self.zalloc_raw(order)
    }

    #[inline(always)]
    fn at(&self, index: u32) -> NonNull<u8> {
        // SAFETY: the pool's base is not null, and the index is inside the pool.
        unsafe { NonNull::new_unchecked(self.inner.address(index)) }
    }

    /// A run of pages with any contents; free it with [`free_run_raw`](Pool::free_run_raw).
    ///
    /// # Errors
    /// As [`alloc`](Pool::alloc).
    pub fn alloc_run_raw(&self, frames: u32) -> Result<NonNull<u8>, PoolError> {
        self.run(frames.max(1), 1, false)
    }

    /// A run of zeroed pages; free it with [`free_run_raw`](Pool::free_run_raw).
    ///
    /// # Errors
    /// As [`zalloc`](Pool::zalloc).
    pub fn zalloc_run_raw(&self, frames: u32) -> Result<NonNull<u8>, PoolError> {
        self.run(frames.max(1), 1, true)
    }

    /// [`alloc_run_raw`](Pool::alloc_run_raw), or [`zalloc_run_raw`](Pool::zalloc_run_raw), of a run
    /// that begins at a multiple of `align` bytes; `None` if that is no power of two or above
    /// what the pool can do: 2 MiB at least, as far as its largest blocks have that.
    ///
    /// # Errors
    /// As those.
    pub fn aligned_run_raw(
        &self,
        frames: u32,
        align: usize,
        zeroed: bool,
    ) -> Option<Result<NonNull<u8>, PoolError>> {
        let largest = self.page_size() << self.inner.settings().max_order;
        let base = 1 << self.base().addr().trailing_zeros();
        if !align.is_power_of_two() || align > largest.min(base) {
            return None;
        }
        let alignment = u32::try_from(align / self.page_size()).ok()?.max(1);
        Some(self.run(frames.max(1), alignment, zeroed))
    }

    fn block(&self, order: u32, zero: bool) -> Result<NonNull<u8>, PoolError> {
        let max_order = self.inner.settings().max_order;
        if order > max_order {
            return Err(PoolError::Order { order, max_order });
        }
        self.run(1 << order, 1, zero)
    }

    #[cold]
    #[inline(never)]
    fn run(&self, frames: u32, alignment: u32, zero: bool) -> Result<NonNull<u8>, PoolError> {
        let inner = &self.inner;
        let index =
            if zero { inner.zalloc(frames, alignment)? } else { inner.alloc(frames, alignment)? };
        Ok(self.at(index))
    }

    /// Frees a block.
    ///
    /// # Safety
    /// The block is no longer used. It is checked that it is an allocated block of this pool and of
    /// that order.
    ///
    /// # Errors
    /// [`PoolError::Free`] with the reason; nothing is changed then.
    #[inline]
    pub unsafe fn free_raw(&self, start: NonNull<u8>, order: u32) -> Result<(), PoolError> {
        if self.inner.is_open()
            && let Ok(index) = self.inner.index(start.as_ptr())
            && cache::put(&self.inner, index, order) == Some(Ok(()))
        {
            return Ok(());
        }
        let max_order = self.inner.settings().max_order;
        if order > max_order {
            return Err(PoolError::Order { order, max_order });
        }
        // SAFETY: the caller's promise.
        unsafe { self.free_run_raw(start, 1 << order) }
    }

    /// Frees a run.
    ///
    /// # Safety
    /// As for [`free_raw`](Pool::free_raw).
    ///
    /// # Errors
    /// As [`free_raw`](Pool::free_raw).
    #[cold]
    pub unsafe fn free_run_raw(&self, start: NonNull<u8>, frames: u32) -> Result<(), PoolError> {
        let inner = &self.inner;
        if inner.is_closed() {
            return Err(PoolError::Closed);
        }
        let order = order_for(frames);
        let index = self.index(start, order)?;
        if frames == 1 << order && cache::put_many(inner, index, order) == Some(Ok(())) {
            return Ok(());
        }
        // Also finds out why the cache would not have it.
        inner.free(index, frames, false)?;
        self.handle.given_back();
        Ok(())
    }

    /// Makes a run longer or shorter where it is; new pages may hold anything. `false`, and nothing is
    /// changed, if what is behind it is in use, or more than a pool has.
    ///
    /// # Safety
    /// As for [`free_raw`](Pool::free_raw), of the pages that are cut off.
    ///
    /// # Errors
    /// As [`free_raw`](Pool::free_raw).
    pub unsafe fn resize_run_raw(
        &self,
        start: NonNull<u8>,
        frames: u32,
        wanted: u32,
    ) -> Result<bool, PoolError> {
        // SAFETY: the caller's promise.
        unsafe { self.resize_or_move_raw(start, (frames, wanted), false) }
    }

    /// As [`resize_run_raw`](Pool::resize_run_raw); with `or_move` also `false` where a move by
    /// [`roomy_run_raw`](Pool::roomy_run_raw) spares making memory resident.
    ///
    /// # Safety
    /// As for `resize_run_raw`.
    ///
    /// # Errors
    /// As `resize_run_raw`.
    pub(crate) unsafe fn resize_or_move_raw(
        &self,
        start: NonNull<u8>,
        (frames, wanted): (u32, u32),
        or_move: bool,
    ) -> Result<bool, PoolError> {
        let index = self.index(start, order_for(frames))?;
        let resized = self.inner.resize(index, (frames, wanted), or_move)?;
        if wanted < frames {
            self.handle.given_back();
        }
        Ok(resized)
    }

    /// A run for one that was `frames` long and has to move to become longer: with free pages behind it,
    /// so that growing by small steps moves it seldom.
    ///
    /// # Errors
    /// As [`alloc`](Pool::alloc).
    pub(crate) fn roomy_run_raw(&self, wanted: u32) -> Result<NonNull<u8>, PoolError> {
        for roomy in [wanted, wanted / 4].map(|more| wanted.saturating_add(more)) {
            if let Ok(run) = self.alloc_run_raw(roomy) {
                let index = self.index(run, order_for(roomy))?;
                self.inner.resize(index, (roomy, wanted), false)?;
                return Ok(run);
            }
        }
        self.alloc_run_raw(wanted)
    }

    /// A block for one that has to move to become larger: at the start of a place for one that is larger by
    /// three orders, so that of four steps one moves it, or of a smaller one that is there already. More would
    /// spread blocks over the pool.
    ///
    /// # Errors
    /// As [`alloc`](Pool::alloc).
    pub(crate) fn roomy_block_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        const AHEAD: u32 = 3;
        let max_order = self.inner.settings().max_order;
        let most = order.saturating_add(AHEAD).min(max_order);
        let mut guard = self.inner.lock()?;
        let buddy = guard.buddy();
        let there = (order..=most).rev().find(|place| buddy.has_resident(1 << place));
        drop(guard);
        let place = there.unwrap_or(most);
        if order < place
            && let Ok(block) = self.run(1 << order, 1 << place, false)
        {
            return Ok(block);
        }
        self.block(order, false)
    }

    /// Makes a block one of another order, with the contents that both have room for: in place if
    /// [`resize_run_raw`](Pool::resize_run_raw) can and the block stays aligned to its size, or else by copying. It is
    /// copied too where it would need new memory, and twice as much is free and resident.
    ///
    /// # Safety
    /// As for [`resize_run_raw`](Pool::resize_run_raw), and of the whole block if it moves.
    ///
    /// # Errors
    /// As [`free_raw`](Pool::free_raw) and [`alloc_raw`](Pool::alloc_raw); the block is as it was then.
    pub unsafe fn resize_block_raw(
        &self,
        start: NonNull<u8>,
        order: u32,
        wanted: u32,
    ) -> Result<NonNull<u8>, PoolError> {
        let max_order = self.max_order();
        if let Some(order) = [order, wanted].into_iter().find(|order| *order > max_order) {
            return Err(PoolError::Order { order, max_order });
        }
        let offset = start.addr().get().wrapping_sub(self.base().addr());
        let aligned = offset.is_multiple_of(self.page_size() << wanted);
        let (frames, new) = (1 << order, || self.roomy_block_raw(wanted));
        // SAFETY: the caller's promise.
        unsafe { self.resize_anywhere(start, (frames, 1 << wanted), aligned, new) }
    }

    /// Makes a run longer or shorter, with the contents that both have room for: in place as
    /// [`resize_block_raw`](Pool::resize_block_raw) does, or else by copying.
    ///
    /// # Safety
    /// As for [`resize_block_raw`](Pool::resize_block_raw).
    ///
    /// # Errors
    /// As [`resize_block_raw`](Pool::resize_block_raw).
    pub unsafe fn resize_or_move_run_raw(
        &self,
        start: NonNull<u8>,
        frames: u32,
        wanted: u32,
    ) -> Result<NonNull<u8>, PoolError> {
        let new = || self.roomy_run_raw(wanted);
        // SAFETY: the caller's promise.
        unsafe { self.resize_anywhere(start, (frames, wanted), true, new) }
    }

    /// # Safety
    /// As for [`resize_block_raw`](Pool::resize_block_raw); `new` gives a run of so many pages as are wanted.
    unsafe fn resize_anywhere(
        &self,
        start: NonNull<u8>,
        (frames, wanted): (u32, u32),
        in_place: bool,
        new: impl FnOnce() -> Result<NonNull<u8>, PoolError>,
    ) -> Result<NonNull<u8>, PoolError> {
        // SAFETY: the caller's promise.
        if in_place && unsafe { self.resize_or_move_raw(start, (frames, wanted), true) }? {
            return Ok(start);
        }
        // An error if no run of so many pages begins there.
        // SAFETY: the caller's promise; nothing is cut off.
        unsafe { self.resize_run_raw(start, frames, frames) }?;
        let new = new()?;
        let length = self.page_size() * frames.min(wanted) as usize;
        // SAFETY: both are that long, and a new block overlaps no other.
        unsafe { cachewise::raw::copy_nonoverlapping(new.as_ptr(), start.as_ptr(), length) };
        // SAFETY: the caller's promise.
        unsafe { self.free_run_raw(start, frames) }?;
        Ok(new)
    }

    /// Frees a run as zero.
    ///
    /// # Safety
    /// As for [`free_raw`](Pool::free_raw), and every byte of it is zero.
    ///
    /// # Errors
    /// As [`free_raw`](Pool::free_raw).
    pub unsafe fn free_zeroed_run_raw(
        &self,
        start: NonNull<u8>,
        frames: u32,
    ) -> Result<(), PoolError> {
        let inner = &self.inner;
        if inner.is_closed() {
            return Err(PoolError::Closed);
        }
        let index = self.index(start, order_for(frames))?;
        inner.free(index, frames, true)
    }

    fn index(&self, start: NonNull<u8>, order: u32) -> Result<u32, PoolError> {
        let failed =
            |why: FreeError| PoolError::Free { address: start.as_ptr() as usize, order, why };
        self.inner.index(start.as_ptr()).map_err(failed)
    }

    /// Zeroes free dirty blocks now, in this thread, highest order first and whatever their age,
    /// until that many bytes are done or none is left. Returns the bytes zeroed. It uses the
    /// pool's built-in engine; for a custom one the CPU does it with non-temporal stores.
    ///
    /// # Errors
    /// [`PoolError::Closed`], [`PoolError::Reentered`].
    pub fn scrub_now(&self, budget: usize) -> Result<usize, PoolError> {
        self.inner.scrub_now(budget)
    }

    /// Returns all idle memory to the system, this thread's cache included, and remembers that it
    /// is zero. Returns the bytes.
    ///
    /// # Errors
    /// The system's answer if nothing could be returned; [`PoolError::Closed`].
    pub fn trim(&self) -> Result<usize, PoolError> {
        self.inner.trim(usize::MAX)
    }

    /// [`trim`](Pool::trim), of at most that many bytes or one page more.
    ///
    /// # Errors
    /// As [`trim`](Pool::trim).
    pub fn trim_at_most(&self, bytes: usize) -> Result<usize, PoolError> {
        self.inner.trim(bytes)
    }

    /// Returns the blocks in this thread's cache to the pool.
    pub fn flush_thread_cache(&self) {
        cache::flush(&self.inner);
    }

    /// Figures of this moment. Counters of running threads' caches are included.
    ///
    /// # Errors
    /// [`PoolError::Reentered`].
    pub fn stats(&self) -> Result<Stats, PoolError> {
        self.inner.stats()
    }

    /// Checks all bookkeeping: that every page is in exactly one state, that the counts add up, that
    /// all lists are whole. The time is proportional to the pool's size, and the lock is held.
    ///
    /// # Errors
    /// [`PoolError::Damaged`] with the first thing that does not hold.
    pub fn check(&self) -> Result<(), PoolError> {
        let inner = &self.inner;
        let mut guard = inner.lock()?;
        let buddy = guard.buddy();
        let counts = buddy.check()?;
        if counts.total() != u64::from(buddy.core().managed()) {
            return Err(PoolError::Damaged(Inconsistent { frame: 0, what: "pages are missing" }));
        }
        Ok(())
    }

    /// Reads every free block that is known to be zero.
    ///
    /// # Errors
    /// [`PoolError::NotZero`] for the first that is not.
    pub fn check_zeros(&self) -> Result<(), PoolError> {
        let inner = &self.inner;
        let mut guard = inner.lock()?;
        let buddy = guard.buddy();
        for (index, tag) in buddy.walk() {
            use crate::buddy::Use;
            let zero = matches!(
                tag.used(),
                Some(Use::Free(State::ZeroResident | State::ZeroAbsent) | Use::CachedZero)
            );
            let readable = inner.readable(index, index + (1 << tag.order()));
            let parts = readable.filter(|_| zero);
            let not_zero = |(first, end): (u32, u32)| {
                inner.not_zero(first, ((end - first) as usize) << inner.chunks.frame_shift)
            };
            if let Some((address, byte)) = parts.filter_map(not_zero).next() {
                return Err(PoolError::NotZero { address, byte, bytes: inner.bytes(tag.order()) });
            }
        }
        Ok(())
    }

    /// Pauses the scrubber. Returns whether it stopped within 10 ms; otherwise it stops as soon as
    /// the system lets it run again, or a custom engine has finished. `true` if there is no scrubber.
    pub fn pause_scrubber(&self) -> bool {
        let _turn = self.handle.turn.take();
        self.handle.scrubber().is_none_or(|scrubber| scrubber.pause(&self.inner))
    }

    /// Lets the scrubber continue; in a forked child, starts a scrubber with a built-in engine.
    pub fn resume_scrubber(&self) {
        let _turn = self.handle.turn.take();
        match self.handle.scrubber() {
            Some(scrubber) => scrubber.resume(&self.inner),
            None if self.handle.scrub.enabled => self.handle.start_own(),
            None => {}
        }
    }

    /// Makes one portion of free memory resident, as the scrubber's thread does. Whether there was to be more.
    #[cfg(all(feature = "testing", debug_assertions))]
    #[doc(hidden)]
    pub fn grow_ahead(&self) -> bool {
        self.inner.grow_ahead()
    }

    #[cfg(test)]
    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Closes the pool: from now on every call on any handle returns [`PoolError::Closed`]. Memory stays mapped until the last handle is
    /// dropped, so blocks that are still in use stay valid.
    pub fn close(&self) {
        self.inner.close();
        self.pause_scrubber();
    }

    /// Checks whether an address is inside the pool.
    #[must_use]
    #[inline]
    pub fn contains(&self, address: *const u8) -> bool {
        matches!(self.inner.index(address), Ok(_) | Err(FreeError::Misaligned))
    }

    /// The first address of the pool. Blocks are aligned to their size relative to it, and it is
    /// itself aligned to a huge page.
    #[must_use]
    pub fn base(&self) -> *const u8 {
        self.inner.base()
    }

    /// Bytes the pool may grow to.
    #[must_use]
    pub fn capacity(&self) -> usize {
        (self.inner.chunks.capacity as usize) << self.inner.chunks.frame_shift
    }

    /// Bytes of a block of order 0: a page of this system.
    #[must_use]
    pub fn page_size(&self) -> usize {
        1 << self.inner.chunks.frame_shift
    }

    /// The highest order of a block.
    #[must_use]
    pub fn max_order(&self) -> u32 {
        self.inner.settings().max_order
    }

    /// The notes: calls that the system refused.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        self.inner.notes()
    }

    /// Bytes of the pool that are in memory, as the system sees it.
    ///
    /// # Errors
    /// The system's answer.
    pub fn resident(&self) -> Result<usize, PoolError> {
        os::resident(self.inner.base(), self.capacity())
            .map_err(PoolError::system("asking what is in memory"))
    }
}
