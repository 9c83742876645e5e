//! `jumps`.

mod measure;
mod say;

use crate::experiment::{Experiment, Flag, PLAIN, Serves};
use crate::tables::*;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "jumps",
    about: "what a taken jump costs a call, by the place of the code in its line",
    seeds: &["002.16"],
    operations: &[Operation::Copy],
    refuses: &[
        (Flag::Kernels, "it makes the code that it calls"),
        (Flag::Size, "its calls have 32 bytes"),
        (Flag::Residency, "its buffers are warm"),
    ],
    say: Some(say::verdicts),
    tables: Some(|rows| JUMPS.tables(rows)),
    figures: measure::figures,
    today: &[],
    serves: Serves::Library,
    run: measure::run,
    ..PLAIN
};

/// Jumps against places, in ns.
const JUMPS: Grid = Grid {
    caption: |row| sized(row, what(row) + " behind taken jumps: ns"),
    lines: ("behind", candidate),
    column: |row| {
        let place = axis(row, OFFSET);
        Some((place, format!("+{place} B")))
    },
    cell: |row| format!("{:.2}", row.median_ns()),
    legend: "+16 B: the code begins 16 bytes into a line of 64",
    ..Grid::PLAIN
};
