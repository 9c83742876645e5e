//! Another libc as a candidate, in a process of its own: no process can have two.
//!
//! The child, a [helper](crate::helper), has buffers of its own, as far apart and as misaligned as the
//! parent's, and is asked for its samples ([`ElsewhereLibc`]) when its turn in a round comes. It makes as
//! many calls as everybody, times them itself, with the same clock and after as many untimed calls,
//! and the parent does nothing meanwhile. What turns in one process share and this one does not: its
//! buffers lie on other physical pages, and it may run on another core. So the child times the library
//! too, on the same buffers in turns with its libc, and what is compared is the two of them
//! ([`beside_the_library`](ElsewhereLibc::beside_the_library)).

use crate::bench::{is_copied, is_filled, is_zeroed, run_all};
use crate::callee::Callee;
use crate::error::LabError;
use crate::helper::{Calls, Helper, Request};
use crate::routines::{FILL_BYTE, libc_reference, library};
use cachewise_kernels::{Function, Operation, PAGE_SIZE};
use cachewise_measure::{Arena, Candidate, Clock, PagePolicy, Place};
use std::io;

/// Places in the list that a sample's calls go through again.
const PLACES: usize = 64;

impl Calls {
    fn checked(&self) -> Result<Operation, LabError> {
        let operation = Operation::from_name(&self.operation)
            .filter(|_| self.size > 0 && self.dst < PAGE_SIZE && self.src < PAGE_SIZE);
        let refused = || {
            let expected = format!("expected an operation, a size and places below {PAGE_SIZE}");
            LabError::Usage(format!("{expected}, found {self:?}"))
        };
        operation.ok_or_else(refused)
    }

    /// Operation, size and offsets of the calls.
    fn operands(&self) -> (&str, usize, usize, usize) {
        (&self.operation, self.size, self.dst, self.src)
    }
}

/// The calls, in the process that makes them.
#[derive(Default)]
pub(crate) struct Elsewhere {
    operands: Option<Operands>,
    turn: usize,
}

impl Elsewhere {
    /// Nanoseconds that the calls of libc took together, and those of the library.
    pub(crate) fn time(&mut self, calls: &Calls) -> Result<(f64, f64), LabError> {
        let operation = calls.checked()?;
        let clock = Clock::of_process();
        let functions = [libc_reference(operation).function, library(operation).function];
        // Operands that are not used again are given back before the new ones are taken.
        let is_kept = |kept: &Operands| kept.calls.operands() == calls.operands();
        let operands = match self.operands.take().filter(is_kept) {
            Some(operands) => operands,
            None => Operands::new(calls, functions)?,
        };
        let mut took = [0.0; 2];
        self.turn += 1;
        // In turns, so that neither always meets what the other left.
        for which in if self.turn.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            let callee = Callee::new(functions[which]);
            let places = [operands.place; PLACES];
            let times = |calls: usize| {
                (0..calls / PLACES).for_each(|_| callee.run(&places));
                callee.run(&places[..calls % PLACES]);
            };
            times(calls.untimed.max(1));
            took[which] = clock.time(|| times(calls.calls));
        }
        self.operands = Some(operands);
        Ok((took[0], took[1]))
    }
}

/// Two buffers, a power of two apart but for their places in a page.
struct Operands {
    calls: Calls,
    place: Place,
    /// The memory that both pointers point into.
    _arena: Arena,
}

impl Operands {
    /// Calls each function once on new operands and checks every byte: no other check runs in this process.
    fn new(calls: &Calls, functions: [Function; 2]) -> Result<Operands, LabError> {
        let apart = (calls.size + PAGE_SIZE).next_power_of_two();
        let arena = Arena::new(2 * apart, PagePolicy::Huge, 0x7BED)?;
        let start = arena.as_mut_ptr();
        let (dst, src) = (start.wrapping_add(apart + calls.dst), start.wrapping_add(calls.src));
        if matches!(functions[0], Function::Compare(_) | Function::Equal(_)) {
            // SAFETY: inside the arena: calls.size and a place in a page fit in `apart`, by which the
            // two differ.
            unsafe { std::ptr::copy_nonoverlapping(src, dst, calls.size) };
        }
        let place = Place { dst, src, n: calls.size };
        for function in functions {
            run_all(function, &[place]);
            let checked = match function {
                Function::Fill(_) => is_filled(&place, FILL_BYTE),
                Function::Zero(_) | Function::ZeroPages(_) => is_zeroed(&place),
                _ => is_copied(&place),
            };
            checked.map_err(LabError::WrongBytes)?;
        }
        Ok(Operands { calls: calls.clone(), place, _arena: arena })
    }
}

/// A C library in a helper.
pub struct ElsewhereLibc {
    /// Name in its rows.
    name: String,
    pub(crate) helper: Helper,
    /// The next sample's, as far as they are known.
    calls: Calls,
    /// The library's time over this libc's, of each sample.
    library_over_it: Vec<f64>,
}

impl ElsewhereLibc {
    /// Has a helper under another C library make one call.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn start(
        name: &str,
        mut helper: Helper,
        operation: Operation,
    ) -> io::Result<ElsewhereLibc> {
        let operation = operation.name().to_owned();
        let calls = Calls { operation, size: 1, dst: 0, src: 0, calls: 1, untimed: 0 };
        helper.ask::<(f64, f64)>(&Request::Libc(calls.clone()))?;
        Ok(ElsewhereLibc { name: name.to_owned(), helper, calls, library_over_it: Vec::new() })
    }

    /// This libc's times where the library takes `library_ns` in this process, round by round:
    /// the ratio of the two is the one measured in the child, on the same buffers. Forgets the
    /// samples of this cell.
    pub fn beside_the_library(&mut self, library_ns: &[f64]) -> Vec<f64> {
        let ratios = std::mem::take(&mut self.library_over_it);
        // The last ones: those before sized the samples.
        let rounds = library_ns.len().min(ratios.len());
        let last = &ratios[ratios.len() - rounds..];
        library_ns.iter().zip(last).map(|(ns, ratio)| ns / ratio).collect()
    }
}

impl Candidate for ElsewhereLibc {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&mut self, place: &Place) {
        self.call_all(std::slice::from_ref(place));
    }

    /// Remembered: the child makes them when it is asked for the sample that they come before.
    fn call_all(&mut self, places: &[Place]) {
        self.calls.untimed += places.len();
    }

    fn timed_elsewhere(&mut self, places: &[Place], calls: usize) -> Option<f64> {
        let place = places.first()?;
        let (dst, src) = (place.dst.addr() % PAGE_SIZE, place.src.addr() % PAGE_SIZE);
        let request = Calls { size: place.n, dst, src, calls, ..self.calls.clone() };
        self.calls.untimed = 0;
        let told = self.helper.ask_or_keep(&Request::Libc(request));
        // Nothing is kept of a child that has died; the rounds have to end somehow.
        let (its, library) = told.unwrap_or((1.0, 1.0));
        self.library_over_it.push(library / its);
        Some(its)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(operation: &str, size: usize, dst: usize, src: usize) -> Calls {
        Calls { operation: operation.to_owned(), size, dst, src, calls: 50, untimed: 0 }
    }

    #[test]
    fn every_operation_is_served_checked_and_timed() {
        for operation in ["copy", "move", "fill", "zero", "compare", "equal"] {
            let mut elsewhere = Elsewhere::default();
            for asked in [calls(operation, 100, 24, 521), calls(operation, 5000, 0, 512)] {
                let (libc, library) = elsewhere.time(&asked).expect("served");
                assert!(libc > 0.0 && library > 0.0, "{operation}");
            }
        }
    }

    #[test]
    fn calls_that_fit_no_page_are_refused() {
        for asked in [calls("fly", 1, 0, 0), calls("copy", 0, 0, 0), calls("copy", 1, 4096, 0)] {
            let error = Elsewhere::default().time(&asked).expect_err("refused").to_string();
            assert!(error.contains("expected an operation, a size"), "{error}");
        }
    }
}
