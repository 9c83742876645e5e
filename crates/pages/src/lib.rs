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
//! - `global`: a `GlobalAlloc` that serves large requests from a pool. `allocator` (feature
//!   `allocator-api2`): a pool as an `Allocator`.
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
//! What a pool costs, and when it gains nothing: `docs/page-pool.md`.
#![no_std]
#![warn(missing_docs)]

#[cfg(feature = "std")]
extern crate std;

/// Where another thread's work can make a difference: in tests a seed decides who goes on (`schedule.rs`).
/// Not in optimised builds: the examples that measure have the same features as the tests.
macro_rules! point {
    () => {
        #[cfg(all(feature = "testing", debug_assertions, target_os = "linux", not(loom)))]
        crate::schedule::point();
    };
}

#[forbid(unsafe_code)]
pub mod buddy;

#[cfg(all(feature = "allocator-api2", target_os = "linux", not(loom)))]
pub mod allocator;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod block;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod cache;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod config;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub mod engine;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod error;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod fork;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub mod global;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub mod heap;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod inner;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub mod lease;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod os;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod pace;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod pool;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod proof;
#[cfg(all(feature = "testing", debug_assertions, target_os = "linux", not(loom)))]
pub mod schedule;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod scrubber;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod shards;
#[cfg(all(feature = "testing", target_os = "linux", not(loom)))]
pub mod soak;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod stats;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod thread;

#[cfg(loom)]
#[doc(hidden)]
pub mod waiting;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
mod waiting;

#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub use block::{Block, Contents, Dirty, Zeroed};
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub use config::{Builder, EngineChoice, GiveBack, PageSize, Scrub, Verify};
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub use error::{Note, PoolError};
#[cfg(all(feature = "testing", target_os = "linux", not(loom)))]
pub use os::inject;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
#[doc(hidden)]
pub use os::{cpus, huge_page_size, hugetlb_size, memory, thread_cpu_time};
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub use pace::{Pace, Rest};
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub use pool::Pool;
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub use shards::{MOST_SHARDS, Shards};
#[cfg(all(feature = "std", target_os = "linux", not(loom)))]
pub use stats::{FIGURES, OrderStats, ScrubberState, Stats, Unit};
