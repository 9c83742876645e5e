//! What was learned from a site's calls, as it is told.

use core::fmt;

/// Calls of fewer bytes are never decided by site: they fit into the caches.
#[cfg(all(feature = "os", target_os = "linux"))]
pub(super) const LARGE: usize = 64 << 10;

/// What was learned from a site's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum SiteOutcome {
    /// Too few calls yet: they follow the profile.
    TooFew = 0,
    /// Temporal stores are faster, and calls use them.
    Temporal = 1,
    /// Non-temporal stores are faster, and calls use them.
    NonTemporal = 2,
    /// No difference above the noise: as the profile says.
    NoDifference = 3,
    /// Long blocks of calls did not confirm short ones: as the profile says.
    Unconfirmed = 4,
    /// It was decided, but the program changed: both are tried again.
    Reopened = 5,
}

impl SiteOutcome {
    /// One word, as in a program's section.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            SiteOutcome::TooFew => "too-few-calls",
            SiteOutcome::Temporal => "temporal",
            SiteOutcome::NonTemporal => "nt",
            SiteOutcome::NoDifference => "no-difference",
            SiteOutcome::Unconfirmed => "unconfirmed",
            SiteOutcome::Reopened => "reopened",
        }
    }
}

impl fmt::Display for SiteOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The state of a site for one operation and one octave of sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct SiteState {
    /// The outcome so far.
    pub outcome: SiteOutcome,
    /// Calls so far, including the saved calls of earlier processes.
    pub calls: u64,
    /// Calls that used the other stores for a trial.
    pub tried: u64,
    /// Mean nanoseconds from call to call with temporal stores; 0 where nothing was tried.
    pub temporal_ns: f64,
    /// And around it.
    pub non_temporal_ns: f64,
}
