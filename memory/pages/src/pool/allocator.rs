//! A pool as an `allocator_api2` allocator, for collections of their own.
//!
//! ```
//! use allocator_api2::vec::Vec;
//! use cachewise_pages::Pool;
//!
//! let pool = Pool::builder().capacity(8 << 20).build()?;
//! let mut numbers = Vec::with_capacity_in(100_000, &pool);
//! numbers.extend(0..100_000u32);
//! assert_eq!(numbers[99_999], 99_999);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::pool::Pool;
use allocator_api2::alloc::{AllocError, Allocator, Layout};
use std::ptr::NonNull;

fn run(pool: &Pool, layout: Layout, zeroed: bool) -> Result<NonNull<[u8]>, AllocError> {
    if layout.size() == 0 {
        let nowhere = NonNull::without_provenance(
            std::num::NonZeroUsize::new(layout.align()).ok_or(AllocError)?,
        );
        return Ok(NonNull::slice_from_raw_parts(nowhere, 0));
    }
    let (page, base) = (pool.page_size(), 1 << pool.base().addr().trailing_zeros());
    if layout.align() > base {
        return Err(AllocError);
    }
    let frames = pool.frames_for(layout.size()).map_err(|_| AllocError)?;
    let alignment = u32::try_from(layout.align().div_ceil(page)).map_err(|_| AllocError)?;
    let start = pool.run(frames, alignment, zeroed).map_err(|_| AllocError)?;
    Ok(NonNull::slice_from_raw_parts(start, frames as usize * page))
}

// SAFETY: a run is one caller's alone until it is freed, stays mapped while any handle of the pool
// lives, and all handles are of one pool; the pages of a run are told from any size that fits it,
// since such sizes differ by less than a page.
unsafe impl Allocator for &Pool {
    fn allocate(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        run(self, layout, false)
    }

    fn allocate_zeroed(&self, layout: Layout) -> Result<NonNull<[u8]>, AllocError> {
        run(self, layout, true)
    }

    unsafe fn deallocate(&self, block: NonNull<u8>, layout: Layout) {
        if layout.size() == 0 {
            return;
        }
        if let Ok(frames) = self.frames_for(layout.size()) {
            // SAFETY: the caller's promise.
            let _ = unsafe { self.free_run_raw(block, frames) };
        }
    }
}
