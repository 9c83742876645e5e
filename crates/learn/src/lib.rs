//! Which way the copies of one call site should go, learned from the program that calls.
//!
//! Whether a copied buffer is used again soon is a property of the *call site*, not of its size
//! (seed 001.8). The **interval**, the time from one call of a site to the next on the same thread,
//! holds the copy, its reader and its bystander: the whole cost. So successive calls are done one
//! **way** or the other, by temporal or non-temporal stores, and the intervals decide.
//!
//! - [`evidence`]: what pairs of blocks say, as a test that may be looked at after every pair.
//! - [`trial`]: one site's trial: blocks in random order, of the length that tells most, what is counted,
//!   what it may cost, when it is decided, when it is opened again.
//! - [`sites`]: the table of all sites, for many threads and without locks.
//! - [`gate`]: who may be at a site's state, and who takes over after a fork.
//! - [`section`]: what is known of one program, as text.
//!
//! Nothing here allocates, asks an operating system or reads a clock: whoever uses it brings memory,
//! time and randomness, and so does the simulator that tests it (`tests/simulator`).
#![no_std]
#![warn(missing_docs)]

#[cfg(not(loom_gate))]
pub mod evidence;
pub mod gate;
#[cfg(not(loom_gate))]
mod operation;
#[cfg(not(loom_gate))]
pub mod section;
#[cfg(not(loom_gate))]
pub mod sites;
#[cfg(not(loom_gate))]
pub mod trial;

/// A way to do a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Way {
    /// Temporal stores: through the cache.
    Temporal = 0,
    /// Non-temporal stores.
    NonTemporal = 1,
}

impl Way {
    /// Both.
    pub const ALL: [Way; 2] = [Way::Temporal, Way::NonTemporal];

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Way {
        match self {
            Way::Temporal => Way::NonTemporal,
            Way::NonTemporal => Way::Temporal,
        }
    }

    /// `temporal` or `nt`, as kernels' stores are called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Way::Temporal => "temporal",
            Way::NonTemporal => "nt",
        }
    }

    /// The way of that [name](Way::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Way> {
        Way::ALL.into_iter().find(|way| way.name() == name)
    }
}
