//! `extent`: zeroing and copying as one call over a large extent against page by page.
//!
//! Seed 003: "zeroing large consecutive areas of memory is more efficient than zeroing page size
//! chunks". Two causes are told apart: what each call costs (pages in ascending order), and what a
//! free list's order costs (the same pages shuffled). All four ways of one kernel take turns on the
//! same extent and are compared with its one call.

use super::{STUDY, Step, measured};
use crate::prelude::*;
use std::rc::Rc;

/// Axis: 1 where the pieces come in random order.
const SHUFFLED: &str = "shuffled";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "extent",
    about: "zeroing and copying in one large call, by 2 MiB, by 4 KiB, in order or shuffled",
    seeds: &["002.7", "003.2"],
    operations: &[Operation::Zero, Operation::Copy],
    takes: &["--kernels", "--size"],
    tables: |rows| EXTENTS.tables(rows),
    figures,
    run: Some(run),
    ..STUDY
};

/// Kernels against the way an extent is covered, in GB/s and over one call.
const EXTENTS: Grid = Grid {
    caption: |row| sized(row, what(row) + ": GB/s (time over one call)"),
    column: |row| {
        let chunk = axis(row, CHUNK) as u64;
        let head = match axis(row, SHUFFLED) == 1.0 {
            _ if chunk == row.cell.size => "one call".to_owned(),
            true => format!("by {} shuffled", bytes(chunk)),
            false => format!("by {}", bytes(chunk)),
        };
        Some((0.0, head))
    },
    cell: |row| if axis(row, CHUNK) as u64 == row.cell.size { gbps(row) } else { speed(row) },
    legend: "~: cannot tell it from 1; shuffled: every page once, in random order",
    ..Grid::PLAIN
};

fn figures() -> Vec<Figure> {
    let title = "Speed by the bytes of one call";
    vec![Figure::curve(title, CHUNK, "gbps").by(&[SHUFFLED, "size"])]
}

fn run(setting: &mut Setting) -> Result {
    let vector = widest_class(setting.bench.features);
    let quick = setting.options.quick;
    let wanted = |kernel: &Kernel| {
        let modern = is_plain(kernel) && kernel.registers == vector;
        let integer = matches!(kernel.technique(), "rep.stosb" | "rep.movsb" | "clzero");
        let period = !quick
            && (matches!(kernel.technique(), "gpr64" | "gpr64.nt")
                || (is_plain(kernel) && kernel.registers == RegisterClass::Xmm));
        modern || integer || period
    };
    let mut steps = Vec::new();
    for routines in fields(setting, [Operation::Zero, Operation::Copy], wanted)? {
        let operation = routines[0].function.operation();
        for size in sizes(setting, operation)? {
            steps.push(cover(setting, operation, &routines, size));
        }
    }
    measured(setting, steps)
}

/// 1 GiB per call, or what the budget has for as many operands; less when quick, though always what
/// no cache holds. What was cut is said.
fn sizes(setting: &mut Setting, operation: Operation) -> Result<Vec<usize>> {
    let operands = if operation == Operation::Copy { 2 } else { 1 };
    // Each operand is rounded up to whole huge pages.
    let most =
        (MemoryBudget::process().limit() / operands).saturating_sub(HUGE_PAGE) & !(HUGE_PAGE - 1);
    let asked = &setting.options.sizes;
    if !asked.is_empty() {
        let is_odd = |size: &&usize| !size.is_multiple_of(PAGE_SIZE) || **size < 2 * PAGE_SIZE;
        return match asked.iter().find(is_odd) {
            None => Ok(asked.clone()),
            Some(found) => nothing(format!(
                "an extent of {found} bytes; accepted: two 4096-byte pages or more, whole ones"
            )),
        };
    }
    let dram = setting.bench.machine.caches.dram_bytes().max(64 << 20);
    // Quick: what all operands together need to leave every cache behind.
    let wanted = if setting.options.quick { dram / operands } else { 1 << 30 };
    let size = wanted.min(most);
    if size < wanted {
        setting.out.note(format!(
            "{operation} covers {size} bytes instead of {wanted}: the memory budget has no more (--memory raises it up to a quarter of RAM)"
        ))?;
    }
    Ok(vec![size])
}

/// Every routine in one call, in larger and smaller pieces, and in shuffled ones.
fn cover(setting: &Setting, operation: Operation, routines: &[Routine], size: usize) -> Step {
    let smaller = [HUGE_PAGE, PAGE_SIZE].into_iter();
    let smaller = smaller.filter(|chunk| *chunk < size && size.is_multiple_of(*chunk));
    let ways = std::iter::once(size).chain(smaller).map(|chunk| (chunk, false));
    let ways: Vec<_> = ways.chain([(PAGE_SIZE, true)]).collect();
    let mut order: Vec<u32> = (0..(size / PAGE_SIZE) as u32).collect();
    fastrand::Rng::with_seed(setting.bench.seed).shuffle(&mut order);
    let order: Rc<[u32]> = order.into();
    let mut calls = Vec::new();
    for (routine, first) in routines.iter().zip((0..).step_by(ways.len())) {
        for &(chunk, shuffled) in &ways {
            let order = Rc::clone(&order);
            let pieces = move |place: &Place| {
                let (Place { dst, src, n }, order) = (*place, Rc::clone(&order));
                (0..n / chunk).map(move |nth| {
                    let at = if shuffled { order[nth] as usize } else { nth } * chunk;
                    Place { dst: dst.wrapping_add(at), src: src.wrapping_add(at), n: chunk }
                })
            };
            let name = format!("{} by {}", routine.name, bytes(chunk));
            let axes = [(CHUNK, chunk as f64), (SHUFFLED, flag(shuffled))];
            // That every piece is covered is seen here.
            let call = Call::on(name, routine.function, pieces)
                .checked(if operation == Operation::Zero { is_zeroed } else { is_copied });
            let call = call.variant(routine, first, ", one call");
            calls.push(call.told(move |row| at(row, &axes)));
        }
    }
    Step::new(setting.task(operation, size, Cell::reused("extent")), calls)
}
