//! `values`.

mod measure;

use crate::experiment::{Experiment, PLAIN};
use crate::tables::*;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "values",
    about: "does the value that is copied or stored matter: zeros, ones, random bytes, denormals?",
    seeds: &["002.12"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    tables: Some(|rows| VALUES_STORED.tables(rows)),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};

/// Kernels, here and in `page-colour`, against what is stored, in GB/s, copies and fills separately.
pub(crate) const VALUES_STORED: Grid = Grid {
    caption: |row| {
        let (part, place) = (part_of(row), row.cell.levels().unwrap_or_default());
        sized(row, format!("{part}, {}, {place}: GB/s", bytes(row.cell.size)))
    },
    column: |row| {
        let head = row.cell.state.trim_start_matches(part_of(row)).trim_start();
        Some((0.0, head.to_owned()))
    },
    legend: "in turn: the value and 0xA5 alternate over the same bytes; the mean of the two",
    asks: |row| row.cell.state.ends_with(measure::IN_TURN),
    proofs: true,
    ..Grid::PLAIN
};

/// Copying or storing.
fn part_of(row: &Row) -> &str {
    row.cell.state.split(' ').next().unwrap_or_default()
}
