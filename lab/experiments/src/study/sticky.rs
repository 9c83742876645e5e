//! `sticky`: who wrote the destination before, and how many calls in a row until it no longer matters.
//!
//! `rep movsb` and `rep stosb` may leave a destination in the level where they find it. A vector copy
//! brings it into a cache, a non-temporal one evicts it. So the speed of a routine, and of a C library
//! that calls it, may depend on who ran before, for as long as nobody else runs. Here every call of a
//! row of calls is timed alone, after temporal stores, after non-temporal ones, and after those and one
//! read of every line; the three take turns in one round.

use crate::prelude::*;
use cachewise_measure::verify::verify;

/// Axis: which of the calls in a row, from 1.
const CALL: &str = "call";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sticky",
    about: "how many calls until a routine is fast again after non-temporal stores to its destination",
    seeds: &["001.2"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    takes: &["--kernels", "--size"],
    tables: |rows| BY_CALL.tables(rows),
    figures,
    run: Some(run),
    ..super::STUDY
};

/// Routines and who wrote before against the calls in a row, in GB/s.
const BY_CALL: Grid = Grid {
    caption: |row| sized(row, format!("{}, {}: GB/s by call in a row", what(row), row.cell.state)),
    lines: ("routine", candidate),
    column: |row| row.axis(CALL).map(|call| (call, call.to_string())),
    cell: |row| gbps(row) + if is_slower(row) { "*" } else { "" },
    legend: "*: slower than the same call after temporal stores",
    asks: is_slower,
    ..Grid::PLAIN
};

fn is_slower(row: &Row) -> bool {
    row.verdict == Some(Verdict::Slower)
}

const CALLS: usize = 8;

/// Calls of the temporal kernel that bring the destination into a cache.
const WRITES_BEFORE: usize = 3;

/// The destination's distance from a page's start: not the source's, lest loads alias stores.
const DESTINATION_OFFSET: usize = 1088;

const OPERATIONS: [Operation; 3] = [Operation::Copy, Operation::Fill, Operation::Zero];

fn figures() -> Vec<Figure> {
    let title = "Speed of calls in a row, by who wrote before";
    vec![Figure::curve(title, CALL, "gbps").by(&["size", "state"])]
}

/// Half of the L1 to twice the L2: where a destination can be cached, and where it cannot.
fn sizes(setting: &Setting) -> Vec<usize> {
    let caches = &setting.bench.machine.caches;
    let (least, most) = (caches.l1d.bytes / 2, caches.l2.bytes * 2);
    let step = if setting.options.quick { 4 } else { 2 };
    let next = |size: &usize| (size * step <= most).then_some(size * step);
    setting.sizes_or(std::iter::successors(Some(least), next))
}

fn run(setting: &mut Setting) -> Result {
    let features = setting.bench.features;
    let operations = OPERATIONS.into_iter().filter(|one| widest(*one, features).is_some());
    let fields = fields(setting, operations, |kernel: &Kernel| {
        matches!(kernel.technique(), "rep.movsb" | "rep.stosb")
            || widest(kernel.operation(), features)
                .is_some_and(|(wide, _)| wide.name == kernel.name)
    })?;
    let sizes = sizes(setting);
    let cells = fields.iter().flat_map(|of| sizes.iter().map(move |size| (of, *size)));
    setting.through(cells.collect(), alike, |setting, (routines, size)| {
        let operation = routines[0].function.operation();
        match in_a_row(setting, operation, routines, size) {
            Ok(rows) => setting.out.rows(rows)?,
            Err(LabError::Measure(error @ MeasureError::OverBudget { .. })) => {
                setting.out.note(format!("skipped {operation} of {}: {error}", bytes(size)))?;
            }
            Err(error) => return Err(error),
        }
        Ok(format!("{operation} {}", bytes(size)))
    })
}

/// Every routine after every writer, one size.
fn in_a_row(
    setting: &Setting,
    operation: Operation,
    routines: &[Routine],
    size: usize,
) -> Result<Vec<Row>> {
    let Some((temporal, non_temporal)) = widest(operation, setting.bench.features) else {
        return Ok(Vec::new());
    };
    let (clock, seed) = (&setting.bench.clock, setting.bench.seed);
    let room = (size + DESTINATION_OFFSET).next_multiple_of(PAGE_SIZE);
    let arena = Arena::new(2 * room, PagePolicy::Huge, seed)?;
    let src = arena.as_mut_ptr();
    let place = [Place { dst: src.wrapping_add(room + DESTINATION_OFFSET), src, n: size }];
    for Routine { name, function } in routines {
        // SAFETY: n initialised bytes of the arena each, apart, that nobody else uses; this CPU runs it.
        let verified = unsafe { verify(function, place[0].dst, src, size) };
        verified.map_err(|wrong| LabError::WrongBytes(format!("{name}: {wrong}")))?;
    }
    let ways: Vec<(&Routine, usize)> = routines
        .iter()
        .flat_map(|routine| (0..AFTER.len()).map(move |after| (routine, after)))
        .collect();
    let mut times = vec![vec![Vec::new(); CALLS]; ways.len()];
    setting.in_turns(ways.len(), size, |way| {
        let (routine, after) = ways[way];
        (0..WRITES_BEFORE).for_each(|_| run_all(temporal.function, &place));
        if after > 0 {
            run_all(non_temporal.function, &place);
        }
        if after == 2 {
            // SAFETY: n initialised bytes of the arena, which nobody writes meanwhile.
            unsafe { Reader::every(place[0].dst, size, LINE) };
        }
        let callee = Callee::new(routine.function);
        for call in &mut times[way] {
            call.push(clock.time(|| callee.run(&place)));
        }
        Ok(())
    })?;
    let mut rows = Vec::new();
    for (way, (Routine { name, .. }, after)) in ways.into_iter().enumerate() {
        for (call, (found, cached)) in times[way].iter().zip(&times[way - after]).enumerate() {
            let cell = CellKey::new(operation.name(), size, AFTER[after]);
            let cell = cell.with(&[(CALL, (call + 1) as f64)]);
            let reference = match after {
                0 => name.clone(),
                _ => format!("{name}, {}", AFTER[0]),
            };
            rows.push(setting.compared(cell, (name, found), (&reference, cached)));
        }
    }
    Ok(rows)
}
