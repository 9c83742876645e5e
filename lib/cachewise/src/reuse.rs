//! The caller's hint: what happens to the data after the operation.

use core::fmt;

/// When the destination will be used again, as far as the caller knows.
///
/// Size alone cannot decide between temporal stores, which leave the destination in the cache, and
/// non-temporal stores, which do not: the next access to the destination matters most, and only
/// the caller knows about that (seed 001.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[repr(u8)]
pub enum Reuse {
    /// Not known: a compromise between a later reader and other cached data.
    #[default]
    Unknown = 0,
    /// The destination is read soon: leave it in the cache.
    Soon = 1,
    /// The destination is not read again by this CPU: do not evict other data.
    Never = 2,
}

impl Reuse {
    /// Every hint, in declaration order.
    pub const ALL: [Reuse; 3] = [Reuse::Unknown, Reuse::Soon, Reuse::Never];

    /// The word used in profiles and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reuse::Unknown => "unknown",
            Reuse::Soon => "soon",
            Reuse::Never => "never",
        }
    }

    /// The hint of that [name](Reuse::name).
    #[must_use]
    pub fn from_name(name: &str) -> Option<Reuse> {
        Reuse::ALL.into_iter().find(|reuse| reuse.name() == name)
    }
}

impl fmt::Display for Reuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
