//! A pool for interfaces like `malloc`'s, whose `free` is given a block's address but not its size.
//!
//! ```
//! use cachewise_pages::GiveBack;
//! use cachewise_pages::heap::Heap;
//!
//! let heap = Heap::new(64 << 20, GiveBack::default())?;
//! // A heap never waits: while another thread is in it, use another allocator.
//! if let Ok(block) = heap.take(200_000, true) {
//!     assert!(heap.bytes(block.as_ptr()).is_ok_and(|bytes| bytes >= 200_000));
//!     // SAFETY: the block is no longer used.
//!     unsafe { heap.give_back(block) }.expect("a block of this heap");
//! }
//! # Ok::<(), cachewise_pages::PoolError>(())
//! ```

use crate::config::GiveBack;
use crate::error::PoolError;
use crate::os::{self, Mapping};
use crate::pool::Pool;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A pool that knows how long each of its blocks is.
#[derive(Debug)]
pub struct Heap {
    pool: Pool,
    /// Pages of the block that begins at each page, as `AtomicU32`; 0 where none does.
    lengths: Mapping,
    in_use: AtomicU64,
    most_in_use: AtomicU64,
}

/// No block in use begins at that address: it was freed before, or never allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoBlock;

impl core::fmt::Display for NoBlock {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no block in use begins there")
    }
}

impl core::error::Error for NoBlock {}

impl Heap {
    /// A heap of at most `capacity` bytes; idle memory is returned to the system.
    ///
    /// It has no per-thread caches: they would need thread-local storage with a destructor, which an
    /// allocator must not have, and blocks this large gain little from them.
    ///
    /// # Errors
    /// As [`Builder::build`](crate::Builder::build).
    pub fn new(capacity: usize, give_back: GiveBack) -> Result<Heap, PoolError> {
        let pool = Pool::builder()
            .capacity(capacity)
            .for_allocator()
            .give_back(GiveBack { floor: (capacity / 16).min(give_back.floor), ..give_back })
            // The pool keeps to a sixteenth of what is in use; this is the bound on what may lie idle of what the
            // user granted, the same part on every machine. Where a program rises faster, it makes
            // the rest resident itself.
            .grow_ahead(capacity / 32)
            .build()?;
        // Zeroed by the system page by page as it is used: a heap of a GiB has a MiB of lengths.
        let bytes = pool.capacity() / pool.page_size() * size_of::<AtomicU32>();
        let lengths = Mapping::private(bytes, os::page_size())
            .map_err(PoolError::system("mapping the lengths"))?;
        lengths.leave_out_of_dumps();
        Ok(Heap { pool, lengths, in_use: AtomicU64::new(0), most_in_use: AtomicU64::new(0) })
    }

    /// The pool below, for its statistics. Blocks allocated from it directly are not this heap's.
    #[must_use]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Bytes of the allocated blocks.
    #[must_use]
    pub fn in_use(&self) -> u64 {
        self.in_use.load(Ordering::Relaxed)
    }

    /// The most bytes that were ever allocated at once.
    #[must_use]
    pub fn most_in_use(&self) -> u64 {
        self.most_in_use.load(Ordering::Relaxed)
    }

    /// Checks whether an address is of this heap.
    #[inline]
    #[must_use]
    pub fn contains(&self, block: *const u8) -> bool {
        self.pool.contains(block)
    }

    /// A block of at least `size` bytes, all zero if `zeroed`.
    ///
    /// # Errors
    /// As [`Pool::alloc_run_raw`]. Since a heap never waits, it returns [`Busy`](PoolError::Busy) while
    /// another thread is in it (also its own thread), and [`Exhausted`](PoolError::Exhausted) also while
    /// the free memory is being zeroed or made resident.
    pub fn take(&self, size: usize, zeroed: bool) -> Result<NonNull<u8>, PoolError> {
        let frames = self.pool.frames_for(size)?;
        let block =
            if zeroed { self.pool.zalloc_run_raw(frames) } else { self.pool.alloc_run_raw(frames) };
        block.inspect(|block| self.taken(*block, frames))
    }

    fn taken(&self, block: NonNull<u8>, frames: u32) {
        if let Some(length) = self.length(block.as_ptr()) {
            length.store(frames, Ordering::Release);
        }
        let bytes = self.of_pages(frames);
        let in_use = self.in_use.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if in_use > self.most_in_use.load(Ordering::Relaxed) {
            self.most_in_use.fetch_max(in_use, Ordering::Relaxed);
        }
    }

    /// Bytes of the block that begins there.
    ///
    /// # Errors
    /// [`NoBlock`].
    pub fn bytes(&self, block: *const u8) -> Result<usize, NoBlock> {
        match self.length(block).map_or(0, |length| length.load(Ordering::Acquire)) {
            0 => Err(NoBlock),
            frames => Ok(frames as usize * self.pool.page_size()),
        }
    }

    /// Makes a block hold at least `size` bytes: where it is, or else by moving its contents. What is new may
    /// hold anything. `None`, and nothing is changed, where there is no room for it, or not now.
    ///
    /// # Errors
    /// [`NoBlock`], with nothing changed.
    ///
    /// # Safety
    /// As for [`give_back`](Heap::give_back), of what is cut off and of the block if it moves.
    pub unsafe fn resize(
        &self,
        block: NonNull<u8>,
        size: usize,
    ) -> Result<Option<NonNull<u8>>, NoBlock> {
        let held = self.bytes(block.as_ptr())?;
        let frames = (held / self.pool.page_size()) as u32;
        let Ok(wanted) = self.pool.frames_for(size) else { return Ok(None) };
        // SAFETY: the caller's promise.
        match unsafe { self.pool.resize_or_move_raw(block, (frames, wanted), true) } {
            Ok(true) => {
                self.in_use.fetch_sub(held as u64, Ordering::Relaxed);
                self.taken(block, wanted);
                return Ok(Some(block));
            }
            Ok(false) if wanted > frames => {}
            _ => return Ok(None),
        }
        let Ok(new) = self.pool.roomy_run_raw(wanted) else { return Ok(None) };
        self.taken(new, wanted);
        // SAFETY: both are that long, and a new block overlaps no other.
        unsafe { cachewise::raw::copy_nonoverlapping(new.as_ptr(), block.as_ptr(), held) };
        // SAFETY: the caller's promise.
        unsafe { self.give_back(block) }?;
        Ok(Some(new))
    }

    /// Takes a block back.
    ///
    /// # Errors
    /// [`NoBlock`], with nothing changed.
    ///
    /// # Safety
    /// The block is no longer used.
    pub unsafe fn give_back(&self, block: NonNull<u8>) -> Result<(), NoBlock> {
        let length = self.length(block.as_ptr());
        let frames = length.map_or(0, |length| length.swap(0, Ordering::AcqRel));
        if frames == 0 {
            return Err(NoBlock);
        }
        // SAFETY: the caller's promise; that a block of so many pages begins there is checked.
        match unsafe { self.pool.free_run_raw(block, frames) } {
            Ok(()) => {
                self.in_use.fetch_sub(self.of_pages(frames), Ordering::Relaxed);
                Ok(())
            }
            // In a signal handler that interrupted the pool, which must not call `free`: the block is
            // lost, and nothing else.
            Err(PoolError::Reentered) => Ok(()),
            Err(_) => Err(NoBlock),
        }
    }

    fn of_pages(&self, frames: u32) -> u64 {
        u64::from(frames) * self.pool.page_size() as u64
    }

    fn length(&self, block: *const u8) -> Option<&AtomicU32> {
        let offset = block.addr().wrapping_sub(self.pool.base().addr());
        let page = self.pool.page_size();
        let begins = offset.is_multiple_of(page) && offset < self.pool.capacity();
        let length = self.lengths.start().cast::<AtomicU32>().wrapping_add(offset / page);
        // SAFETY: mapped for all pages of the pool, zero at first, and used by atomics alone.
        begins.then(|| unsafe { &*length })
    }
}

// Miri has no memory files, of which pools are made.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// The first answer that is not `Busy`, which a heap gives while its own thread is in it.
    fn patient<T>(take: impl Fn() -> Result<T, PoolError>) -> Result<T, PoolError> {
        until(|| Some(take()).filter(|taken| !matches!(taken, Err(PoolError::Busy))))
    }

    fn until<T>(answer: impl Fn() -> Option<T>) -> T {
        let begun = std::time::Instant::now();
        loop {
            if let Some(answer) = answer() {
                return answer;
            }
            assert!(begun.elapsed().as_secs() < 60, "a minute is not enough");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_block_has_its_length_until_it_is_given_back() {
        let heap = Heap::new(8 << 20, GiveBack::default()).expect("memory");
        let page = heap.pool().page_size();
        let sizes = [1, page, page + 1, 3 * page];
        let blocks = sizes.map(|size| (size, patient(|| heap.take(size, true)).expect("room")));
        for (size, block) in &blocks {
            assert_eq!(heap.bytes(block.as_ptr()), Ok(size.next_multiple_of(page)));
            assert!(heap.contains(block.as_ptr()));
        }
        assert_eq!(heap.in_use(), 7 * page as u64);
        let (_, inside) = blocks[3];
        for off in [1, page] {
            let wrong = inside.as_ptr().wrapping_add(off);
            assert_eq!(heap.bytes(wrong), Err(NoBlock));
            let wrong = NonNull::new(wrong).expect("an address");
            // SAFETY: refused, since no block begins there.
            assert_eq!(unsafe { heap.give_back(wrong) }, Err(NoBlock));
        }
        for (_, block) in blocks {
            // SAFETY: nobody uses it.
            assert_eq!(unsafe { heap.give_back(block) }, Ok(()));
            // SAFETY: refused, since it was given back.
            assert_eq!(unsafe { heap.give_back(block) }, Err(NoBlock));
        }
        assert_eq!((heap.in_use(), heap.most_in_use()), (0, 7 * page as u64));
        let outside = heap.pool().base().wrapping_add(heap.pool().capacity());
        assert_eq!(heap.bytes(outside), Err(NoBlock));
        assert_eq!(heap.bytes(heap.pool().base().wrapping_sub(page)), Err(NoBlock));
    }

    #[test]
    fn the_lengths_are_in_no_core_dump() {
        let heap = Heap::new(64 << 20, GiveBack::default()).expect("memory");
        let at = std::ptr::from_ref(heap.length(heap.pool().base()).expect("the first page's"));
        let mappings = crate::smaps::mappings();
        let own = mappings.iter().find(|mapped| mapped.range.contains(&at.addr()));
        assert!(own.is_some_and(|mapped| mapped.has_flag("dd")), "{own:?}");
    }

    #[test]
    fn an_aligned_block_is_one_or_none() {
        let heap = Heap::new(8 << 20, GiveBack::default()).expect("memory");
        let page = heap.pool().page_size();
        // Blocks taken in between leave the next one at any page.
        for align in [1, 64, page, 4 * page, 64 * page] {
            let between = patient(|| heap.take(3 * page, false)).expect("room");
            let small = "a small power of two";
            let block = patient(|| heap.pool().aligned_run_raw(5, align, true).expect(small));
            let block = block.expect("room");
            assert!(block.addr().get().is_multiple_of(align.max(page)), "{align}");
            // SAFETY: nobody uses it.
            assert_eq!(unsafe { heap.give_back(between) }, Ok(()));
        }
        for none in [0, 3, 1 << 40] {
            assert!(heap.pool().aligned_run_raw(1, none, false).is_none(), "{none}");
        }
    }

    #[test]
    fn a_full_heap_says_so() {
        let heap = Heap::new(4 << 20, GiveBack::default()).expect("memory");
        let taken = patient(|| heap.take(3 << 20, false)).expect("room");
        assert!(matches!(patient(|| heap.take(2 << 20, false)), Err(PoolError::Exhausted { .. })));
        assert!(matches!(patient(|| heap.take(1 << 40, false)), Err(PoolError::Exhausted { .. })));
        // SAFETY: nobody uses it.
        assert_eq!(unsafe { heap.give_back(taken) }, Ok(()));
        // At once, or when what is being zeroed or made resident at this moment is back.
        until(|| heap.take(3 << 20, false).ok());
    }
}
