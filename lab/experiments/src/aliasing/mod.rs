//! `aliasing`.

mod measure;

use crate::experiment::{Experiment, PLAIN};
use crate::tables::*;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "aliasing",
    about: "source and destination nearly equal modulo 4 KiB; 4 KiB against 2 MiB pages",
    seeds: &["002.11"],
    operations: &[Operation::Copy, Operation::Zero],
    tables: Some(|rows| [OFFSETS.tables(rows), PAGES.tables(rows)].concat()),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
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
    of: |row| row.cell.state == measure::PAGES,
    caption: |row| {
        let place = row.cell.destination.map_or("", Residency::name);
        sized(row, format!("{}, {place}: GB/s by page", what(row)))
    },
    column: |row| row.axis(PAGE_BYTES).map(|page| (page, size_text(page))),
    legend: "pages of one size after the other, not in turns",
    ..Grid::PLAIN
};
