//! Pages that are resident and already zero, so that the hot path neither faults nor zeroes.
//!
//! - [`buddy`]: which frames are free, and which of those are zero. No operating system, no unsafe
//!   code; all that is left without the `std` feature.
//! - `Pool`: blocks of 2^order pages, dirty or zeroed, with per-thread caches, a scrubber that
//!   zeroes idle blocks in the background, and return of idle memory to the system. `zalloc` gives a
//!   `Block<Zeroed>`, which is read-only; `into_dirty` makes it a writable `Block<Dirty>`, and safe
//!   code can free only dirty blocks. So a zeroed block is zero by type, not by a flag.
//! - `engine`: how pages are zeroed. By the CPU with non-temporal or with temporal stores, by the
//!   operating system, or by your own engine, whose work is then checked.
//! - `allocator` (feature `allocator-api2`): a pool as an `Allocator`.
//!
//! ```
//! # #[cfg(all(feature = "std", target_os = "linux"))] {
//! use cachewise_pages::Pool;
//!
//! let pool = Pool::builder().capacity(16 << 20).build()?;
//! let block = pool.zalloc(2)?; // four pages, every byte zero
//! assert!(block.iter().all(|byte| *byte == 0));
//! let mut block = block.into_dirty();
//! block[0] = 1; // dirty from here on, by type
//! drop(block);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Costs of a pool, and cases in which it gains nothing: `docs/page-pool.md`.
#![no_std]
#![warn(missing_docs)]

#[cfg(feature = "std")]
extern crate std;

#[forbid(unsafe_code)]
pub mod buddy;

#[cfg(loom)]
#[doc(hidden)]
pub mod waiting;

/// The part that needs an operating system. Its files lie beside this one.
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
#[path = "."]
mod system {
    pub(crate) mod config;
    pub mod engine;
    pub(crate) mod error;
    pub(crate) mod inner;
    pub mod lease;
    pub(crate) mod os;
    pub(crate) mod pace;
    pub(crate) mod pool;
    pub(crate) mod scrubber;
    #[doc(hidden)]
    pub mod smaps;
    pub(crate) mod stats;
    pub(crate) mod thread;
    pub(crate) mod waiting;

    pub use config::{Builder, EngineChoice, PageSize, Scrub, Verify};
    pub use error::{Note, PoolError};
    #[cfg(feature = "testing")]
    pub use os::inject;
    #[doc(hidden)]
    pub use os::{cpus, huge_page_size, hugetlb_size, thread_cpu_time};
    pub use pace::{FLOOR, Pace, Rest};
    pub use pool::Pool;
    #[cfg(feature = "allocator-api2")]
    pub use pool::allocator;
    pub use pool::block::{Block, Contents, Dirty, Zeroed};
    pub use stats::{OrderStats, ScrubberState, Stats};
}
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub use system::*;
