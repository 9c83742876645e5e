//! The one pool, and what NumPy was given from it.

use cachewise_pages::global::{LARGEST, SMALLEST};
use cachewise_pages::heap::Heap;
use cachewise_pages::{GiveBack, PoolError, ScrubberState};
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

static POOL: AtomicPtr<Heap> = AtomicPtr::new(ptr::null_mut());
/// Held while the pool is made.
static MAKING: Mutex<()> = Mutex::new(());

/// Bytes of the smallest block that is served.
static LEAST: AtomicUsize = AtomicUsize::new(SMALLEST);

static SERVED: AtomicU64 = AtomicU64::new(0);
static TOO_LARGE: AtomicU64 = AtomicU64::new(0);
static FULL: AtomicU64 = AtomicU64::new(0);
static OTHER: AtomicU64 = AtomicU64::new(0);

/// Why there is no pool of that size.
pub(super) enum Problem {
    OtherSize(usize),
    Refused(PoolError),
}

/// Makes the pool, unless there is one of that size.
pub(super) fn make(bytes: usize) -> Result<(), Problem> {
    let _making = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(there) = made() {
        let (page, capacity) = (there.pool().page_size(), there.pool().capacity());
        let same = bytes.checked_next_multiple_of(page) == Some(capacity);
        return if same { Ok(()) } else { Err(Problem::OtherSize(capacity)) };
    }
    let heap = Heap::new(bytes, GiveBack::default()).map_err(Problem::Refused)?;
    POOL.store(Box::into_raw(Box::new(heap)), Ordering::Release);
    Ok(())
}

/// Serves blocks of so many bytes and more; 128 KiB by default.
pub(super) fn serve_from(bytes: Option<usize>) {
    LEAST.store(bytes.unwrap_or(SMALLEST), Ordering::Relaxed);
}

fn made() -> Option<&'static Heap> {
    // SAFETY: null, or a pool that is never taken down.
    unsafe { POOL.load(Ordering::Acquire).as_ref() }
}

/// Returns whether there is a pool.
pub(super) fn is_made() -> bool {
    made().is_some()
}

/// A block of at least that many bytes; none if it is not the pool's to serve, or not now.
pub(super) fn take(size: usize, zeroed: bool) -> Option<NonNull<u8>> {
    if size < LEAST.load(Ordering::Relaxed) {
        return None;
    }
    let heap = made()?;
    if size > LARGEST {
        TOO_LARGE.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    match heap.take(size, zeroed) {
        Ok(block) => {
            SERVED.fetch_add(1, Ordering::Relaxed);
            Some(block)
        }
        Err(PoolError::Exhausted { .. }) => {
            FULL.fetch_add(1, Ordering::Relaxed);
            None
        }
        Err(_) => {
            OTHER.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

fn owner(block: *const u8) -> Option<&'static Heap> {
    made().filter(|heap| heap.contains(block))
}

/// Returns whether a block is the pool's.
pub(super) fn owns(block: *const u8) -> bool {
    owner(block).is_some()
}

/// Bytes of a block of the pool, none where it is not the pool's; ends the process if none begins there.
pub(super) fn bytes(block: *const u8) -> Option<usize> {
    let heap = owner(block)?;
    Some(heap.bytes(block).unwrap_or_else(|_| corrupt(block)))
}

/// Makes a block of the pool longer or shorter, where it is if that can be; none where the pool has no room
/// for it.
///
/// # Safety
/// What is cut off is nobody's any more, and neither is the block if it moved.
pub(super) unsafe fn resize(block: NonNull<u8>, size: usize) -> Option<NonNull<u8>> {
    let heap = owner(block.as_ptr()).filter(|_| size <= LARGEST)?;
    // SAFETY: the caller's promise.
    unsafe { heap.resize(block, size) }.unwrap_or_else(|_| corrupt(block.as_ptr()))
}

/// Takes a block of the pool back; ends the process if none begins there, or it was given back before.
///
/// # Safety
/// Nobody uses the block any more.
pub(super) unsafe fn give_back(block: *mut u8) {
    let (Some(heap), Some(start)) = (owner(block), NonNull::new(block)) else { corrupt(block) };
    // SAFETY: the caller's promise.
    if unsafe { heap.give_back(start) }.is_err() {
        corrupt(block);
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

/// Counters of the pool, by name.
pub(super) fn figures() -> Option<Vec<(&'static str, u64)>> {
    let heap = made()?;
    let pool = heap.pool().stats().ok()?;
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Some(vec![
        ("served", get(&SERVED)),
        ("full", get(&FULL)),
        ("too_large", get(&TOO_LARGE)),
        ("other", get(&OTHER)),
        ("found_zeroed", pool.zero_hits),
        ("not_zeroed", pool.zero_misses),
        ("zeroed_in_background_bytes", pool.scrubbed),
        ("zeroed_in_background_ns", u64::try_from(pool.scrub_cpu.as_nanos()).unwrap_or(u64::MAX)),
        ("zeroed_at_hand_out_bytes", pool.hot_zeroed),
        ("faulted_at_hand_out_bytes", pool.populated),
        ("given_back_bytes", pool.trimmed),
        ("in_use_bytes", heap.in_use()),
        ("most_in_use_bytes", heap.most_in_use()),
        ("resident_bytes", pool.resident),
        ("capacity_bytes", pool.capacity),
        ("load_rests", pool.load_rests),
        ("has_thread", u64::from(pool.scrubber != ScrubberState::Off)),
    ])
}
