//! The pool, and how long each of its blocks is, which `free` is not told.

use crate::say;
use cachewise_pages::buddy::run_alignment;
use cachewise_pages::global::{LARGEST, SMALLEST};
use cachewise_pages::{GiveBack, Pool, PoolError};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that `CACHEWISE_POOL` gave; 0 where there is no pool to be.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);
static POOL: AtomicPtr<Served> = AtomicPtr::new(ptr::null_mut());
static STATE: AtomicU8 = AtomicU8::new(NOT_BUILT);
const NOT_BUILT: u8 = 0;
const BUILDING: u8 = 1;
const BUILT: u8 = 2;

/// Bytes made resident at most before they are asked for. The pool keeps to an eighth of what is in
/// use (`Builder::grow_ahead`); this is the bound on what may lie idle of what the user granted,
/// the same part on every machine. Where a program rises faster, it makes the rest resident itself.
const fn ahead(capacity: usize) -> usize {
    capacity / 32
}

/// What the program asked for and did not get from the pool, by reason.
#[derive(Clone, Copy)]
enum Miss {
    /// No free block that large.
    Full,
    /// Another thread was in the pool.
    Busy,
    /// Above the largest request that is served.
    TooLarge,
    /// An alignment that the pool has not.
    Alignment,
    /// Anything else: no memory, called from a signal handler.
    Other,
}

/// How many reasons there are.
pub(crate) const MISSES: usize = 5;
static TAKEN: AtomicU64 = AtomicU64::new(0);
static MISSED: [AtomicU64; MISSES] = [const { AtomicU64::new(0) }; MISSES];
static FULL_BYTES: AtomicU64 = AtomicU64::new(0);
static IN_USE: AtomicU64 = AtomicU64::new(0);
static MOST_IN_USE: AtomicU64 = AtomicU64::new(0);

fn missed(why: Miss, bytes: usize) {
    MISSED[why as usize].fetch_add(1, Ordering::Relaxed);
    if matches!(why, Miss::Full) {
        FULL_BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// What the pool did, for `stats.rs`.
pub(crate) struct Figures {
    pub(crate) pool: cachewise_pages::Stats,
    pub(crate) served: u64,
    /// In the order of `Miss`.
    pub(crate) missed: [u64; MISSES],
    /// Bytes of the requests that found the pool full.
    pub(crate) full_bytes: u64,
    pub(crate) most_in_use: u64,
}

/// None where the program made no use of a pool.
pub(crate) fn figures() -> Option<Figures> {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Some(Figures {
        pool: built()?.pool.stats().ok()?,
        served: get(&TAKEN),
        missed: std::array::from_fn(|why| get(&MISSED[why])),
        full_bytes: get(&FULL_BYTES),
        most_in_use: get(&MOST_IN_USE),
    })
}

/// The pool and its blocks' lengths.
pub(crate) struct Served {
    pool: Pool,
    base: usize,
    /// Pages of the block that begins at each page; 0 where none does.
    lengths: Box<[AtomicU32]>,
}

/// There will be a pool, whose memory goes back after so many seconds without use.
pub fn enable(bytes: usize, idle_seconds: Option<u32>) {
    if let Some(seconds) = idle_seconds {
        IDLE.store(seconds, Ordering::Relaxed);
    }
    CAPACITY.store(bytes, Ordering::Release);
}

/// Seconds; all ones is the default.
static IDLE: AtomicU32 = AtomicU32::new(u32::MAX);

fn idle() -> GiveBack {
    match IDLE.load(Ordering::Relaxed) {
        u32::MAX => GiveBack::default(),
        seconds => {
            GiveBack { after: Duration::from_secs(u64::from(seconds)), ..GiveBack::default() }
        }
    }
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
    let idle = GiveBack { floor: (capacity / 16).min(GiveBack::default().floor), ..idle() };
    let builder = Pool::builder().capacity(capacity).cache_blocks(0).stands_in().give_back(idle);
    match builder.grow_ahead(ahead(capacity)).build() {
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
    if size < SMALLEST || CAPACITY.load(Ordering::Relaxed) == 0 {
        return None;
    }
    large(size, align, zeroed)
}

#[cold]
fn large(size: usize, align: usize, zeroed: bool) -> Option<NonNull<u8>> {
    if size > LARGEST {
        missed(Miss::TooLarge, size);
        return None;
    }
    undisturbed(|| {
        if built().is_none() {
            build();
        }
        match built()?.take(size, align, zeroed) {
            Ok(block) => {
                TAKEN.fetch_add(1, Ordering::Relaxed);
                Some(block)
            }
            Err(why) => {
                missed(why, size);
                None
            }
        }
    })
}

/// The pool, if a block is from there.
#[inline]
pub(crate) fn owner(block: *const u8) -> Option<&'static Served> {
    built().filter(|served| served.pool.contains(block))
}

impl Served {
    fn take(&self, size: usize, align: usize, zeroed: bool) -> Result<NonNull<u8>, Miss> {
        let frames = self.pool.frames_for(size).map_err(|_| Miss::TooLarge)?;
        // A run starts at a multiple of its size rounded down, as far as the pool's start is
        // aligned.
        let own = self.pool.page_size() * run_alignment(frames) as usize;
        if align > own.min(1 << self.base.trailing_zeros()) {
            return Err(Miss::Alignment);
        }
        let taken =
            if zeroed { self.pool.zalloc_run_raw(frames) } else { self.pool.alloc_run_raw(frames) };
        let block = taken.map_err(|why| match why {
            PoolError::Exhausted { .. } => Miss::Full,
            PoolError::Busy => Miss::Busy,
            _ => Miss::Other,
        })?;
        if let Some(length) = self.length(block.as_ptr()) {
            length.store(frames, Ordering::Release);
        }
        let bytes = u64::from(frames) * self.pool.page_size() as u64;
        let in_use = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if in_use > MOST_IN_USE.load(Ordering::Relaxed) {
            MOST_IN_USE.fetch_max(in_use, Ordering::Relaxed);
        }
        Ok(block)
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
            if frames == 0 {
                corrupt(block.as_ptr());
            }
            // SAFETY: the program's promise, as to `free`; that the block is one is checked.
            match unsafe { self.pool.free_run_raw(block, frames) } {
                Ok(()) => {}
                // In a signal handler that interrupted the pool, which must not call `free`: the
                // block is lost, and nothing else.
                Err(PoolError::Reentered) => return,
                Err(_) => corrupt(block.as_ptr()),
            }
            let bytes = u64::from(frames) * self.pool.page_size() as u64;
            IN_USE.fetch_sub(bytes, Ordering::Relaxed);
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
