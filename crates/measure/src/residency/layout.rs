//! Where slots lie in an arena, and how many a level takes.

use super::Level;
use crate::{Caches, LINE, MeasureError};

/// How slots lie in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) slots: usize,
    pub(super) stride: usize,
    /// Bytes from a unit's begin to the slot.
    pub(super) lead: usize,
    /// Lines that a slot has a part in.
    pub(super) lines: usize,
}

pub(super) const PAGE: usize = 4096;

impl Layout {
    pub(super) fn new(
        level: Level,
        size: usize,
        offset: usize,
        share: f64,
        caches: &Caches,
    ) -> Result<Layout, MeasureError> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(MeasureError::BadRequest {
                what: "share of a cache level",
                found: share.to_string(),
                accepted: "above 0, at most 1".to_owned(),
            });
        }
        let capacity = (level.capacity(caches) as f64 * share) as usize;
        let does_not_fit = MeasureError::DoesNotFit { level, size, capacity };
        // Whole pages fix the operands' distance modulo 4 KiB. Small slots lie line by line: one
        // line a page would leave so few of them that nearer caches could hold them all.
        let unit = if size >= PAGE { PAGE } else { LINE };
        let Some(one) = Layout::one(size, offset, unit) else {
            return Err(does_not_fit);
        };
        let Layout { stride, lines, .. } = one;
        let slots = if level == Level::Dram {
            // Two at least: in a single one the end of a pass would still be cached when an
            // operation that runs backward begins the next.
            capacity.div_ceil(lines * LINE).max(2)
        } else {
            capacity / stride
        };
        if slots == 0 || slots.checked_mul(stride).is_none() {
            return Err(does_not_fit);
        }
        Ok(Layout { slots, ..one })
    }

    /// A single slot in units of `unit` bytes; `None` when that overflows.
    pub(super) fn one(size: usize, offset: usize, unit: usize) -> Option<Layout> {
        let size = size.max(1);
        let lead = offset % unit;
        let stride = size.checked_add(lead)?.checked_next_multiple_of(unit)?;
        let lines = (lead % LINE).checked_add(size)?.div_ceil(LINE);
        Some(Layout { slots: 1, stride, lead, lines })
    }
}
