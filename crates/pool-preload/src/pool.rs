//! The pool, made at the first large request, and what it could not serve.

use crate::{is_stderr, say, write_quietly};
use cachewise_pages::global::{LARGEST, SMALLEST};
use cachewise_pages::heap::Heap;
use cachewise_pages::{GiveBack, PoolError, thread};
use core::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::time::Duration;

/// Bytes that `CACHEWISE_POOL` gave; 0 where there is no pool to be.
static CAPACITY: AtomicUsize = AtomicUsize::new(0);
static POOL: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());
static STATE: AtomicU8 = AtomicU8::new(NOT_BUILT);
const NOT_BUILT: u8 = 0;
const BUILDING: u8 = 1;
const BUILT: u8 = 2;

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
    let heap = built()?;
    Some(Figures {
        pool: heap.pool().stats().ok()?,
        served: get(&TAKEN),
        missed: std::array::from_fn(|why| get(&MISSED[why])),
        full_bytes: get(&FULL_BYTES),
        most_in_use: heap.most_in_use(),
    })
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
fn built() -> Option<&'static Heap> {
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
    // What the pool needs itself is nobody's request.
    let own = &thread::current().looking;
    own.store(1, Ordering::Relaxed);
    match Heap::new(capacity, idle()) {
        Ok(heap) => {
            POOL.store(Box::into_raw(Box::new(heap)), Ordering::SeqCst);
            leave_if_main_did();
        }
        Err(error) => say(format_args!("CACHEWISE_POOL: {error}; no pool")),
    }
    own.store(0, Ordering::Relaxed);
    STATE.store(BUILT, Ordering::Release);
}

/// Whether the main thread left by `pthread_exit`: the pool's must not be the one that is left.
static MAIN_LEFT: AtomicBool = AtomicBool::new(false);

fn leave_if_main_did() {
    if MAIN_LEFT.load(Ordering::SeqCst)
        && let Some(heap) = built()
    {
        heap.pool().leave_when_alone();
    }
}

extern "C" fn main_left(_: *mut c_void) {
    MAIN_LEFT.store(true, Ordering::SeqCst);
    leave_if_main_did();
}

/// The key whose value only the main thread has: its destructor runs when that thread leaves alone, and not
/// when the process ends.
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);

extern "C" fn is_main() {
    MAIN_LEFT.store(false, Ordering::SeqCst);
    // SAFETY: a key, or a number that is none, which is refused; any value but null.
    unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), ptr::dangling()) };
}

/// Called by the main thread. In a forked child it is the one that forked.
#[cfg(not(fuzzing))]
pub(crate) fn watch_main() {
    let mut key = 0;
    // SAFETY: a place for the key, and a function that lives as long as the process.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(main_left)) } != 0 {
        return;
    }
    KEY.store(key, Ordering::Relaxed);
    is_main();
    // SAFETY: a function that lives as long as the process.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}

#[cfg(not(fuzzing))]
extern "C" fn in_child() {
    is_main();
    // Another thread was making the pool, and is not here: it is begun anew.
    if thread::current().looking.load(Ordering::Relaxed) == 0 {
        let _ = STATE.compare_exchange(BUILDING, NOT_BUILT, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// Keeps the thread's `errno`, which `free` must not change, nor `malloc` that succeeds.
pub(crate) fn undisturbed<T>(work: impl FnOnce() -> T) -> T {
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
        let Some(heap) = built() else {
            // Another thread is making it, and this one does not wait.
            if STATE.load(Ordering::Acquire) == BUILDING
                && thread::current().looking.load(Ordering::Relaxed) == 0
            {
                missed(Miss::Busy, size);
            }
            return None;
        };
        match take_aligned(heap, size, align, zeroed) {
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
pub(crate) fn owner(block: *const u8) -> Option<Owner> {
    built().filter(|heap| heap.contains(block)).map(Owner)
}

fn take_aligned(heap: &Heap, size: usize, align: usize, zeroed: bool) -> Result<NonNull<u8>, Miss> {
    heap.take_aligned(size, align, zeroed).ok_or(Miss::Alignment)?.map_err(|why| match why {
        PoolError::Exhausted { .. } => Miss::Full,
        PoolError::Busy => Miss::Busy,
        _ => Miss::Other,
    })
}

/// The pool that a block is from.
#[derive(Clone, Copy)]
pub(crate) struct Owner(&'static Heap);

impl Owner {
    /// Bytes of a block; ends the program if none begins there, as glibc does.
    pub(crate) fn bytes(self, block: *const u8) -> usize {
        self.0.bytes(block).unwrap_or_else(|_| corrupt(block))
    }

    /// Takes a block back; ends the program if there is none, or it was given back before.
    pub(crate) fn give_back(self, block: NonNull<u8>) {
        undisturbed(|| {
            // SAFETY: the program's promise, as to `free`.
            if unsafe { self.0.give_back(block) }.is_err() {
                corrupt(block.as_ptr());
            }
        });
    }
}

#[cold]
fn corrupt(block: *const u8) -> ! {
    if is_stderr(2) {
        let line =
            format!("cachewise: free of {block:p}: no block in use begins there; aborting\n");
        let _ = write_quietly(2, &line);
    }
    // SAFETY: always callable.
    unsafe { libc::abort() }
}
