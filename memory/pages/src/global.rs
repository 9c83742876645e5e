//! A global allocator that serves large requests from a pool.
//!
//! ```no_run
//! use cachewise_pages::global::PoolAlloc;
//! use cachewise_pages::Pool;
//! use std::alloc::System;
//!
//! #[global_allocator]
//! static ALLOCATOR: PoolAlloc = PoolAlloc::new(System, || Pool::builder().capacity(1 << 30));
//! # fn main() {}
//! ```

use crate::config::Builder;
use crate::pool::Pool;
use std::alloc::{GlobalAlloc, Layout, System};
use std::boxed::Box;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

/// The smallest request served from the pool by default: for smaller ones an ordinary allocator
/// reuses resident memory and needs no page faults, either.
pub const SMALLEST: usize = 128 << 10;
/// The largest, by default. A larger zeroed request is usually for a table that stays sparse, and
/// memory that is mapped on touch is better for it.
pub const LARGEST: usize = 256 << 20;

const NOT_BUILT: u8 = 0;
const BUILDING: u8 = 1;
const BUILT: u8 = 2;

/// An allocator that takes large blocks from a pool, and everything else, and everything the pool
/// cannot give, from another allocator.
///
/// The pool is made at the first large request. Until it is made, all requests go to the other
/// allocator, including those of the code that makes it. If it cannot be made, all requests go
/// there; so does each request that would have to wait for another thread. The pool has no
/// per-thread caches: they would need thread-local storage with a destructor, which an allocator
/// must not have.
#[derive(Debug)]
pub struct PoolAlloc<A = System> {
    inner: A,
    settings: fn() -> Builder,
    smallest: usize,
    largest: usize,
    state: AtomicU8,
    pool: AtomicPtr<Pool>,
}

impl<A> PoolAlloc<A> {
    /// An allocator over `inner`, with a pool of these settings.
    #[must_use]
    pub const fn new(inner: A, settings: fn() -> Builder) -> PoolAlloc<A> {
        PoolAlloc {
            inner,
            settings,
            smallest: SMALLEST,
            largest: LARGEST,
            state: AtomicU8::new(NOT_BUILT),
            pool: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Serves requests of at least `smallest` and at most `largest` bytes from the pool.
    #[must_use]
    pub const fn between(mut self, smallest: usize, largest: usize) -> PoolAlloc<A> {
        self.smallest = smallest;
        self.largest = largest;
        self
    }

    /// The pool, if it has been made.
    #[must_use]
    pub fn pool(&self) -> Option<&Pool> {
        // SAFETY: null, or a pool that is never taken down.
        unsafe { self.pool.load(Ordering::Acquire).as_ref() }
    }

    fn pool_for(&self, layout: Layout) -> Option<(&Pool, u32)> {
        if layout.size() < self.smallest || layout.size() > self.largest {
            return None;
        }
        if self.pool().is_none() {
            self.build();
        }
        let pool = self.pool()?;
        Some((pool, pool.frames_for(layout.size()).ok()?))
    }

    #[cold]
    fn build(&self) {
        let begun =
            self.state.compare_exchange(NOT_BUILT, BUILDING, Ordering::Acquire, Ordering::Relaxed);
        if begun.is_err() {
            return;
        }
        if let Ok(pool) = (self.settings)().for_allocator().build() {
            self.pool.store(Box::into_raw(Box::new(pool)), Ordering::Release);
        }
        // Made or not, it is not tried again.
        self.state.store(BUILT, Ordering::Release);
    }

    fn take(&self, layout: Layout, zeroed: bool) -> Option<NonNull<u8>> {
        let (pool, frames) = self.pool_for(layout)?;
        pool.aligned_run_raw(frames, layout.align(), zeroed)?.ok()
    }

    fn owner(&self, block: *const u8) -> Option<&Pool> {
        self.pool().filter(|pool| pool.contains(block))
    }
}

// SAFETY: blocks come from the pool, which hands each out once, or from the inner allocator; which
// of the two is told by the address.
unsafe impl<A: GlobalAlloc> GlobalAlloc for PoolAlloc<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match self.take(layout, false) {
            Some(block) => block.as_ptr(),
            // SAFETY: the caller's promise.
            None => unsafe { self.inner.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        match self.take(layout, true) {
            Some(block) => block.as_ptr(),
            // SAFETY: the caller's promise.
            None => unsafe { self.inner.alloc_zeroed(layout) },
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(pool) = self.owner(block) else {
            // SAFETY: the caller's promise; the block is not the pool's.
            return unsafe { self.inner.dealloc(block, layout) };
        };
        if let (Some(block), Ok(frames)) = (NonNull::new(block), pool.frames_for(layout.size())) {
            // A refusal means that the program freed twice; an allocator has no way to say so.
            // SAFETY: the caller's promise.
            let _ = unsafe { pool.free_run_raw(block, frames) };
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let Some(pool) = self.owner(block) else {
            // SAFETY: the caller's promise; the block is not the pool's.
            return unsafe { self.inner.realloc(block, layout, new_size) };
        };
        let (Some(start), Ok(held)) = (NonNull::new(block), pool.frames_for(layout.size())) else {
            return ptr::null_mut();
        };
        let wanted = pool.frames_for(new_size).ok().filter(|_| new_size <= self.largest);
        let movable = layout.align() <= pool.page_size();
        // SAFETY: the caller's promise; what is cut off is nobody's any more.
        let resize = |wanted| unsafe { pool.resize_or_move_raw(start, (held, wanted), movable) };
        if wanted.is_some_and(|wanted| wanted == held || resize(wanted).unwrap_or(false)) {
            return block;
        }
        // SAFETY: the caller promises that the new size, rounded up, does not overflow.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        let roomy = wanted.filter(|_| movable);
        let roomy = roomy.and_then(|wanted| pool.roomy_run_raw(wanted).ok());
        let new = match roomy {
            Some(new) => new.as_ptr(),
            // SAFETY: the caller promises a size above zero.
            None => unsafe { self.alloc(new_layout) },
        };
        if !new.is_null() {
            let length = layout.size().min(new_size);
            // SAFETY: both are that long, and the new block overlaps no other.
            unsafe { cachewise::raw::copy_nonoverlapping(new, block, length) };
            // SAFETY: the caller's promise.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}
