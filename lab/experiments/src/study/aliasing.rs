//! `aliasing` (002.11): what it costs when destination and source agree, or nearly agree, in their
//! low twelve bits, and on which pages.
//!
//! A load whose low twelve address bits match a store shortly before it may wait for that store
//! (Intel Optimization Reference Manual, "4-KByte aliasing"); AMD's `rep movsb` has a slow case of
//! its own, a destination less than a line above the source modulo a page. An offset also changes
//! alignment, so the row of an offset is compared with the same kernel half a page further on, where
//! it has the same alignment and is far from any alias; both take turns in one cell.

use super::{STUDY, Step, measured, sizes_at};
use crate::bench::CellOutcome;
use crate::prelude::*;

/// Axis: destination minus source, modulo a page.
const OFFSET: &str = "offset";
/// Axis: the power of two by which the destination lies above the source, beside the offset.
const DISTANCE: &str = "distance";
/// Figure: time over the same kernel's at the same alignment, half a page further on.
const ALIAS_RATIO: &str = "alias_ratio";

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "aliasing",
    about: "source and destination nearly equal modulo 4 KiB; 4 KiB against 2 MiB pages",
    seeds: &["002.11"],
    operations: &[Operation::Copy, Operation::Zero],
    tables: |rows| [OFFSETS.tables(rows), PAGES.tables(rows)].concat(),
    figures,
    run: Some(|setting| {
        let steps = steps(setting)?;
        measured(setting, steps)
    }),
    ..STUDY
};

/// Kernels against offsets, as time over the twin half a page further on.
const OFFSETS: Grid =
    Grid {
        of: |row| row.cell.axes.contains_key(OFFSET),
        caption: |row| {
            let mut caption = what(row);
            caption.extend(row.cell.levels().map(|levels| format!(", {levels}")));
            caption.extend(row.axis(PAGE_BYTES).map(|page| format!(", {} pages", size_text(page))));
            caption.extend(row.axis(DISTANCE).map(|distance| {
                format!(", destination {} above the source and", size_text(distance))
            }));
            sized(row, caption + ": time over the same alignment half a page away, by offset")
        },
        column: |row| {
            // From half a page to a line further are the twins the others are compared with.
            let offset = row.axis(OFFSET).filter(|offset| !(2048.0..2112.0).contains(offset))?;
            Some((offset, format!("+{offset}")))
        },
        cell: ratio_or_none,
        legend: "offset: destination minus source modulo 4 KiB; ~: cannot tell it from 1",
        proofs: true,
        ..Grid::PLAIN
    };

/// Zeroing by pages of either size.
const PAGES: Grid = Grid {
    of: |row| row.cell.state == ZEROED_PAGES,
    caption: |row| {
        let place = row.cell.destination.map_or("", Residency::name);
        sized(row, format!("{}, {place}: GB/s by page", what(row)))
    },
    column: |row| row.axis(PAGE_BYTES).map(|page| (page, size_text(page))),
    legend: "pages of one size after the other, not in turns",
    ..Grid::PLAIN
};

/// State: copies at an offset.
const ALIASED: &str = "aliased";
/// State: copies whose destination is a power of two above the source.
const POWER: &str = "power of two";
/// State: zeroing on pages of one size.
const ZEROED_PAGES: &str = "pages";

/// Half a page: no kernel here has a load within two KiB of a store that went before.
const FAR: usize = PAGE_SIZE / 2;

const OFFSETS_TRIED: [usize; 16] =
    [0, 1, 16, 32, 64, 256, 1024, 4, 8, 48, 63, 96, 128, 192, 512, 4032];
/// Number of offsets, from the first on, that the short run tries.
const QUICK: usize = 7;

fn figures() -> Vec<Figure> {
    let by_offset = |title| Figure::curve(title, OFFSET, ALIAS_RATIO);
    let aliased = "Time over the same alignment half a page further on, by destination minus source \
                   modulo 4 KiB";
    let power = "The same with the destination a power of two above the source";
    let zeroed = Figure::bars("Zeroing on 4 KiB and on 2 MiB pages", "gbps");
    vec![
        by_offset(aliased).by(&["destination", PAGE_BYTES]).of(ALIASED),
        by_offset(power).by(&[DISTANCE]).of(POWER),
        zeroed.by(&["destination", PAGE_BYTES]).of(ZEROED_PAGES),
    ]
}

/// An offset of the same alignment, far from its alias.
const fn twin(offset: usize) -> usize {
    FAR + offset % 64
}

/// Offsets and their twins, each once.
fn shifts(quick: bool) -> Vec<usize> {
    let offsets = &OFFSETS_TRIED[..if quick { QUICK } else { OFFSETS_TRIED.len() }];
    let mut shifts: Vec<usize> = offsets.iter().flat_map(|at| [*at, twin(*at)]).collect();
    shifts.sort_unstable();
    shifts.dedup();
    shifts
}

fn steps(setting: &mut Setting) -> Result<Vec<Step>> {
    let vector = widest_class(setting.bench.features);
    let quick = setting.options.quick;
    let is_widest = |kernel: &Kernel| is_plain(kernel) && kernel.registers == vector;
    let copies = field(setting, Operation::Copy, |kernel: &Kernel| {
        let named =
            matches!(kernel.technique(), "rep.movsb" | "rep.movsb.aligned" | "gpr64" | "sse2");
        named || is_widest(kernel)
    })?;
    let zeros = field(setting, Operation::Zero, |kernel: &Kernel| {
        matches!(kernel.technique(), "rep.stosb" | "clzero") || is_widest(kernel)
    })?;
    at_least_one([&copies, &zeros])?;
    // A pattern may name kernels of one operation only.
    let takes_part = |routines: &[Routine]| routines.len() > 1 || setting.options.kernels.is_none();
    let mut steps = Vec::new();
    for (pages, page_bytes) in [(PagePolicy::Huge, HUGE_PAGE), (PagePolicy::Small, PAGE_SIZE)] {
        for levels in setting.placements_or(Level::ALL) {
            // Whole pages, so that the operands' distance holds.
            for size in sizes_at(setting, levels, 1).into_iter().map(|size| size.min(1 << 20)) {
                let axes = (PAGE_BYTES, page_bytes as f64);
                let base = Cell { pages, ..Cell::placed(levels.0, levels.1) };
                if takes_part(&copies) {
                    let (label, source) = (ALIASED.into(), Placement::at(levels.0, 0));
                    let cell = Cell { label, source, ..base.clone() };
                    steps.push(copied(setting, &copies, size, cell, axes));
                }
                if takes_part(&zeros) {
                    let calls = Call::of_all(&zeros, true).into_iter();
                    let calls = calls.map(|call| call.told(move |row| at(row, &[axes])));
                    let cell = Cell { label: ZEROED_PAGES.into(), ..base };
                    steps.push(Step::new(
                        setting.task(Operation::Zero, size, cell),
                        calls.collect(),
                    ));
                }
            }
        }
    }
    let powers: &[usize] = if quick { &[14, 16, 20] } else { &[14, 16, 18, 20, 22, 24] };
    if setting.options.placements.is_empty() && takes_part(&copies) {
        for power in powers {
            // Both operands and the largest shift lie within the smallest distance.
            let size = (1 << 14) - 2 * PAGE_SIZE;
            let mut cell = Cell { apart: 1 << power, ..Cell::reused(POWER) };
            cell.source.offset = 0;
            let axes = (DISTANCE, (1_u64 << power) as f64);
            steps.push(copied(setting, &copies, size, cell, axes));
        }
    }
    Ok(steps)
}

/// Every copy at every shift of the destination.
fn copied(
    setting: &Setting,
    copies: &[Routine],
    size: usize,
    cell: Cell,
    axes: (&'static str, f64),
) -> Step {
    let shifts = shifts(setting.options.quick);
    let nth = |shift: usize| shifts.iter().position(|known| *known == shift).unwrap_or(0);
    let mut calls = Vec::new();
    for (routine, first) in copies.iter().zip((0..).step_by(shifts.len())) {
        for &shift in &shifts {
            let is_twin = (FAR..FAR + 64).contains(&shift);
            let reference = first + nth(if is_twin { shift } else { twin(shift) });
            let shifted = move |place: &Place| {
                // The slots are a page longer than the size, and the shift is below a page.
                Place { dst: place.dst.wrapping_add(shift), n: size, ..*place }
            };
            let name = format!("{}+{shift}", routine.name);
            let call = Call::on(name, routine.function, move |place| [shifted(place)])
                .checked(move |place| is_copied(&shifted(place)))
                .variant(routine, reference, &format!(", offset {}", twin(shift)));
            calls.push(call.told(move |mut row| {
                row.cell.size = size as u64;
                let cost = row.ratio.map(|ratio| (ALIAS_RATIO, ratio.median));
                at(row, &[axes, (OFFSET, shift as f64)]).with(cost.as_slice())
            }));
        }
    }
    let task = setting.task(Operation::Copy, size + PAGE_SIZE, cell);
    Step { remark: backing, ..Step::new(task, calls) }
}

/// A remark where the pages are not those that were asked for.
fn backing(task: &Task, found: &CellOutcome) -> Option<String> {
    let (asked, part) = (task.cell.pages, found.huge?);
    let is_other = if asked == PagePolicy::Huge { part < 0.9 } else { part > 0.1 };
    is_other.then(|| {
        format!(
            "{asked:?} pages were asked for, and {:.0} % are huge (cause: \
             /sys/kernel/mm/transparent_hugepage/enabled, or no free huge pages)",
            part * 100.0
        )
    })
}
