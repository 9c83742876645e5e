//! Calls of mixed sizes at mixed places: one sample replays a script of them, so that what is timed
//! holds the mispredicted branches and the misaligned accesses that one size over and over hides.

use super::{Bench, Call, Cell, Task, each};
use crate::LabError;
use crate::distributions::Distribution;
use crate::routines::{FILL_BYTE, Routine};
use cachewise_kernels::{Function, Operation};
use cachewise_measure::{Place, Plan, Row};
use fastrand::Rng;

/// Calls in a script: more than a branch predictor remembers, few enough to be short.
const CALLS: usize = 4096;

/// One call.
#[derive(Clone, Copy, Debug)]
struct Step {
    to: usize,
    from: usize,
    n: usize,
    /// Whether `from` is a place in the destination's span.
    overlaps: bool,
}

/// Calls drawn from a distribution, over a span of memory.
#[derive(Clone, Debug)]
pub struct Script {
    steps: Vec<Step>,
    span: usize,
    name: String,
}

impl Script {
    /// Draws the calls of an operation. The span is at least twice the largest size.
    #[must_use]
    pub fn draw(
        distribution: &Distribution,
        operation: Operation,
        span: usize,
        seed: u64,
    ) -> Script {
        let span = span.max((2 * distribution.largest() + 4096).next_multiple_of(4096));
        let mut random = Rng::with_seed(seed);
        let reads_only = matches!(operation, Operation::Compare | Operation::Equal);
        let steps = (0..CALLS)
            .map(|_| {
                let n = distribution.size(&mut random);
                let to = distribution.place(n, span, &mut random);
                let overlaps =
                    operation == Operation::Move && n > 0 && distribution.overlaps(&mut random);
                let from = if overlaps {
                    // Starts inside the destination or ends there.
                    let distance = random.usize(1..=n);
                    if random.bool() && to >= distance {
                        to - distance
                    } else {
                        (to + distance).min(span - n)
                    }
                } else if reads_only {
                    // The same place in the other buffer: they are equal there.
                    to
                } else {
                    distribution.place(n, span, &mut random)
                };
                Step { to, from, n, overlaps }
            })
            .collect();
        Script { steps, span, name: distribution.name.clone() }
    }

    /// Bytes that all calls together move.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.steps.iter().map(|step| step.n).sum()
    }
}

/// A routine that plays the script in each call.
fn candidate<'s>(routine: &Routine, steps: &'s [Step]) -> Call<'s> {
    let function = routine.function;
    Call::new(routine.name.clone(), move |places: &[Place]| {
        for place in places {
            macro_rules! play {
                ($step:ident, $to:ident, $from:ident => $call:expr) => {
                    for $step in steps {
                        let $to = place.dst.wrapping_add($step.to);
                        let base = if $step.overlaps { place.dst.cast_const() } else { place.src };
                        let $from = base.wrapping_add($step.from);
                        // SAFETY: a step lies inside the span, which both operands have; only a
                        // move's buffers overlap; the routine runs on this CPU.
                        std::hint::black_box(unsafe { $call });
                    }
                };
            }
            match function {
                Function::Copy(f) | Function::Move(f) => play!(s, to, from => f(to, from, s.n)),
                Function::Fill(f) => play!(s, to, _from => f(to, FILL_BYTE.into(), s.n)),
                Function::Zero(f) => play!(s, to, _from => f(to, s.n)),
                Function::Compare(f) | Function::Equal(f) => play!(s, to, from => f(to, from, s.n)),
                // No script is drawn for page operations.
                Function::CopyPages(_) | Function::ZeroPages(_) => {}
            }
        }
    })
}

impl Bench {
    /// Measures one script; times are per call of the script, the cell's size is the mean one.
    /// Candidates' bytes are not checked here: measure fixed sizes first.
    ///
    /// # Errors
    /// The span does not fit the budget; being stopped.
    pub fn script(
        &mut self,
        operation: Operation,
        script: &Script,
        routines: &[Routine],
        plan: Plan,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Row>, LabError> {
        let mut cell = Cell::reused(format!("calls as {}", script.name));
        cell.source.offset = 0;
        let task = Task { operation, size: script.span, cell, plan };
        let mut candidates: Vec<Call<'_>> = routines
            .iter()
            .enumerate()
            .map(|(index, routine)| candidate(routine, &script.steps).staying(index == 0))
            .collect();
        let mut rows = self.measure(&task, &mut each(&mut candidates), stop)?.rows();
        for row in &mut rows {
            row.cell.size = (script.bytes() / CALLS) as u64;
            row.cell.axes.insert("span".to_owned(), script.span as f64);
            for time in &mut row.operation_ns {
                *time /= CALLS as f64;
            }
        }
        Ok(rows)
    }
}
