//! Proof of a custom engine's work that costs less than the work.
//!
//! The first bytes that an engine zeroes are read whole. From then on the last line of each range gets a
//! canary before it is submitted and is read afterwards, and one batch in 64, by chance, is read whole.
//! So an engine that does nothing, or works in the wrong place, is found at once; one that leaves a hole
//! elsewhere, at one batch in 64 (`docs/page-pool.md`).

use crate::engine::{Cancelled, Engine, EngineError, Progress, Range};
use std::boxed::Box;
use std::time::Duration;

/// Bytes that are read whole at first.
pub(crate) const WHOLE: u64 = 64 << 20;
/// Number of batches of which one is read whole.
const ONE_IN: u64 = 64;
/// Bytes of a canary: a line.
const LINE: usize = 64;
const CANARY: u8 = 0xCA;

/// The checks of an engine's work so far.
#[derive(Debug)]
pub(crate) struct Proof {
    read: u64,
    random: u64,
    /// True if the batch at hand is read whole.
    whole: bool,
}

impl Proof {
    /// Nothing yet.
    pub(crate) fn new(seed: u64) -> Proof {
        Proof { read: 0, random: seed | 1, whole: true }
    }

    /// Before a batch is submitted.
    ///
    /// # Safety
    /// The ranges are mapped and nobody else uses them; each has a line at least.
    pub(crate) unsafe fn begin(&mut self, batch: &[Range]) {
        // Marsaglia, "Xorshift RNGs", 2003: the triple 13, 7, 17.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.whole = self.read < WHOLE || (self.random >> 32).is_multiple_of(ONE_IN);
        if self.whole {
            return;
        }
        for range in batch {
            // SAFETY: inside the range; the caller's promise.
            unsafe { last_line(range).write_bytes(CANARY, LINE) };
        }
    }

    /// Checks whether the ranges that the engine called zero are zero, as far as they are read.
    ///
    /// # Safety
    /// As for [`begin`](Proof::begin), of the same batch.
    pub(crate) unsafe fn holds(&mut self, batch: &[Range]) -> bool {
        if self.whole {
            self.read += batch.iter().map(|range| range.length as u64).sum::<u64>();
        }
        batch.iter().all(|range| {
            let (start, length) =
                if self.whole { (range.start, range.length) } else { (last_line(range), LINE) };
            // SAFETY: inside the range; the caller's promise.
            is_zero(unsafe { std::slice::from_raw_parts(start, length) })
        })
    }
}

/// An engine that is believed as far as a pool believes one, for whoever zeroes without a pool.
#[derive(Debug)]
pub struct Proved {
    engine: Option<Box<dyn Engine>>,
    proof: Proof,
    deadline: Duration,
}

impl Proved {
    /// Nothing proved yet. A batch may take that long.
    #[must_use]
    pub fn new(engine: Box<dyn Engine>, deadline: Duration) -> Proved {
        let seed = std::ptr::from_ref(&*engine).addr() as u64;
        Proved { engine: Some(engine), proof: Proof::new(seed), deadline }
    }

    /// Zeroes memory, and waits for it.
    ///
    /// # Safety
    /// The range is resident, has a line at least, stays as it is, and nobody else uses it. After
    /// [`EngineError::Hung`] nobody ever does.
    ///
    /// # Errors
    /// The engine failed, and is no more. After [`EngineError::Lied`] nothing that it zeroed is to be believed.
    pub unsafe fn zero(&mut self, range: Range) -> Result<(), EngineError> {
        let engine = self.engine.as_mut().ok_or(EngineError::Unknown)?;
        // SAFETY: the caller's promise; it is disowned below, or forgotten.
        let told = unsafe { engine.adopt(range) };
        // SAFETY: the caller's promise.
        unsafe { self.proof.begin(&[range]) };
        let ended = told.and_then(|()| {
            // SAFETY: the caller's promise.
            let batch = unsafe { engine.submit(&[range]) }?;
            match engine.wait(batch, self.deadline) {
                Progress::Done => Ok(()),
                Progress::Fault(error) => Err(error),
                Progress::Partial(_) | Progress::Pending => Err(EngineError::Late),
            }
        });
        // SAFETY: the caller's promise, and begun with.
        let zero = ended.and_then(|()| match unsafe { self.proof.holds(&[range]) } {
            true => engine.disown(),
            false => Err(EngineError::Lied),
        });
        if let Err(error) = zero
            && let Some(mut engine) = self.engine.take()
        {
            if engine.stop(self.deadline) == Cancelled::StillRunning {
                std::mem::forget(engine);
                return Err(EngineError::Hung);
            }
            return Err(error);
        }
        zero
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
    use std::vec::Vec;

    /// A defect: the work of an engine that does not zero a batch of two ranges.
    type Lie = fn(&mut [u8], &mut [u8]);

    /// Made-up engines for each lie. Interpreted, every access of one is looked at, and no rate.
    const ENGINES: u64 = if cfg!(miri) { 1 } else { 400 };

    /// At which batch of full size each of many engines is found that lies once it has been believed.
    fn found_at(lie: Lie) -> Vec<u32> {
        const BYTES: usize = 16 << 10;
        let mut memory = std::vec![0u8; 2 * BYTES];
        let start = memory.as_mut_ptr();
        let batch = [0, BYTES].map(|at| Range { start: start.wrapping_add(at), length: BYTES });
        let parts = || {
            // SAFETY: a half each of this test's own memory; what is made of them ends before the next.
            batch
                .each_ref()
                .map(|half| unsafe { std::slice::from_raw_parts_mut(half.start, BYTES) })
        };
        let found = |seed: u64| {
            let mut proof = Proof::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            proof.read = WHOLE;
            (1..10_000).find(|_| {
                parts().into_iter().for_each(|part| part.fill(0x55));
                // SAFETY: both parts are this test's own.
                unsafe { proof.begin(&batch) };
                let [one, other] = parts();
                lie(one, other);
                // SAFETY: as above.
                !unsafe { proof.holds(&batch) }
            })
        };
        (1..=ENGINES).map(|seed| found(seed).expect("found in the end")).collect()
    }

    fn mean(found: &[u32]) -> f64 {
        f64::from(found.iter().sum::<u32>()) / found.len() as f64
    }

    #[test]
    fn each_lie_is_found_at_the_rate_that_is_documented() {
        let at_once: [(&str, Lie); 4] = [
            ("nothing is done", |_, _| {}),
            ("the last line stays", |one, other| {
                one.fill(0);
                let last = other.len() - LINE;
                other[..last].fill(0);
            }),
            ("the first half alone", |one, other| {
                one.fill(0);
                let half = other.len() / 2;
                other[..half].fill(0);
            }),
            ("the right bytes in the wrong place", |one, _| one.fill(0)),
        ];
        for (name, lie) in at_once {
            assert!(found_at(lie).iter().all(|batch| *batch == 1), "{name}");
        }
        let by_sample: [(&str, Lie); 3] = [
            ("a hole in the middle", |one, other| {
                one.fill(0);
                let middle = other.len() / 2;
                other[..middle].fill(0);
                other[middle + 4096..].fill(0);
            }),
            ("the first line stays", |one, other| {
                one.fill(0);
                other[LINE..].fill(0);
            }),
            ("the last line alone", |one, other| {
                for part in [one, other] {
                    let last = part.len() - LINE;
                    part[last..].fill(0);
                }
            }),
        ];
        for (name, lie) in by_sample {
            // The mean of 400 draws of mean 64 and deviation 64, within four of its own deviations.
            let mean = mean(&found_at(lie));
            assert!(cfg!(miri) || (51.0..77.0).contains(&mean), "{name}: {mean}");
        }
    }

    #[test]
    fn the_first_bytes_are_read_whole() {
        let mut memory = std::vec![0u8; 1 << 20];
        let batch = [Range { start: memory.as_mut_ptr(), length: memory.len() }];
        let mut proof = Proof::new(3);
        // Interpreted, the last megabyte alone.
        proof.read = if cfg!(miri) { WHOLE - (1 << 20) } else { 0 };
        while proof.read < WHOLE {
            // SAFETY: this test's own memory.
            unsafe { proof.begin(&batch) };
            assert!(proof.whole);
            // SAFETY: as above.
            assert!(unsafe { proof.holds(&batch) });
        }
        let whole = (0..6400).filter(|_| {
            // SAFETY: as above.
            unsafe { proof.begin(&batch) };
            proof.whole
        });
        assert!((60..140).contains(&whole.count()));
    }
}
