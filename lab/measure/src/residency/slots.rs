//! Positions of slots in an arena, and their number for a level.

use crate::level::Level;
use crate::{Caches, LINE, MeasureError};

pub(super) const PAGE: usize = 4096;

/// Layout of an operand's slots in an arena. `offset` is where one begins: modulo a page where slots are
/// a page or more or there is only one, modulo a line otherwise.
#[derive(Clone, Debug)]
pub struct Slots {
    pub(super) level: Level,
    pub(crate) caches: Caches,
    pub(super) size: usize,
    pub(super) count: usize,
    pub(super) stride: usize,
    /// Bytes from a unit's begin to the slot.
    pub(super) lead: usize,
    /// Lines that a slot has a part in.
    pub(super) lines: usize,
    pub(super) is_reused: bool,
}

impl Slots {
    /// Slots of `size` bytes for `level`. `share` is the part of the level that this operand may have,
    /// above 0 and at most 1: the shares of the operands of one operation at one level add up to 1.
    /// For [`Level::Dram`] any size fits.
    ///
    /// # Errors
    /// [`MeasureError::DoesNotFit`] when not one slot fits the share of the level, and
    /// [`MeasureError::BadRequest`] for a share out of range.
    pub fn placed(
        level: Level,
        size: usize,
        offset: usize,
        share: f64,
        caches: &Caches,
    ) -> Result<Slots, MeasureError> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(MeasureError::BadRequest {
                what: "share of a cache level",
                found: share.to_string(),
                accepted: "above 0, at most 1".to_owned(),
            });
        }
        let capacity = (level.capacity(caches) as f64 * share) as usize;
        let does_not_fit = |size| MeasureError::DoesNotFit { level, size, capacity };
        // Whole pages fix the operands' distance modulo 4 KiB. Small slots lie line by line: one
        // line a page would leave so few of them that nearer caches could hold them all.
        let unit = if size >= PAGE { PAGE } else { LINE };
        let one =
            Slots::one(level, size, offset, unit, caches).ok_or_else(|| does_not_fit(size))?;
        let count = if level == Level::Dram {
            // Two at least: in a single one the end of a pass would still be cached when an
            // operation that runs backward begins the next.
            capacity.div_ceil(one.lines * LINE).max(2)
        } else {
            capacity / one.stride
        };
        if count == 0 || count.checked_mul(one.stride).is_none() {
            return Err(does_not_fit(one.stride));
        }
        Ok(Slots { count, ..one })
    }

    /// One buffer of `size` bytes that every call uses and that stays wherever the previous call left
    /// it, unless it is to be [restored](super::Operand::restored); there is nothing to prove. Its level
    /// is the nearest that would hold two such buffers.
    ///
    /// # Errors
    /// [`MeasureError::DoesNotFit`] when it would not fit the address space.
    pub fn reused(size: usize, offset: usize, caches: &Caches) -> Result<Slots, MeasureError> {
        let holds = |level: &Level| size <= level.capacity(caches) / 2;
        let level = Level::ALL[..3].iter().copied().find(holds).unwrap_or(Level::Dram);
        let too_large = MeasureError::DoesNotFit { level, size, capacity: usize::MAX };
        let one = Slots::one(level, size, offset, PAGE, caches).ok_or(too_large)?;
        Ok(Slots { is_reused: true, ..one })
    }

    /// A single slot in units of `unit` bytes; `None` when that overflows.
    fn one(
        level: Level,
        size: usize,
        offset: usize,
        unit: usize,
        caches: &Caches,
    ) -> Option<Slots> {
        let (lead, caches) = (offset % unit, caches.clone());
        let stride = size.max(1).checked_add(lead)?.checked_next_multiple_of(unit)?;
        let lines = (lead % LINE).checked_add(size.max(1))?.div_ceil(LINE);
        Some(Slots { level, caches, size, count: 1, stride, lead, lines, is_reused: false })
    }

    /// Bytes of an arena that it takes, a whole number of pages.
    pub fn bytes(&self) -> usize {
        (self.count * self.stride).next_multiple_of(PAGE)
    }
}
