//! Classes of sizes, each of which is decided as one.
//!
//! Below 4096 bytes a class is 32 bytes wide, above that an eighth of an octave, so that no size is
//! further than 12.5 % from the edge of its class ([`size_class`]).

use core::hint::cold_path;
use core::ops::RangeInclusive;

/// Width of a class below [`LINEAR_END`], as a power of two.
const LINEAR_SHIFT: u32 = 5;
/// From here on a class is an eighth of an octave.
const LINEAR_END: u64 = 4096;
const LINEAR_CLASSES: usize = (LINEAR_END >> LINEAR_SHIFT) as usize;
pub(crate) const CLASSES: usize = LINEAR_CLASSES + 8 * (u64::BITS - LINEAR_END.ilog2()) as usize;

/// The class of a size: less than [`CLASSES`] and monotone.
#[inline(always)]
pub(crate) const fn class(n: u64) -> usize {
    if n < LINEAR_END {
        (n >> LINEAR_SHIFT) as usize
    } else {
        // Laid out of the way of the sizes that are called more often and last less long.
        cold_path();
        // n >> (octave - 3) is 8 to 15: eight classes per octave.
        let octave = 63 - n.leading_zeros();
        let eighth = (n >> (octave - 3)) as usize;
        LINEAR_CLASSES - 8 + 8 * (octave - LINEAR_END.ilog2()) as usize + eighth
    }
}

/// The smallest size of a class.
pub(crate) const fn class_start(class: usize) -> u64 {
    if class < LINEAR_CLASSES {
        (class as u64) << LINEAR_SHIFT
    } else {
        let above = class - LINEAR_CLASSES;
        let shift = LINEAR_END.ilog2() - 3 + (above / 8) as u32;
        (8 + above as u64 % 8) << shift
    }
}

/// The sizes of a class.
pub(crate) const fn class_sizes(class: usize) -> RangeInclusive<u64> {
    let end = if class + 1 < CLASSES { class_start(class + 1) - 1 } else { u64::MAX };
    class_start(class)..=end
}

/// The sizes that are decided together with `n`.
///
/// A decision applies to whole classes: a class belongs to the range of the profile that holds
/// its middle. A crossover at the start of a class is followed exactly.
///
/// ```
/// assert_eq!(cachewise::size_class(300), 288..=319);
/// assert_eq!(cachewise::size_class(1 << 20), 1 << 20..=(1 << 20) + (1 << 17) - 1);
/// ```
#[must_use]
pub const fn size_class(n: u64) -> RangeInclusive<u64> {
    class_sizes(class(n))
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn classes_are_monotone_contiguous_and_narrow() {
        assert_eq!(class_start(0), 0);
        for at in 0..CLASSES {
            let (start, end) = class_sizes(at).into_inner();
            assert_eq!((class(start), class(end)), (at, at));
            assert!(at + 1 == CLASSES || class(end + 1) == at + 1);
            assert!(start < 256 || (end - start) / 8 <= start / 8 / 8, "{start}..={end}");
        }
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }
}
