//! Parts of a pool that are address space alone. Memory is opened and closed in units, so few that the system's
//! limit on mappings is not in the way.

use std::sync::atomic::{AtomicU64, Ordering};

/// Words of a bit for each unit.
const WORDS: usize = 64;

/// The units that are closed. A bit is set under the lock, where all of its unit is free and absent; it is cleared
/// under the lock, or by whoever has taken part of the unit: until that is free again nobody sets it.
#[derive(Debug)]
pub(crate) struct Closed {
    /// Frames of a unit, as a power of two.
    order: u32,
    bits: [AtomicU64; WORDS],
}

impl Closed {
    /// For so many frames, in units of a huge page or larger: all, or none where nothing ever closes.
    pub(crate) fn new(capacity: u32, huge: u32, closes: bool) -> Closed {
        let least = capacity.div_ceil(WORDS as u32 * u64::BITS).next_power_of_two();
        let all = if closes { u64::MAX } else { 0 };
        Closed { order: least.ilog2().max(huge), bits: [(); WORDS].map(|()| AtomicU64::new(all)) }
    }

    pub(crate) fn order(&self) -> u32 {
        self.order
    }

    fn bit(&self, unit: u32) -> (&AtomicU64, u64) {
        (&self.bits[(unit / u64::BITS) as usize], 1 << (unit % u64::BITS))
    }

    fn has(&self, unit: u32) -> bool {
        let (word, bit) = self.bit(unit);
        word.load(Ordering::Acquire) & bit != 0
    }

    pub(crate) fn set(&self, units: std::ops::Range<u32>, closed: bool) {
        for (word, bit) in units.map(|unit| self.bit(unit)) {
            match closed {
                true => word.fetch_or(bit, Ordering::Release),
                false => word.fetch_and(!bit, Ordering::Release),
            };
        }
    }

    /// The units among those that are closed, or are not, in as few pieces as there are.
    pub(crate) fn pieces(
        &self,
        units: std::ops::Range<u32>,
        closed: bool,
    ) -> impl Iterator<Item = std::ops::Range<u32>> {
        let mut at = units.start;
        std::iter::from_fn(move || {
            let first = (at..units.end).find(|unit| self.has(*unit) == closed)?;
            let end = (first..units.end).find(|unit| self.has(*unit) != closed);
            at = end.unwrap_or(units.end);
            Some(first..at)
        })
    }
}
