//! The one pool, and the length of each of its blocks: a caller's word for it is not needed, and a block
//! that is freed twice is noticed.

use cachewise_pages::global::{LARGEST, SMALLEST};
use cachewise_pages::{GiveBack, Pool, PoolError, ScrubberState};
use std::ptr::{self, NonNull};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

static POOL: AtomicPtr<Served> = AtomicPtr::new(ptr::null_mut());
/// Held while the pool is made.
static MAKING: Mutex<()> = Mutex::new(());

/// Bytes of the smallest block that is served.
static LEAST: AtomicUsize = AtomicUsize::new(SMALLEST);

static SERVED: AtomicU64 = AtomicU64::new(0);
static TOO_LARGE: AtomicU64 = AtomicU64::new(0);
static FULL: AtomicU64 = AtomicU64::new(0);
static OTHER: AtomicU64 = AtomicU64::new(0);
static IN_USE: AtomicU64 = AtomicU64::new(0);
static MOST_IN_USE: AtomicU64 = AtomicU64::new(0);

/// Bytes made resident at most before they are asked for; as under preload.
const AHEAD: usize = 32 << 20;

struct Served {
    pool: Pool,
    /// Pages of the block that begins at each page; 0 where none does.
    lengths: Box<[AtomicU32]>,
}

/// Why there is no pool of that size.
pub(super) enum Problem {
    OtherSize(usize),
    Refused(PoolError),
}

/// Makes the pool, unless there is one of that size.
pub(super) fn make(bytes: usize) -> Result<(), Problem> {
    let _making = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(there) = made() {
        let page = there.pool.page_size();
        let same = bytes.checked_next_multiple_of(page) == Some(there.pool.capacity());
        return if same { Ok(()) } else { Err(Problem::OtherSize(there.pool.capacity())) };
    }
    let floor = (bytes / 16).min(GiveBack::default().floor);
    // No caches of threads: blocks this large gain little from one.
    let pool = Pool::builder()
        .capacity(bytes)
        .cache_blocks(0)
        .stands_in()
        .give_back(GiveBack { floor, ..GiveBack::default() })
        .grow_ahead(AHEAD.min(bytes / 4))
        .build()
        .map_err(Problem::Refused)?;
    let pages = pool.capacity() / pool.page_size();
    let lengths = (0..pages).map(|_| AtomicU32::new(0)).collect();
    POOL.store(Box::into_raw(Box::new(Served { pool, lengths })), Ordering::Release);
    Ok(())
}

/// Serves blocks of so many bytes and more; by default as the preload library does.
pub(super) fn serve_from(bytes: Option<usize>) {
    LEAST.store(bytes.unwrap_or(SMALLEST), Ordering::Relaxed);
}

fn made() -> Option<&'static Served> {
    // SAFETY: null, or a pool that is never taken down.
    unsafe { POOL.load(Ordering::Acquire).as_ref() }
}

/// Whether there is a pool.
pub(super) fn is_made() -> bool {
    made().is_some()
}

/// A block of at least that many bytes; none if it is not the pool's to serve, or not now.
pub(super) fn take(size: usize, zeroed: bool) -> Option<NonNull<u8>> {
    if size < LEAST.load(Ordering::Relaxed) {
        return None;
    }
    let served = made()?;
    if size > LARGEST {
        TOO_LARGE.fetch_add(1, Ordering::Relaxed);
        return None;
    }
    match served.take(size, zeroed) {
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

fn owner(block: *const u8) -> Option<&'static Served> {
    made().filter(|served| served.pool.contains(block))
}

/// Whether a block is the pool's.
pub(super) fn owns(block: *const u8) -> bool {
    owner(block).is_some()
}

/// Bytes of a block of the pool; none where it is not the pool's.
pub(super) fn bytes(block: *const u8) -> Option<usize> {
    let served = owner(block)?;
    let frames = served.length(block).map_or(0, |length| length.load(Ordering::Acquire));
    if frames == 0 {
        corrupt(block);
    }
    Some(frames as usize * served.pool.page_size())
}

/// Takes a block of the pool back; ends the process if none begins there, or it was given back before.
///
/// # Safety
/// Nobody uses the block any more.
pub(super) unsafe fn give_back(block: *mut u8) {
    let (Some(served), Some(start)) = (owner(block), NonNull::new(block)) else { corrupt(block) };
    let frames = served.length(block).map_or(0, |length| length.swap(0, Ordering::AcqRel));
    if frames == 0 {
        corrupt(block);
    }
    // SAFETY: the caller's promise; that the block is one is checked.
    match unsafe { served.pool.free_run_raw(start, frames) } {
        Ok(()) => {}
        // A signal handler that interrupted the pool: the block is lost, and nothing else.
        Err(PoolError::Reentered) => return,
        Err(_) => corrupt(block),
    }
    IN_USE.fetch_sub(u64::from(frames) * served.pool.page_size() as u64, Ordering::Relaxed);
}

impl Served {
    fn take(&self, size: usize, zeroed: bool) -> Result<NonNull<u8>, PoolError> {
        let frames = self.pool.frames_for(size)?;
        let block = if zeroed {
            self.pool.zalloc_run_raw(frames)
        } else {
            self.pool.alloc_run_raw(frames)
        }?;
        if let Some(length) = self.length(block.as_ptr()) {
            length.store(frames, Ordering::Release);
        }
        let bytes = u64::from(frames) * self.pool.page_size() as u64;
        let in_use = IN_USE.fetch_add(bytes, Ordering::Relaxed) + bytes;
        MOST_IN_USE.fetch_max(in_use, Ordering::Relaxed);
        Ok(block)
    }

    fn length(&self, block: *const u8) -> Option<&AtomicU32> {
        let offset = block.addr().wrapping_sub(self.pool.base().addr());
        let page = self.pool.page_size();
        offset.is_multiple_of(page).then(|| self.lengths.get(offset / page)).flatten()
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

/// What the pool did, by name.
pub(super) fn figures() -> Option<Vec<(&'static str, u64)>> {
    let pool = made()?.pool.stats().ok()?;
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
        ("in_use_bytes", get(&IN_USE)),
        ("most_in_use_bytes", get(&MOST_IN_USE)),
        ("resident_bytes", pool.resident),
        ("capacity_bytes", pool.capacity),
        ("load_rests", pool.load_rests),
        ("has_thread", u64::from(pool.scrubber != ScrubberState::Off)),
    ])
}
