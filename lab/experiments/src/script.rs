//! Calls as programs have them, of several candidates in turns.

use crate::bench::{Bench, Call, Cell, Task, each};
use crate::callee::{Callee, loads};
use crate::error::LabError;
use crate::routines::Routine;
use cachewise_kernels::Operation;
use cachewise_measure::distributions::Distribution;
use cachewise_measure::{Place, Plan, Row};
use fastrand::Rng;
use std::cell::RefCell;

pub use cachewise_measure::script::{CALLS, at_once, calls, draw, plain};

#[derive(Debug, Clone, Copy)]
pub struct Script<'a> {
    pub operation: Operation,
    /// Sizes and places of the calls.
    pub distribution: &'a Distribution,
    /// Bytes that each operand is drawn from; twice the largest call at least.
    pub span: usize,
    /// Load a part of each result before the next call begins.
    pub read_at_once: bool,
}

impl Bench {
    /// Measures calls as a distribution has them, in a span of memory that is at least twice the
    /// largest; the cell's size is their mean. Every sample has other calls, the same for all candidates
    /// but at other places, so that none finds the lines of the one before it in cache. Bytes are not checked here: measure
    /// fixed sizes first.
    ///
    /// # Errors
    /// The span does not fit the budget; being stopped.
    pub fn script(
        &mut self,
        script: &Script<'_>,
        routines: &[Routine],
        plan: Plan,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Row>, LabError> {
        let &Script { operation, distribution, span, read_at_once } = script;
        // Sizes are 1 GiB at most (`Distribution::read`), places below 4 GiB.
        let span = span.max((2 * distribution.largest() + 4096).next_multiple_of(4096));
        let mut name = format!("calls as {}", distribution.name);
        if read_at_once {
            name = format!("{name}, {}", at_once(operation));
        }
        let mut cell = Cell::reused(name);
        cell.source.offset = 0;
        let task = Task { operation, size: span, cell, plan };
        let (each_has, seed) = (calls(distribution), self.seed);
        let scripts = vec![RefCell::<(Vec<Place>, Vec<*const u8>)>::default(); routines.len()];
        let mut candidates: Vec<Call<'_>> = routines
            .iter()
            .zip(&scripts)
            .enumerate()
            .map(|(index, (routine, script))| {
                let callee = Callee::new(routine.function);
                let mut random = Rng::with_seed(seed);
                let mut places = Rng::with_seed(seed ^ (index as u64 + 1));
                let call = Call::new(routine.name.clone(), move |places: &[Place]| {
                    let (script, count) = (script.borrow(), places.len() * each_has);
                    if read_at_once {
                        callee.run_at_once(&script.0[..count], &script.1[..count], None);
                    } else {
                        callee.run(&script.0[..count]);
                    }
                });
                let call = call.set_up(move |slots| {
                    let (calls, random) = (slots.len() * each_has, &mut random);
                    let drawn =
                        draw(distribution, calls, operation, span, false, random, &mut places);
                    let of_slot = slots.iter().zip(drawn.chunks(each_has));
                    let calls = of_slot.flat_map(|(slot, steps)| {
                        steps.iter().map(|step| step.at(slot.dst, slot.src))
                    });
                    let calls: Vec<Place> = calls.collect();
                    let loads = if read_at_once { loads(&calls, &mut places) } else { Vec::new() };
                    script.replace((calls, loads));
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
