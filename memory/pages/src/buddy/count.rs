//! Frames by use.

use super::{State, Use};

/// Frames by use. `out` are those handed out or in a per-thread cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Counts {
    /// Free frames with unknown contents.
    pub dirty: u64,
    /// Free frames that are zero and there.
    pub zero_resident: u64,
    /// Free frames that are zero and will fault.
    pub zero_absent: u64,
    /// Frames being zeroed or returned to the system.
    pub in_flight: u64,
    /// Frames handed out or in a per-thread cache.
    pub out: u64,
    /// Frames in quarantine.
    pub quarantined: u64,
}

impl Counts {
    /// All of them: the number of frames managed, always.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.dirty
            + self.zero_resident
            + self.zero_absent
            + self.in_flight
            + self.out
            + self.quarantined
    }

    pub(super) fn of(&mut self, used: Use) -> &mut u64 {
        match used {
            Use::Free(State::Dirty) => &mut self.dirty,
            Use::Free(State::ZeroResident) => &mut self.zero_resident,
            Use::Free(State::ZeroAbsent) => &mut self.zero_absent,
            Use::InFlight => &mut self.in_flight,
            Use::Allocated | Use::CachedDirty | Use::CachedZero => &mut self.out,
            Use::Quarantined => &mut self.quarantined,
        }
    }
}
