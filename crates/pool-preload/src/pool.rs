//! The pool, and how long each of its blocks is, which `free` is not told.

use crate::say;
use cachewise_pages::Pool;
use cachewise_pages::global::{LARGEST, SMALLEST};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Bytes that `CACHEWISE_POOL` gave; 0 where there is no pool to be.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);
static POOL: AtomicPtr<Served> = AtomicPtr::new(ptr::null_mut());
static STATE: AtomicU8 = AtomicU8::new(NOT_BUILT);
const NOT_BUILT: u8 = 0;
const BUILDING: u8 = 1;
const BUILT: u8 = 2;

static TAKEN: AtomicU64 = AtomicU64::new(0);
static HANDED_ON: AtomicU64 = AtomicU64::new(0);

/// The pool and its blocks' lengths.
pub(crate) struct Served {
    pool: Pool,
    base: usize,
    /// Pages of the block that begins at each page; 0 where none does.
    lengths: Box<[AtomicU32]>,
}

/// There will be a pool.
pub(crate) fn enable(bytes: usize) {
    CAPACITY.store(bytes, Ordering::Release);
}

#[inline]
fn built() -> Option<&'static Served> {
    // SAFETY: null, or a pool that is never taken down.
    unsafe { POOL.load(Ordering::Acquire).as_ref() }
}

/// Made at the first large request; those that come meanwhile, the pool's own included, are the
/// program's allocator's.
#[cold]
fn build() {
    let begun = STATE.compare_exchange(NOT_BUILT, BUILDING, Ordering::AcqRel, Ordering::Relaxed);
    if begun.is_err() {
        return;
    }
    let capacity = CAPACITY.load(Ordering::Acquire);
    // A thread's cache would need storage of the thread with a destructor, which an allocator must
    // not have; blocks this large gain little from one.
    match Pool::builder().capacity(capacity).cache_blocks(0).stands_in().build() {
        Ok(pool) => {
            let pages = pool.capacity() / pool.page_size();
            let lengths = (0..pages).map(|_| AtomicU32::new(0)).collect();
            let served = Served { base: pool.base() as usize, pool, lengths };
            POOL.store(Box::into_raw(Box::new(served)), Ordering::Release);
        }
        Err(error) => say(format_args!("CACHEWISE_POOL: {error}; no pool")),
    }
    STATE.store(BUILT, Ordering::Release);
}

/// Keeps the thread's `errno`, which `free` must not change, nor `malloc` that succeeds.
fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: always callable.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    let before = unsafe { place.read() };
    let done = work();
    // SAFETY: as above.
    unsafe { place.write(before) };
    done
}

/// A block of at least that many bytes; none if it is not the pool's to serve, or not now.
#[inline]
pub(crate) fn take(size: usize, align: usize, zeroed: bool) -> Option<NonNull<u8>> {
    if !(SMALLEST..=LARGEST).contains(&size) || CAPACITY.load(Ordering::Relaxed) == 0 {
        return None;
    }
    large(size, align, zeroed)
}

#[cold]
fn large(size: usize, align: usize, zeroed: bool) -> Option<NonNull<u8>> {
    undisturbed(|| {
        if built().is_none() {
            build();
        }
        let served = built()?;
        let block = served.take(size, align, zeroed);
        let count = if block.is_some() { &TAKEN } else { &HANDED_ON };
        count.fetch_add(1, Ordering::Relaxed);
        block
    })
}

/// The pool, if a block is from there.
#[inline]
pub(crate) fn owner(block: *const u8) -> Option<&'static Served> {
    built().filter(|served| served.pool.contains(block))
}

impl Served {
    fn take(&self, size: usize, align: usize, zeroed: bool) -> Option<NonNull<u8>> {
        let frames = self.pool.frames_for(size).ok()?;
        // A run starts at a multiple of its size rounded up, as far as the pool's start is aligned.
        let own = self.pool.page_size() * (frames as usize).next_power_of_two();
        if align > own.min(1 << self.base.trailing_zeros()) {
            return None;
        }
        let taken =
            if zeroed { self.pool.zalloc_run_raw(frames) } else { self.pool.alloc_run_raw(frames) };
        let block = taken.ok()?;
        self.length(block.as_ptr())?.store(frames, Ordering::Release);
        Some(block)
    }

    fn length(&self, block: *const u8) -> Option<&AtomicU32> {
        let offset = (block as usize).wrapping_sub(self.base);
        let page = self.pool.page_size();
        offset.is_multiple_of(page).then(|| self.lengths.get(offset / page)).flatten()
    }

    /// Bytes of a block; ends the program if none begins there, as glibc does.
    pub(crate) fn bytes(&self, block: *const u8) -> usize {
        let frames = self.length(block).map_or(0, |length| length.load(Ordering::Acquire));
        if frames == 0 {
            corrupt(block);
        }
        frames as usize * self.pool.page_size()
    }

    /// Takes a block back; ends the program if there is none, or it was given back before.
    pub(crate) fn give_back(&self, block: NonNull<u8>) {
        undisturbed(|| {
            let length = self.length(block.as_ptr());
            let frames = length.map_or(0, |length| length.swap(0, Ordering::AcqRel));
            // SAFETY: the program's promise, as to `free`; that the block is one is checked.
            if frames == 0 || unsafe { self.pool.free_run_raw(block, frames) }.is_err() {
                corrupt(block.as_ptr());
            }
        });
    }
}

#[cold]
fn corrupt(block: *const u8) -> ! {
    let line = format!("cachewise: free of {block:p}: no block in use begins there; aborting\n");
    // SAFETY: readable for its length.
    unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    // SAFETY: always callable.
    unsafe { libc::abort() }
}

/// What it did, on stderr.
pub(crate) fn tell() {
    let (taken, on) = (TAKEN.load(Ordering::Relaxed), HANDED_ON.load(Ordering::Relaxed));
    let Some(served) = built() else {
        return say(format_args!("pool: none was made; no request of {SMALLEST} bytes and more"));
    };
    let Ok(figures) = served.pool.stats() else { return };
    say(format_args!(
        "pool: {taken} large requests served, {on} handed on; {} found zeroed, {} not; {} MiB \
         zeroed in the background in {} ms of CPU, {} MiB at hand-out; {} MiB resident",
        figures.zero_hits,
        figures.zero_misses,
        figures.scrubbed >> 20,
        figures.scrub_cpu.as_millis(),
        figures.hot_zeroed >> 20,
        figures.resident >> 20
    ));
}
