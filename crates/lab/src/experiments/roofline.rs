//! `roofline`: what this machine can read, write, write around the cache and copy, per level.
//!
//! A ceiling is what the best of a few straight kernels reaches on this core, not a data sheet's
//! figure: reading is two streams of equal bytes compared, which is bound by loads; writing is a
//! fill. Other experiments use the ceilings to say how near the limit a result is.

use super::{Experiment, Finish, Setting, default_sizes, placed, short_bytes};
use crate::LabError;
use crate::bench::{Bench, Question};
use crate::routines::{Routine, libc_reference};
use crate::watch::Observer;
use cachewise_kernels::{Kernel, Operation, TABLE};
use cachewise_measure::{Clock, Level, MeasureError, Plan, Row, stats};
use std::collections::BTreeMap;

/// Row figure: bytes the operation names, per cycle of the core.
pub const BYTES_PER_CYCLE: &str = "bytes_per_cycle";
/// Row figure: speed over the best speed that any of the ceiling kernels reached at that level.
pub const CEILING_SHARE: &str = "ceiling_share";
/// Row figure: that best speed, in GB/s.
pub const CEILING_GBPS: &str = "ceiling_gbps";

/// Which kernels set the ceiling of an operation: the straight members of each vector family and
/// the string instruction.
fn straight(operation: Operation, bench: &Bench) -> Vec<Routine> {
    let wanted = |kernel: &&Kernel| {
        kernel.operation() == operation
            && kernel.runs_on(bench.features)
            && matches!(
                kernel.technique(),
                "sse2"
                    | "avx"
                    | "avx2"
                    | "avx512"
                    | "sse2.nt"
                    | "avx.nt"
                    | "avx512.nt"
                    | "rep.movsb"
                    | "rep.stosb"
                    | "clzero"
                    | "gpr64"
            )
    };
    std::iter::once(libc_reference(operation))
        .chain(TABLE.iter().filter(wanted).map(Routine::from))
        .collect()
}

/// Ceilings measured so far, GB/s by operation and level.
#[derive(Default)]
pub(super) struct Ceilings(BTreeMap<(Operation, Level), f64>);

impl Ceilings {
    /// The ceiling of an operation at a level, measured when first asked for. Page operations have
    /// their byte operation's, a move its copy's.
    pub(super) fn of(
        &mut self,
        operation: Operation,
        level: Level,
        bench: &mut Bench,
        observer: &mut dyn Observer,
    ) -> Result<f64, LabError> {
        let operation = match operation {
            Operation::CopyPages | Operation::Move => Operation::Copy,
            Operation::ZeroPages => Operation::Zero,
            Operation::Compare => Operation::Equal,
            other => other,
        };
        if let Some(known) = self.0.get(&(operation, level)) {
            return Ok(*known);
        }
        let plan = Plan::default();
        let rows = match measure(operation, level, bench, &plan, "ceiling", observer) {
            // A level too small here for two operands has no ceiling.
            Err(LabError::Measure(MeasureError::DoesNotFit { .. })) => Vec::new(),
            other => other?.unwrap_or_default(),
        };
        let best = rows.iter().map(speed).fold(0.0, f64::max);
        self.0.insert((operation, level), best);
        Ok(best)
    }
}

/// GB/s of a row's operation.
fn speed(row: &Row) -> f64 {
    row.cell.size as f64 / stats::median(&row.operation_ns)
}

/// Adds to a row how near the limit it is.
pub(super) fn relate(row: &mut Row, ceiling: f64, clock: &Clock) {
    row.extra.insert(BYTES_PER_CYCLE.into(), speed(row) / clock.core_ghz());
    if ceiling > 0.0 {
        row.extra.insert(CEILING_GBPS.into(), ceiling);
        row.extra.insert(CEILING_SHARE.into(), speed(row) / ceiling);
    }
}

fn measure(
    operation: Operation,
    level: Level,
    bench: &mut Bench,
    plan: &Plan,
    experiment: &str,
    observer: &mut dyn Observer,
) -> Result<Option<Vec<Row>>, LabError> {
    let size = default_sizes(level, true, &bench.machine.caches)[0];
    let routines = straight(operation, bench);
    let question = Question {
        experiment,
        operation,
        size,
        state: placed(level, level),
        routines: &routines,
        plan: plan.clone(),
        verify: false,
    };
    let answer = bench.ask(&question, observer)?;
    Ok((!answer.interrupted).then_some(answer.rows))
}

/// The experiment: every operation at every level.
pub(super) fn run(experiment: &Experiment, setting: &mut Setting<'_>) -> Result<Finish, LabError> {
    let operations = [Operation::Equal, Operation::Fill, Operation::Zero, Operation::Copy];
    setting.observer.begin(experiment.name, (operations.len() * Level::ALL.len()) as f64);
    let plan = setting.plan(false);
    for level in Level::ALL {
        for operation in operations {
            let measured =
                measure(operation, level, setting.bench, &plan, experiment.name, setting.observer);
            let mut rows = match measured {
                Ok(Some(rows)) => rows,
                Ok(None) => return Ok(Finish::Interrupted),
                Err(LabError::Measure(error @ MeasureError::DoesNotFit { .. })) => {
                    (setting.notes)(format!("skipped {operation}: {error}"))?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let best = rows.iter().map(speed).fold(0.0, f64::max);
            for row in &mut rows {
                relate(row, best, &setting.bench.clock);
                (setting.rows)(row)?;
            }
            let size = rows.first().map_or(0, |row| row.cell.size as usize);
            setting.observer.advance(&format!("{operation} {} {level}", short_bytes(size)), 1.0);
        }
    }
    Ok(Finish::Complete)
}
