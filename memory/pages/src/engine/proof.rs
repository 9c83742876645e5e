//! Proof of an engine's work that costs less than the work: the first bytes that it zeroes are read whole, and from then
//! on the last line of each batch, which gets a canary before the batch is submitted. So an engine that does nothing,
//! stops early or works in the wrong place is found at once, and one that leaves a hole elsewhere is not.

use crate::engine::Range;

/// Bytes that are read whole at first.
pub(crate) const WHOLE: u64 = 64 << 20;
/// Bytes of a canary: a line.
const LINE: usize = 64;
const CANARY: u8 = 0xCA;

/// The checks of an engine's work so far.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    read: u64,
}

impl Proof {
    /// Before a batch is submitted.
    ///
    /// # Safety
    /// The ranges are mapped and nobody else uses them; the last one has a line at least.
    pub(crate) unsafe fn begin(&self, batch: &[Range]) {
        if let Some(last) = batch.last() {
            // SAFETY: inside the range; the caller's promise.
            unsafe { last_line(last).write_bytes(CANARY, LINE) };
        }
    }

    /// Checks whether the ranges that the engine called zero are zero, as far as they are read.
    ///
    /// # Safety
    /// Promises of [`begin`](Proof::begin), of the same batch.
    pub(crate) unsafe fn holds(&mut self, batch: &[Range]) -> bool {
        if self.read >= WHOLE {
            return batch.last().is_none_or(|last| {
                // SAFETY: inside the range; the caller's promise.
                is_zero(unsafe { std::slice::from_raw_parts(last_line(last), LINE) })
            });
        }
        self.read += batch.iter().map(|range| range.length as u64).sum::<u64>();
        batch.iter().all(|range| {
            // SAFETY: the caller's promise.
            is_zero(unsafe { std::slice::from_raw_parts(range.start, range.length) })
        })
    }
}

fn last_line(range: &Range) -> *mut u8 {
    range.start.wrapping_add(range.length - LINE)
}

/// Checks whether all bytes are zero.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    // SAFETY: every bit pattern is a valid u128.
    let (head, words, tail) = unsafe { bytes.align_to::<u128>() };
    let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    let or = |words: &[u128]| words.iter().fold(0, |all, word| all | word) == 0;
    zero(head) && words.chunks(64).all(or) && zero(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A defect: the work of an engine on a batch of two ranges.
    type Lie = fn(&mut [u8], &mut [u8]);

    /// Checks whether it is found, by an engine that has zeroed so many bytes before.
    fn is_found(lie: Lie, read: u64) -> bool {
        const BYTES: usize = 16 << 10;
        let mut memory = [std::vec![0x55u8; BYTES], std::vec![0x55u8; BYTES]];
        let batch = memory.each_mut().map(|part| Range { start: part.as_mut_ptr(), length: BYTES });
        let mut proof = Proof { read };
        // SAFETY: this test's own memory.
        unsafe { proof.begin(&batch) };
        let [one, other] = &mut memory;
        lie(one, other);
        let batch = memory.each_mut().map(|part| Range { start: part.as_mut_ptr(), length: BYTES });
        // SAFETY: as above.
        !unsafe { proof.holds(&batch) }
    }

    #[test]
    fn lies_are_found_as_the_engines_documentation_says() {
        // The work; whether it is found among the first bytes; whether later.
        let lies: [(Lie, bool, bool); 7] = [
            (|one, other| [one, other].into_iter().for_each(|part| part.fill(0)), false, false),
            (|_, _| {}, true, true),
            (|one, _| one.fill(0), true, true),
            (|one, other| (one.fill(0), other[..8192].fill(0)).1, true, true),
            (|one, other| (one.fill(0), other[..(16 << 10) - 1].fill(0)).1, true, true),
            (|one, other| (one.fill(0), other[1..].fill(0)).1, true, false),
            (|one, other| (one[..64].fill(0), other.fill(0)).1, true, false),
        ];
        for (case, (lie, at_first, later)) in lies.into_iter().enumerate() {
            assert_eq!([is_found(lie, 0), is_found(lie, WHOLE)], [at_first, later], "{case}");
        }
    }
}
