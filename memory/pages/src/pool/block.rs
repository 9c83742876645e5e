//! Blocks: memory allocated from a pool, whose type says whether it is known to be zero.

use crate::error::PoolError;
use crate::pool::Pool;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

mod sealed {
    pub trait Sealed {}
}

/// The knowledge of a block's contents, as a type: [`Zeroed`] or [`Dirty`].
pub trait Contents: sealed::Sealed {}

/// Every byte is zero; the block is read-only.
#[derive(Debug)]
pub enum Zeroed {}

/// Contents of any kind: what the last user left.
#[derive(Debug)]
pub enum Dirty {}

impl sealed::Sealed for Zeroed {}
impl sealed::Sealed for Dirty {}
impl Contents for Zeroed {}
impl Contents for Dirty {}

/// A run of whole pages allocated from a pool, freed as dirty when dropped.
///
/// A `Block<Zeroed>` can be read. To write it, make it dirty:
///
/// ```compile_fail
/// let pool = cachewise_pages::Pool::builder().capacity(1 << 20).build().unwrap();
/// let mut block = pool.zalloc(0).unwrap();
/// block[0] = 1; // a zeroed block cannot be written
/// ```
#[derive(Debug)]
pub struct Block<'pool, C: Contents> {
    pool: &'pool Pool,
    start: NonNull<u8>,
    frames: u32,
    contents: PhantomData<C>,
}

// SAFETY: a block is memory that this value alone refers to, and any thread may give it back.
unsafe impl<C: Contents> Send for Block<'_, C> {}
// SAFETY: a shared reference to it can only read.
unsafe impl<C: Contents> Sync for Block<'_, C> {}

impl<'pool, C: Contents> Block<'pool, C> {
    pub(crate) fn new(pool: &'pool Pool, start: NonNull<u8>, frames: u32) -> Block<'pool, C> {
        Block { pool, start, frames, contents: PhantomData }
    }

    /// Its first byte.
    #[must_use]
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Frees the block now, and returns an error if the pool refuses it.
    ///
    /// # Errors
    /// [`PoolError::Free`] if the bookkeeping was overwritten.
    pub fn give_back(self) -> Result<(), PoolError> {
        let (pool, start, frames) = self.into_parts();
        // SAFETY: the block was this value's alone, and the value is gone.
        unsafe { pool.free_run_raw(start, frames) }
    }

    /// The block as address and pages, for [`Pool::free_run_raw`]; it is no longer freed on drop.
    #[must_use]
    pub fn into_raw(self) -> (NonNull<u8>, u32) {
        let (_, start, frames) = self.into_parts();
        (start, frames)
    }

    fn into_parts(self) -> (&'pool Pool, NonNull<u8>, u32) {
        let parts = (self.pool, self.start, self.frames);
        std::mem::forget(self);
        parts
    }
}

impl<'pool> Block<'pool, Zeroed> {
    /// Makes the block writable; it is then no longer known to be zero.
    #[must_use]
    pub fn into_dirty(self) -> Block<'pool, Dirty> {
        let (pool, start, frames) = self.into_parts();
        Block::new(pool, start, frames)
    }
}

impl Block<'_, Dirty> {
    /// Its first byte, to write.
    #[must_use]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Frees the block as zero, which saves zeroing it again.
    ///
    /// # Safety
    /// Every byte of the block is zero.
    ///
    /// # Errors
    /// Errors of [`give_back`](Block::give_back).
    pub unsafe fn give_back_zeroed(self) -> Result<(), PoolError> {
        let (pool, start, frames) = self.into_parts();
        // SAFETY: the block was this value's alone, and zero by the caller's promise.
        unsafe { pool.free_zeroed_run_raw(start, frames) }
    }
}

impl<C: Contents> Deref for Block<'_, C> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let length = (self.frames as usize) * self.pool.page_size();
        // SAFETY: mapped while the pool lives, initialised (by the system if by nobody else), and
        // this value's alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), length) }
    }
}

impl DerefMut for Block<'_, Dirty> {
    fn deref_mut(&mut self) -> &mut [u8] {
        let length = (self.frames as usize) * self.pool.page_size();
        // SAFETY: as in `deref`, and borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), length) }
    }
}

impl<C: Contents> Drop for Block<'_, C> {
    fn drop(&mut self) {
        // Refused where the pool is closed: then there is nothing to give back.
        // SAFETY: the block was this value's alone, and the value is going.
        let _ = unsafe { self.pool.free_run_raw(self.start, self.frames) };
    }
}

impl Pool {
    /// A block of 2^order pages with any contents.
    ///
    /// # Errors
    /// [`PoolError::Exhausted`], [`PoolError::NoMemory`], [`PoolError::Order`], [`PoolError::TooLarge`],
    /// [`PoolError::Closed`], [`PoolError::Forked`], [`PoolError::Reentered`].
    pub fn alloc(&self, order: u32) -> Result<Block<'_, Dirty>, PoolError> {
        let start = self.alloc_raw(order)?;
        Ok(Block::new(self, start, 1 << order))
    }

    /// A block of 2^order pages, every byte zero.
    ///
    /// # Errors
    /// Errors of [`alloc`](Pool::alloc), and [`PoolError::NotZero`] if verification found a byte that is
    /// not zero.
    pub fn zalloc(&self, order: u32) -> Result<Block<'_, Zeroed>, PoolError> {
        let start = self.zalloc_raw(order)?;
        Ok(Block::new(self, start, 1 << order))
    }

    /// A run of whole pages of at least that many bytes, with any contents, as large as the pool at most. It takes exactly
    /// these pages: the front of a block of the next power of two, or where there is none adjacent free blocks.
    ///
    /// # Errors
    /// Errors of [`alloc`](Pool::alloc).
    pub fn alloc_bytes(&self, bytes: usize) -> Result<Block<'_, Dirty>, PoolError> {
        let frames = self.frames_for(bytes)?;
        let start = self.alloc_run_raw(frames)?;
        Ok(Block::new(self, start, frames))
    }

    /// Block of [`alloc_bytes`](Pool::alloc_bytes), every byte zero.
    ///
    /// # Errors
    /// Errors of [`zalloc`](Pool::zalloc).
    pub fn zalloc_bytes(&self, bytes: usize) -> Result<Block<'_, Zeroed>, PoolError> {
        let frames = self.frames_for(bytes)?;
        let start = self.zalloc_run_raw(frames)?;
        Ok(Block::new(self, start, frames))
    }

    /// [`zalloc`](Pool::zalloc) for a caller that will write or read the whole block at once. It
    /// zeroes a block that this thread freed recently, which is still in the CPU's cache; a prezeroed
    /// block is not, and would be fetched from memory. Without such a block it is the same as
    /// `zalloc`.
    ///
    /// # Errors
    /// Errors of [`zalloc`](Pool::zalloc).
    pub fn zalloc_to_fill(&self, order: u32) -> Result<Block<'_, Zeroed>, PoolError> {
        let start = self.zalloc_to_fill_raw(order)?;
        Ok(Block::new(self, start, 1 << order))
    }
}
