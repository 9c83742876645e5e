//! `copy-matrix`, `zero-matrix`, `compare-matrix`: kernels x sizes x residency, the operation alone.
//! `whole-cost`: the same with the reader and the bystander.

use crate::prelude::*;
use crate::roofline::speeds;
use crate::roofline::{Ceilings, related};

pub(crate) const COPY_MATRIX: Experiment = Experiment {
    name: "copy-matrix",
    about: "every copy kernel and libc at every residency, with the columns of document 002",
    seeds: &["000.1-6", "002.1-8", "002.10", "002.15"],
    operations: COPYING,
    takes: &["--kernels", "--size", "--residency", "--op"],
    figures: speeds,
    run: Some(|setting| operation_alone(setting, COPYING)),
    ..PLAIN
};

pub(crate) const ZERO_MATRIX: Experiment = Experiment {
    name: "zero-matrix",
    about: "every zero and fill kernel and libc at every residency",
    seeds: &["000.1-6", "002.13", "003.2"],
    operations: FILLING,
    takes: &["--kernels", "--size", "--residency", "--op"],
    figures: speeds,
    run: Some(|setting| operation_alone(setting, FILLING)),
    ..PLAIN
};

pub(crate) const COMPARE_MATRIX: Experiment = Experiment {
    name: "compare-matrix",
    about: "every compare and equal kernel and libc on equal buffers, at every residency",
    seeds: &["004.1-5"],
    operations: COMPARING,
    takes: &["--kernels", "--size", "--residency", "--op"],
    figures: speeds,
    run: Some(|setting| operation_alone(setting, COMPARING)),
    ..PLAIN
};

pub(crate) const WHOLE_COST: Experiment = Experiment {
    name: "whole-cost",
    about: "copy, zero and fill, with their reader and with a bystander whose lines they evict",
    seeds: &["000.11", "001.1-6"],
    operations: WRITING,
    takes: &["--kernels", "--size", "--residency", "--op"],
    figures: costs,
    run: Some(whole_cost),
    ..PLAIN
};

/// The operation alone, at placed and proved operands.
fn operation_alone(setting: &mut Setting, operations: &[Operation]) -> Result {
    run(setting, operations, |_, cell, _| cell)
}

/// The operation, a reader of the whole destination, and a bystander.
fn whole_cost(setting: &mut Setting) -> Result {
    run(setting, WRITING, |setting, cell, size| Cell {
        bystander: Some(setting.bench.bystander_bytes(size)),
        ..cell.read_after(Delay::None, 1.0)
    })
}

const COPYING: &[Operation] = &[Operation::Copy, Operation::Move, Operation::CopyPages];
const FILLING: &[Operation] = &[Operation::Zero, Operation::Fill, Operation::ZeroPages];
const COMPARING: &[Operation] = &[Operation::Compare, Operation::Equal];
/// Operations with a destination that is read later, by the byte.
const WRITING: &[Operation] = &[Operation::Copy, Operation::Zero, Operation::Fill];

const PANELS: [&str; 3] = ["source", "destination", "size"];

fn costs() -> Vec<Figure> {
    let title = "Whole cost: the operation, the later reader, the lines that the bystander lost";
    vec![Figure::bars(title, "cost").by(&PANELS)]
}

fn run(
    setting: &mut Setting,
    operations: &[Operation],
    followed: impl Fn(&Setting, Cell, usize) -> Cell,
) -> Result {
    let fields = chosen(setting, operations)?;
    let cells =
        setting.cells().into_iter().flat_map(|cell| fields.iter().map(move |of| (cell, of)));
    let cells: Vec<_> = cells.collect();
    // Every sample takes about as long as the clock demands, unless the operation is longer.
    let weight = |((_, _, size), (_, routines)): &((Level, Level, usize), &Field)| {
        (*size as f64).max(4e5) * routines.len() as f64
    };
    let mut ceilings = Ceilings::default();
    setting.through(cells, weight, |setting, (cell, (operation, routines))| {
        let (source, destination, size) = cell;
        let text = format!("{operation} {} {source}:{destination}", bytes(size));
        let pages = matches!(operation, Operation::CopyPages | Operation::ZeroPages);
        if pages && !(size.is_multiple_of(PAGE_SIZE) && (size / PAGE_SIZE).is_power_of_two()) {
            let note = format!("skipped {operation} of {size} bytes: not 2^order pages");
            setting.out.note(note)?;
            return Ok(text);
        }
        let cell = followed(setting, Cell::placed(source, destination), size);
        let task = setting.task(*operation, size, cell);
        if let Some((_, rows)) = setting.told(&task, Call::of_all(routines, true))? {
            let ceiling = ceilings.of(*operation, source.max(destination), setting)?;
            let clock = setting.bench.clock;
            setting.out.rows(related(rows, ceiling, &clock))?;
        }
        Ok(text)
    })
}

type Field = (Operation, Vec<Routine>);

/// The candidates of each operation: libc, then the chosen kernels; what this CPU lacks is noted.
fn chosen(setting: &mut Setting, operations: &[Operation]) -> Result<Vec<Field>> {
    let all = || TABLE.iter().filter(|kernel| operations.contains(&kernel.operation())).collect();
    let here = asked_or(setting, operations, all)?;
    let named = setting.options.kernels.is_some();
    let mut fields = Vec::new();
    for operation in setting.operations_of(operations) {
        // The byte-wise reference is a hundred times slower than anything; it competes when named.
        let of_it: Vec<Routine> = here
            .iter()
            .filter(|kernel| kernel.operation() == operation)
            .filter(|kernel| named || kernel.technique() != "bytes")
            .map(|kernel| Routine::from(*kernel))
            .collect();
        if !of_it.is_empty() {
            fields.push((operation, [vec![libc_reference(operation)], of_it].concat()));
        }
    }
    Ok(fields)
}
