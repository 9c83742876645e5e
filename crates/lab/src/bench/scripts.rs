//! Calls of mixed sizes at mixed places, on the bench.

use super::{Bench, Call, Cell, Task, each};
use crate::LabError;
use crate::callee::Callee;
use crate::distributions::Distribution;
use crate::routines::Routine;
use crate::script::{calls, draw};
use cachewise_kernels::Operation;
use cachewise_measure::{Place, Plan, Row};
use fastrand::Rng;
use std::cell::RefCell;

impl Bench {
    /// Measures calls as a distribution has them, in a span of memory that is at least twice the
    /// largest; the cell's size is their mean. Every sample has other calls, the same for all candidates
    /// but at other places, so that none finds the lines of the one before it in cache. Bytes are not
    /// checked here: measure fixed sizes first.
    ///
    /// # Errors
    /// The span does not fit the budget; being stopped.
    pub fn script(
        &mut self,
        operation: Operation,
        distribution: &Distribution,
        span: usize,
        routines: &[Routine],
        plan: Plan,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Row>, LabError> {
        // Sizes are 1 GiB at most (`Distribution::read`), places below 4 GiB.
        let span = span.max((2 * distribution.largest() + 4096).next_multiple_of(4096));
        let mut cell = Cell::reused(format!("calls as {}", distribution.name));
        cell.source.offset = 0;
        let task = Task { operation, size: span, cell, plan };
        let (each_has, seed) = (calls(distribution), self.seed);
        let scripts = vec![RefCell::<Vec<Place>>::default(); routines.len()];
        let mut candidates: Vec<Call<'_>> = routines
            .iter()
            .zip(&scripts)
            .enumerate()
            .map(|(index, (routine, script))| {
                let callee = Callee::new(routine.function);
                let mut random = Rng::with_seed(seed);
                let mut places = Rng::with_seed(seed ^ (index as u64 + 1));
                let call = Call::new(routine.name.clone(), move |places: &[Place]| {
                    callee.run(&script.borrow()[..places.len() * each_has]);
                });
                let call = call.set_up(move |slots| {
                    let (calls, random) = (slots.len() * each_has, &mut random);
                    let drawn =
                        draw(distribution, calls, operation, span, false, random, &mut places);
                    let of_slot = slots.iter().zip(drawn.chunks(each_has));
                    let calls = of_slot.flat_map(|(slot, steps)| {
                        steps.iter().map(|step| step.at(slot.dst, slot.src))
                    });
                    script.replace(calls.collect());
                });
                call.staying(index == 0)
            })
            .collect();
        let mut rows = self.measure(&task, &mut each(&mut candidates), stop)?.rows();
        for row in &mut rows {
            row.cell.size = distribution.mean() as u64;
            row.cell.axes.insert("span".to_owned(), span as f64);
            for time in &mut row.operation_ns {
                *time /= each_has as f64;
            }
        }
        Ok(rows)
    }
}
