//! Calls of mixed sizes at mixed places: one sample plays a script of them, so long that it is not
//! remembered: what is timed holds the mispredicted branches and the misaligned accesses that one size
//! over and over hides.

use super::{Bench, Call, Cell, Task, each};
use crate::LabError;
use crate::distributions::Distribution;
use crate::routines::{FILL_BYTE, Routine};
use cachewise_kernels::{Function, Operation};
use cachewise_measure::{Place, Plan, Row};
use fastrand::Rng;

/// Calls in a script, at most: more than a branch predictor remembers. Zen 5's knows 8,192 of them by
/// heart (2.4 ns for a fill), a quarter of 32,768, a tenth at most of this many (4.2 of 4.5 ns).
const CALLS: usize = 1 << 17;

/// Bytes of a script, at most: a distribution of large sizes has fewer calls, and few branches to
/// mispredict.
const BYTES: usize = 256 << 20;

/// One call: 16 bytes, so that the script itself takes little of the cache.
#[derive(Clone, Copy, Debug)]
struct Step {
    to: u32,
    from: u32,
    n: u32,
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
    /// Draws the calls of an operation. The span is at least twice the largest size, which is 1 GiB
    /// at most ([`Distribution::read`]), so that places are below 4 GiB.
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
        let mut left = BYTES;
        let steps = (0..CALLS)
            .map_while(|call| {
                let n = distribution.size(&mut random);
                left = left.checked_sub(n).or((call == 0).then_some(0))?;
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
                let [to, from, n] = [to, from, n].map(|place| place as u32);
                Some(Step { to, from, n, overlaps })
            })
            .collect();
        Script { steps, span, name: distribution.name.clone() }
    }

    /// Bytes that all calls together move.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.steps.iter().map(|step| step.n as usize).sum()
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
                        let $to = place.dst.wrapping_add($step.to as usize);
                        let base = if $step.overlaps { place.dst.cast_const() } else { place.src };
                        let $from = base.wrapping_add($step.from as usize);
                        // SAFETY: a step lies inside the span, which both operands have; only a
                        // move's buffers overlap; the routine runs on this CPU.
                        std::hint::black_box(unsafe { $call });
                    }
                };
            }
            match function {
                Function::Copy(f) | Function::Move(f) => {
                    play!(s, to, from => f(to, from, s.n as usize));
                }
                Function::Fill(f) => {
                    play!(s, to, _from => f(to, FILL_BYTE.into(), s.n as usize));
                }
                Function::Zero(f) => play!(s, to, _from => f(to, s.n as usize)),
                Function::Compare(f) | Function::Equal(f) => {
                    play!(s, to, from => f(to, from, s.n as usize));
                }
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
            row.cell.size = (script.bytes() / script.steps.len()) as u64;
            row.cell.axes.insert("span".to_owned(), script.span as f64);
            for time in &mut row.operation_ns {
                *time /= script.steps.len() as f64;
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_too_long_to_be_remembered_or_short_in_bytes() {
        let small = Distribution::built_in("memset").expect("built in");
        let large = Distribution {
            name: "large".to_owned(),
            sizes: vec![(64 << 20, 1.0)],
            overlapping: 0.5,
            alignments: vec![(8, 1.0)],
        };
        for operation in cachewise::profile::OPERATIONS {
            let script = Script::draw(&small, operation, 16 << 10, 1);
            assert_eq!(script.steps.len(), CALLS);
            let few = Script::draw(&large, operation, 0, 1);
            assert_eq!(few.bytes(), BYTES);
            for script in [script, few] {
                let inside = |at: u32, n: u32| at as usize + n as usize <= script.span;
                assert!(script.steps.iter().all(|s| inside(s.to, s.n) && inside(s.from, s.n)));
            }
        }
    }
}
