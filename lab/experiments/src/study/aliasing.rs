//! `aliasing` (002.11): what it costs when destination and source agree, or nearly agree, in their
//! low twelve bits, and on which pages.
//!
//! A load whose low twelve address bits match a store shortly before it may wait for that store
//! (Intel Optimization Reference Manual, "4-KByte aliasing"); AMD's `rep movsb` has a slow case of
//! its own, a destination less than a line above the source modulo a page. An offset also changes
//! alignment, so the row of an offset is compared with the same kernel half a page further on, where
//! it has the same alignment and is far from any alias; both take turns in one cell.

use crate::prelude::*;

/// State: copies at an offset.
pub(super) const ALIASED: &str = "aliased";
/// State: copies whose destination is a power of two above the source.
pub(super) const POWER: &str = "power of two";
/// State: zeroing on pages of one size.
pub(super) const PAGES: &str = "pages";

/// Half a page: no kernel here has a load within two KiB of a store that went before.
const FAR: usize = PAGE_SIZE / 2;

pub(super) fn figures() -> Vec<Figure> {
    let by_offset = |title| Figure::curve(title, OFFSET, ALIAS_RATIO);
    let aliased = "Time over the same alignment half a page further on, by destination minus source \
                   modulo 4 KiB";
    let power = "The same with the destination a power of two above the source";
    let zeroed = Figure::bars("Zeroing on 4 KiB and on 2 MiB pages", "gbps");
    vec![
        by_offset(aliased).by(&["destination", PAGE_BYTES]).of(ALIASED),
        by_offset(power).by(&[DISTANCE]).of(POWER),
        zeroed.by(&["destination", PAGE_BYTES]).of(PAGES),
    ]
}

fn offsets(quick: bool) -> &'static [usize] {
    if quick {
        &[0, 1, 16, 32, 64, 256, 1024]
    } else {
        &[0, 1, 4, 8, 16, 32, 48, 63, 64, 96, 128, 192, 256, 512, 1024, 4032]
    }
}

/// An offset of the same alignment, far from its alias.
const fn twin(offset: usize) -> usize {
    FAR + offset % 64
}

/// Offsets and their twins, each once.
fn shifts(quick: bool) -> Vec<usize> {
    let mut shifts = offsets(quick).to_vec();
    shifts.extend(offsets(quick).iter().map(|offset| twin(*offset)));
    shifts.sort_unstable();
    shifts.dedup();
    shifts
}

const POLICIES: [(PagePolicy, usize); 2] =
    [(PagePolicy::Huge, HUGE_PAGE), (PagePolicy::Small, PAGE_SIZE)];

pub(super) fn run(setting: &mut Setting) -> Result {
    let vector = widest_class(setting.bench.features);
    let quick = setting.options.quick;
    let copies = field(setting, Operation::Copy, |kernel: &Kernel| {
        matches!(kernel.technique(), "rep.movsb" | "rep.movsb.aligned" | "gpr64" | "sse2")
            || (is_plain(kernel) && kernel.registers == vector)
    })?;
    let zeros = field(setting, Operation::Zero, |kernel: &Kernel| {
        matches!(kernel.technique(), "rep.stosb" | "clzero")
            || (is_plain(kernel) && kernel.registers == vector)
    })?;
    at_least_one([&copies, &zeros])?;
    let levels = setting.placements_or(Level::ALL);
    let powers: Vec<usize> = match (setting.options.placements.is_empty(), quick) {
        (false, _) => Vec::new(),
        (true, true) => vec![14, 16, 20],
        (true, false) => (14..=24).step_by(2).collect(),
    };
    setting.begin((2 * levels.len()) as f64 + powers.len() as f64);
    for (pages, page_bytes) in POLICIES {
        for &(source, destination) in &levels {
            for size in sizes(setting, source.min(destination)) {
                let axes = [(PAGE_BYTES, page_bytes as f64)];
                let base = Cell { pages, ..Cell::placed(source, destination) };
                let aliased = Cell {
                    label: ALIASED.into(),
                    source: Placement::at(source, 0),
                    ..base.clone()
                };
                copied(setting, &copies, size, aliased, &axes)?;
                // Zeroing has no source to alias with: the pages alone.
                if zeros.len() > 1 || setting.options.kernels.is_none() {
                    let task =
                        setting.task(Operation::Zero, size, Cell { label: PAGES.into(), ..base });
                    setting.record(&task, &zeros, &axes)?;
                }
            }
            let text = format!("{source}:{destination}, {} pages", bytes(page_bytes));
            setting.out.advance(&text, 1.0);
        }
    }
    for power in powers {
        // Both operands and the largest shift lie within the smallest distance.
        let size = (1 << 14) - 2 * PAGE_SIZE;
        let mut cell = Cell { apart: 1 << power, ..Cell::reused(POWER) };
        cell.source.offset = 0;
        let axes = [(DISTANCE, (1_u64 << power) as f64)];
        copied(setting, &copies, size, cell, &axes)?;
        setting.out.advance(&format!("destination 2^{power} above"), 1.0);
    }
    Ok(())
}

/// The user's sizes, or one per level: whole pages, so that the operands' distance holds.
fn sizes(setting: &Setting, level: Level) -> Vec<usize> {
    let usual = default_sizes(level, true, &setting.bench.machine.caches)[0];
    setting.sizes_or([usual.min(1 << 20)])
}

/// Every copy at every shift of the destination.
fn copied(
    setting: &mut Setting,
    copies: &[Routine],
    size: usize,
    cell: Cell,
    axes: &[(&str, f64)],
) -> Result {
    if copies.len() == 1 && setting.options.kernels.is_some() {
        return Ok(());
    }
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
                .checked(move |place| {
                    is_copied(&shifted(place)).map_err(|what| format!("{what} at offset {shift}"))
                })
                .variant(routine, reference, &format!(", offset {}", twin(shift)));
            calls.push(call.told(move |mut row| {
                row.cell.size = size as u64;
                let cost = row.ratio.map(|ratio| (ALIAS_RATIO, ratio.median));
                at(at(row, axes), &[(OFFSET, shift as f64)]).with(cost.as_slice())
            }));
        }
    }
    let asked = cell.pages;
    let task = setting.task(Operation::Copy, size + PAGE_SIZE, cell);
    let Some((found, rows)) = setting.told(&task, calls)? else { return Ok(()) };
    note_pages(setting, asked, found.huge)?;
    setting.out.rows(rows)
}

fn note_pages(setting: &mut Setting, asked: PagePolicy, huge: Option<f64>) -> Result {
    let text = match (asked, huge) {
        (PagePolicy::Huge, Some(part)) if part < 0.9 => format!(
            "huge pages were asked for and back {:.0} % of the operands: rows of 2 MiB pages are not what they say (cause: /sys/kernel/mm/transparent_hugepage/enabled, or no free huge pages)",
            part * 100.0
        ),
        (PagePolicy::Small, Some(part)) if part > 0.1 => {
            format!("small pages were asked for, but {:.0} % are huge", part * 100.0)
        }
        _ => return Ok(()),
    };
    setting.out.note(text)
}
