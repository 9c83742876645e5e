//! An engine that fails on purpose, in each way that a device can.

use super::{Cancelled, Engine, EngineError, Progress, Range, Token};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::vec::Vec;

/// The fate of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// Zeroed.
    Good,
    /// Refused at once.
    Refuse,
    /// Ends in an error, half of it written with something else.
    Error,
    /// Never ends; the blocks are scribbled on for as long as the engine lives.
    Hang,
    /// Ends in time, but only when it is called back.
    Slow,
    /// Half is zeroed, and the engine says so.
    Partial,
    /// Said to be zeroed, and is not: the last byte.
    Lie,
    /// Said to be zeroed, and is not: a byte in the middle of the last range.
    Hole,
}

/// The outcomes to come, shared with the test that sets them; [`BatchOutcome::Good`] when empty.
pub type Script = Arc<Mutex<VecDeque<BatchOutcome>>>;

/// The engine.
#[derive(Debug)]
pub struct Faulty {
    script: Script,
    batches: Vec<(Token, BatchOutcome, Vec<Range>)>,
    last: u64,
}

impl Faulty {
    /// An engine that follows a script.
    #[must_use]
    pub fn new(script: Script) -> Faulty {
        Faulty { script, batches: Vec::new(), last: 0 }
    }
}

fn fill(ranges: &[Range], byte: u8, mut bytes: usize) {
    for range in ranges {
        let length = range.length.min(bytes);
        // SAFETY: the ranges are the engine's while it has the batch (`Engine::submit`).
        unsafe { range.start.write_bytes(byte, length) };
        bytes -= length;
    }
}

// SAFETY: it writes in `submit`, and in `poll` to batches that it keeps; after drop nothing is left
// that could write.
unsafe impl Engine for Faulty {
    unsafe fn submit(&mut self, batch: &[Range]) -> Result<Token, EngineError> {
        let next = self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let outcome = next.unwrap_or(BatchOutcome::Good);
        let bytes: usize = batch.iter().map(|range| range.length).sum();
        match outcome {
            BatchOutcome::Refuse => return Err(EngineError::Device(5)),
            BatchOutcome::Good | BatchOutcome::Lie | BatchOutcome::Hole => fill(batch, 0, bytes),
            BatchOutcome::Error => fill(batch, 0xEE, bytes / 2),
            BatchOutcome::Hang | BatchOutcome::Slow => fill(batch, 0xDD, 64),
            BatchOutcome::Partial => fill(batch, 0, bytes / 2),
        }
        let wrong = batch.last().and_then(|range| match outcome {
            // A check of the first bytes would not do.
            BatchOutcome::Lie => Some(range.start.wrapping_add(range.length - 1)),
            BatchOutcome::Hole => Some(range.start.wrapping_add(range.length / 2)),
            _ => None,
        });
        if let Some(byte) = wrong {
            // SAFETY: inside the range, which is the engine's.
            unsafe { byte.write(0x11) };
        }
        self.last += 1;
        self.batches.push((Token(self.last), outcome, batch.to_vec()));
        Ok(Token(self.last))
    }

    fn poll(&mut self, batch: Token) -> Progress {
        let Some(place) = self.batches.iter().position(|(token, ..)| *token == batch) else {
            return Progress::Fault(EngineError::Unknown);
        };
        let (_, outcome, ranges) = &self.batches[place];
        let bytes: usize = ranges.iter().map(|range| range.length).sum();
        let progress = match outcome {
            BatchOutcome::Good | BatchOutcome::Lie | BatchOutcome::Hole => Progress::Done,
            BatchOutcome::Error | BatchOutcome::Refuse => Progress::Fault(EngineError::Device(7)),
            BatchOutcome::Partial => Progress::Partial(bytes / 2),
            BatchOutcome::Slow => return Progress::Pending,
            BatchOutcome::Hang => {
                fill(ranges, 0xDD, bytes);
                return Progress::Pending;
            }
        };
        self.batches.swap_remove(place);
        progress
    }

    fn cancel(&mut self, batch: Token, _deadline: Duration) -> Cancelled {
        let is_it = |(token, outcome, _): &(Token, BatchOutcome, Vec<Range>)| {
            *token == batch && *outcome != BatchOutcome::Hang
        };
        match self.batches.iter().position(is_it) {
            Some(place) => {
                self.batches.swap_remove(place);
                Cancelled::Stopped
            }
            None => Cancelled::StillRunning,
        }
    }
}
