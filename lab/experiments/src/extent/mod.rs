//! `extent`.

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};
use crate::tables::*;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "extent",
    about: "zeroing and copying in one large call, by 2 MiB, by 4 KiB, in order or shuffled",
    seeds: &["002.7", "003.2"],
    operations: &[Operation::Zero, Operation::Copy],
    refuses: &[(Flag::Residency, "an extent lies where its own last pass left it")],
    tables: Some(|rows| EXTENTS.tables(rows)),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
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
