//! The pool as a program holds it.

#[cfg(feature = "allocator-api2")]
pub mod allocator;
pub(crate) mod block;
mod make;

use crate::buddy::{FreeError, State, Use, order_for};
use crate::config::Builder;
use crate::error::{Note, PoolError};
use crate::inner::Inner;
use crate::inner::cache;
use crate::inner::serve::Wanted;
use crate::os;
use crate::scrubber::Scrubber;
use crate::stats::Stats;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};
use std::vec::Vec;

/// A pool of page blocks. Clones are handles of the same pool; dropping the last handle unmaps the
/// pool, so no block may be in use then. Blocks of [`alloc`](Pool::alloc) and
/// [`zalloc`](Pool::zalloc) borrow the handle; for raw blocks the caller is responsible.
///
/// Every method may be called from any thread. In a signal handler that interrupted the pool in
/// the same thread a call may return [`PoolError::Reentered`].
///
/// In a child made by `fork` every call returns [`PoolError::Forked`]. The blocks that are in use stay readable and
/// writable there, as the system copies them; but not those of a leased pool, of one of explicit huge pages and of one
/// that a GPU zeroes: a child of such a program executes another one, or does not touch them.
#[derive(Clone)]
pub struct Pool {
    inner: Arc<Inner>,
    // Goes last, and with it the scrubber, which is stopped before the memory goes away.
    handle: Arc<Handle>,
}

struct Handle {
    scrubber: Mutex<Option<Scrubber>>,
    inner: Arc<Inner>,
}

impl Handle {
    /// Gives the scrubber an order, if there is one.
    fn order<T>(&self, order: impl FnOnce(&Scrubber, &Inner) -> T) -> Option<T> {
        let scrubber = self.scrubber.lock().unwrap_or_else(PoisonError::into_inner);
        scrubber.as_ref().map(|scrubber| order(scrubber, &self.inner))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let scrubber = self.scrubber.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        match scrubber {
            Some(scrubber) if self.inner.is_here() => scrubber.stop(&self.inner),
            // The thread is the parent's.
            scrubber => std::mem::forget(scrubber),
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
    /// [`PoolError::TooLarge`] if the pool never has so many.
    pub fn frames_for(&self, bytes: usize) -> Result<u32, PoolError> {
        let frames = u32::try_from(bytes.max(1).div_ceil(self.page_size()));
        let fits = |frames: &u32| *frames <= self.inner.capacity;
        let capacity = self.capacity();
        frames.ok().filter(fits).ok_or(PoolError::TooLarge { bytes, capacity })
    }

    /// [`alloc`](Pool::alloc) for callers that keep addresses, as a C interface does. Free the block
    /// with [`free_raw`](Pool::free_raw).
    ///
    /// # Errors
    /// Errors of [`alloc`](Pool::alloc).
    #[inline]
    pub fn alloc_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        self.cached(order, false)
    }

    /// [`zalloc`](Pool::zalloc) for callers that keep addresses.
    ///
    /// # Errors
    /// Errors of [`zalloc`](Pool::zalloc).
    #[inline]
    pub fn zalloc_raw(&self, order: u32) -> Result<NonNull<u8>, PoolError> {
        self.cached(order, true)
    }

    /// A block from this thread's cache, or from the pool.
    #[inline(always)]
    fn cached(&self, order: u32, zeroed: bool) -> Result<NonNull<u8>, PoolError> {
        if self.inner.is_open()
            && let Some(index) = cache::take(&self.inner, order, zeroed)
        {
            return Ok(self.at(index));
        }
        self.block(order, zeroed)
    }

    /// [`zalloc_to_fill`](Pool::zalloc_to_fill) for callers that keep addresses.
    ///
    /// # Errors
    /// Errors of [`zalloc`](Pool::zalloc).
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

    #[cold]
    #[inline(never)]
    fn block(&self, order: u32, zeroed: bool) -> Result<NonNull<u8>, PoolError> {
        let max_order = self.max_order();
        if order > max_order {
            return Err(PoolError::Order { order, max_order });
        }
        let (frames, alignment) = (1 << order, 1 << order);
        self.inner.take(Wanted { frames, alignment, zeroed }).map(|index| self.at(index))
    }

    /// A run of pages with any contents; free it with [`free_run_raw`](Pool::free_run_raw).
    ///
    /// # Errors
    /// Errors of [`alloc`](Pool::alloc).
    pub fn alloc_run_raw(&self, frames: u32) -> Result<NonNull<u8>, PoolError> {
        self.run(frames, 1, false)
    }

    /// A run of zeroed pages; free it with [`free_run_raw`](Pool::free_run_raw).
    ///
    /// # Errors
    /// Errors of [`zalloc`](Pool::zalloc).
    pub fn zalloc_run_raw(&self, frames: u32) -> Result<NonNull<u8>, PoolError> {
        self.run(frames, 1, true)
    }

    /// A run that begins at a multiple of `alignment` pages, a power of two.
    pub(crate) fn run(
        &self,
        frames: u32,
        alignment: u32,
        zeroed: bool,
    ) -> Result<NonNull<u8>, PoolError> {
        let wanted = Wanted { frames: frames.max(1), alignment, zeroed };
        self.inner.take(wanted).map(|index| self.at(index))
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
            && cache::put(&self.inner, index, order) == Some(true)
        {
            return Ok(());
        }
        let max_order = self.max_order();
        if order > max_order {
            return Err(PoolError::Order { order, max_order });
        }
        // SAFETY: the caller's promise.
        unsafe { self.free_run_raw(start, 1 << order) }
    }

    /// Frees a run.
    ///
    /// # Safety
    /// Promises of [`free_raw`](Pool::free_raw).
    ///
    /// # Errors
    /// Errors of [`free_raw`](Pool::free_raw).
    #[cold]
    pub unsafe fn free_run_raw(&self, start: NonNull<u8>, frames: u32) -> Result<(), PoolError> {
        self.inner.usable()?;
        let order = order_for(frames);
        let index = self.index(start, order)?;
        if frames == 1 << order && cache::put_or_make_room(&self.inner, index, order) == Some(true)
        {
            return Ok(());
        }
        // Also finds out why the cache would not have it.
        self.inner.free(index, frames, false)
    }

    /// Frees a run as zero.
    ///
    /// # Safety
    /// Promises of [`free_raw`](Pool::free_raw), and every byte of it is zero.
    ///
    /// # Errors
    /// Errors of [`free_raw`](Pool::free_raw).
    pub unsafe fn free_zeroed_run_raw(
        &self,
        start: NonNull<u8>,
        frames: u32,
    ) -> Result<(), PoolError> {
        self.inner.usable()?;
        let index = self.index(start, order_for(frames))?;
        self.inner.free(index, frames, true)
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
    /// [`PoolError::Closed`], [`PoolError::Forked`], [`PoolError::Reentered`].
    pub fn scrub_now(&self, budget: usize) -> Result<usize, PoolError> {
        self.inner.scrub_now(budget)
    }

    /// Returns all idle memory to the system, this thread's cache included, and remembers that it
    /// is zero. Returns the bytes.
    ///
    /// # Errors
    /// The system's answer if nothing could be returned; [`PoolError::Closed`], [`PoolError::Forked`].
    pub fn trim(&self) -> Result<usize, PoolError> {
        self.inner.trim()
    }

    /// Returns the blocks in this thread's cache to the pool.
    pub fn flush_thread_cache(&self) {
        cache::flush(&self.inner);
    }

    /// Figures of this moment. Counters of running threads' caches are included.
    ///
    /// # Errors
    /// [`PoolError::Forked`], [`PoolError::Reentered`].
    pub fn stats(&self) -> Result<Stats, PoolError> {
        self.inner.stats()
    }

    /// Checks all bookkeeping: that every page is in exactly one state, that the counts add up, that
    /// all lists are whole. The time is proportional to the pool's size, and the lock is held.
    ///
    /// # Errors
    /// [`PoolError::Damaged`] with the first thing that does not hold; [`PoolError::Forked`].
    pub fn check(&self) -> Result<(), PoolError> {
        self.inner.lock()?.buddy().check()?;
        Ok(())
    }

    /// Reads every free block that is known to be zero.
    ///
    /// # Errors
    /// [`PoolError::NotZero`] for the first that is not; [`PoolError::Forked`].
    pub fn check_zeros(&self) -> Result<(), PoolError> {
        let inner = &self.inner;
        let mut guard = inner.lock()?;
        let buddy = guard.buddy();
        for (index, tag) in buddy.walk() {
            let zero = matches!(
                tag.used(),
                Some(Use::Free(State::ZeroResident | State::ZeroAbsent) | Use::CachedZero)
            );
            let bytes = inner.bytes(tag.order());
            if zero && let Some((address, byte)) = inner.not_zero(index, bytes) {
                return Err(PoolError::NotZero { address, byte, bytes });
            }
        }
        Ok(())
    }

    /// Pauses the scrubber. Returns whether it stopped within 10 ms; otherwise it stops as soon as
    /// the system lets it run again, or a custom engine has finished. `true` if there is no scrubber, `false` in a
    /// forked child.
    pub fn pause_scrubber(&self) -> bool {
        self.inner.is_here() && self.handle.order(Scrubber::pause).unwrap_or(true)
    }

    /// Lets the scrubber continue.
    pub fn resume_scrubber(&self) {
        if self.inner.is_here() {
            self.handle.order(Scrubber::resume);
        }
    }

    /// Closes the pool: from now on every call on any handle returns [`PoolError::Closed`]. Memory stays mapped until the
    /// last handle is dropped, so blocks that are still in use stay valid.
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
        self.inner.length(self.inner.capacity)
    }

    /// Bytes of a block of order 0: a page of this system.
    #[must_use]
    pub fn page_size(&self) -> usize {
        1 << self.inner.frame_shift
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
