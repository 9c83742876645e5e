//! `sticky`.

mod measure;

use crate::experiment::{Experiment, Flag, PLAIN};
use crate::tables::*;
use cachewise_kernels::Operation;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "sticky",
    about: "how many calls until a routine is fast again after non-temporal stores to its destination",
    seeds: &["001.2"],
    operations: &[Operation::Copy, Operation::Fill, Operation::Zero],
    refuses: &[(Flag::Residency, "where the destination is left is what is measured")],
    tables: Some(|rows| CALLS.tables(rows)),
    figures: measure::figures,
    run: measure::run,
    ..PLAIN
};

/// Routines and who wrote before against the calls in a row, in GB/s.
const CALLS: Grid = Grid {
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
