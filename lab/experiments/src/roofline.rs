//! `roofline`: what this machine can read, write, write non-temporally and copy, per level.
//!
//! A ceiling is what the best of a few straight kernels reaches on this core, not a data sheet's
//! figure: reading is two streams of equal bytes compared, which is bound by loads; writing is a
//! fill. Other experiments use the ceilings to say how near the limit a result is.

use crate::prelude::*;
use std::collections::BTreeMap;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "roofline",
    about: "how fast each level can be read, written, written non-temporally and copied",
    seeds: &["002.15"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Equal],
    figures: speeds,
    run: Some(run),
    ..PLAIN
};

/// Kernels that set the ceiling of an operation: the straight members of each vector family and
/// the string instruction.
fn straight(operation: Operation, bench: &Bench) -> Vec<Routine> {
    let straight = "sse2 avx avx2 avx512 sse2.nt avx.nt avx512.nt rep.movsb rep.stosb clzero gpr64";
    let wanted = |kernel: &&Kernel| {
        kernel.operation() == operation
            && kernel.runs_on(bench.features)
            && straight.split(' ').any(|name| name == kernel.technique())
    };
    std::iter::once(libc_reference(operation))
        .chain(TABLE.iter().filter(wanted).map(Routine::from))
        .collect()
}

fn task(operation: Operation, level: Level, bench: &Bench, plan: Plan) -> Task {
    let size = default_sizes(level, true, &bench.machine.caches)[0];
    Task { operation, size, cell: Cell::placed(level, level), plan }
}

fn best(rows: &[Row]) -> f64 {
    rows.iter().map(Row::gbps).fold(0.0, f64::max)
}

/// Ceilings measured so far, GB/s by operation and level.
#[derive(Default)]
pub(crate) struct Ceilings(BTreeMap<(Operation, Level), f64>);

impl Ceilings {
    /// The ceiling of an operation at a level, measured when first asked for. Page operations have
    /// their byte operation's, a move its copy's.
    pub(crate) fn of(
        &mut self,
        operation: Operation,
        level: Level,
        setting: &mut Setting,
    ) -> Result<f64> {
        let operation = match operation {
            Operation::CopyPages | Operation::Move => Operation::Copy,
            Operation::ZeroPages => Operation::Zero,
            Operation::Compare => Operation::Equal,
            other => other,
        };
        if let Some(known) = self.0.get(&(operation, level)) {
            return Ok(*known);
        }
        let task = task(operation, level, setting.bench, Plan::default());
        let routines = straight(operation, setting.bench);
        let found = setting.bench.routines(&task, &routines, false, &|| setting.out.stopped());
        let best = match found {
            // A level too small here for two operands has no ceiling.
            Err(LabError::Measure(MeasureError::DoesNotFit { .. })) => 0.0,
            found => best(&found?.rows()),
        };
        self.0.insert((operation, level), best);
        Ok(best)
    }
}

/// Rows of a cell with how near the limit they are: one that passes the ceiling of the straight kernels is the
/// ceiling itself.
pub(crate) fn related(rows: Vec<Row>, ceiling: f64, clock: &Clock) -> Vec<Row> {
    let highest = ceiling.max(best(&rows));
    let with_share = |mut row: Row| {
        let speed = row.gbps();
        row.extra.insert("bytes_per_cycle".into(), speed / clock.core_ghz());
        if ceiling > 0.0 {
            row.extra.insert("ceiling_gbps".into(), highest);
            row.extra.insert("ceiling_share".into(), speed / highest);
        }
        row
    };
    rows.into_iter().map(with_share).collect()
}

/// The figure of every matrix whose operations are timed alone.
pub(crate) fn speeds() -> Vec<Figure> {
    vec![Figure::bars("Speed of the operation alone", "gbps").by(&[
        "source",
        "destination",
        "size",
    ])]
}

fn run(setting: &mut Setting) -> Result {
    let operations = [Operation::Equal, Operation::Fill, Operation::Zero, Operation::Copy];
    let cells = Level::ALL.into_iter().flat_map(|level| operations.map(|one| (level, one)));
    setting.through(cells.collect(), alike, |setting, (level, operation)| {
        let task = task(operation, level, setting.bench, setting.plan(false));
        let calls = Call::of_all(&straight(operation, setting.bench), true);
        if let Some((_, rows)) = setting.told(&task, calls)? {
            let (ceiling, clock) = (best(&rows), setting.bench.clock);
            setting.out.rows(related(rows, ceiling, &clock))?;
        }
        Ok(format!("{operation} {} {level}", bytes(task.size)))
    })
}
