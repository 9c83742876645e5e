//! Memory that the host backs, for experiments that time faults.
//!
//! If the host takes free memory back ([`Reporting`]), a fault's time is the host's unless the pages were in use a
//! moment ago. So before each sample as much memory is touched and given back. The proof is the kernel's count of
//! reported memory, where it has one, and a second touch: of the same size, right behind the first, and not slower
//! than it.

use crate::prelude::*;
use cachewise_measure::Reporting;
use cachewise_measure::units::time;
use memmap2::{Advice, MmapMut};
use std::time::Instant;

/// Host's backing of memory before the samples of one experiment.
pub(crate) struct Backing {
    bytes: usize,
    began: Reporting,
    /// Samples during which the kernel reported free memory.
    disturbed: usize,
    samples: usize,
    /// The first and the second touch of the first sample's memory, in nanoseconds.
    touches: Option<[f64; 2]>,
}

impl Backing {
    /// For samples that fault so many bytes.
    pub(crate) fn new(bytes: usize) -> Backing {
        let began = Reporting::now();
        Backing { bytes, began, disturbed: 0, samples: 0, touches: None }
    }

    /// Takes a sample right after its memory was in use.
    pub(crate) fn sample<T>(&mut self, take: impl FnOnce() -> Result<T>) -> Result<T> {
        if !self.began.is_on {
            return take();
        }
        let first = self.touch()?;
        if self.touches.is_none() {
            self.touches = Some([first, self.touch()?]);
        }
        let before = Reporting::now();
        let taken = take()?;
        self.samples += 1;
        self.disturbed += usize::from(Reporting::now().since(&before) > Some(0));
        Ok(taken)
    }

    /// Writes a byte of every page of fresh memory and gives it back.
    fn touch(&self) -> Result<f64> {
        let refused = |error| LabError::Nothing(format!("{} bytes of memory: {error}", self.bytes));
        let mut memory = MmapMut::map_anon(self.bytes).map_err(refused)?;
        // Huge pages where the system has them: what is reported are blocks of that size.
        let _ = memory.advise(Advice::HugePage);
        let begun = Instant::now();
        memory.iter_mut().step_by(PAGE_SIZE).for_each(|byte| *byte = 1);
        Ok(begun.elapsed().as_secs_f64() * 1e9)
    }

    /// The record's note; none if the host takes nothing back.
    pub(crate) fn note(&self, what: &str) -> Option<String> {
        let [first, second] = self.touches?;
        let counted = match self.began.kib {
            Some(_) => {
                format!("memory was reported during {} of {} samples", self.disturbed, self.samples)
            }
            None => "this kernel does not count what it reports".to_owned(),
        };
        Some(format!(
            "{what}: the host takes free memory back, so {} were touched and given back before each \
             sample (first touch {}, second {}); {counted}",
            cachewise_measure::units::bytes(self.bytes as u64),
            time(first),
            time(second)
        ))
    }
}
