//! `vector-state`: nanoseconds of saving and restoring by component and state; then kernels against
//! sizes, with the faster integer kernel as 1; then integer work after a kernel.

use super::measure::{Held, REGISTERS, WORK_AFTER};
use crate::prelude::*;

/// `vector-state`: kernels against sizes, with the faster integer kernel as 1.
const BREAK_EVEN: Grid = Grid {
    of: |row| row.cell.state == super::measure::BREAK_EVEN,
    caption: |row| {
        let operation = &row.cell.operation;
        (format!("{operation}: time over the faster integer kernel's, by size"), None)
    },
    column: |row| Some((row.cell.size as f64, bytes(row.cell.size))),
    cell: |row| match row.median_ns() {
        ns if row.candidate == row.reference => format!("1 ({} ns)", significant(ns)),
        _ => ratio_or_none(row),
    },
    legend: "+: between saving and restoring the registers the kernel uses, which hold something (dirty) \
         or nothing (clean); ~: cannot tell it from 1",
    ..Grid::PLAIN
};

/// `vector-state`: integer work after a kernel.
const AFTER: Grid = Grid {
    of: |row| row.cell.state == WORK_AFTER,
    caption: |_| ("Integer work after a kernel: time over that after integers".to_owned(), None),
    lines: ("kernel", |row| row.candidate.split_once('.').map_or("", |(_, of)| of).to_owned()),
    column: |row| {
        let place = ["copy", "zero", "compare"].iter().position(|of| row.cell.operation == *of)?;
        Some((place as f64, row.cell.operation.clone()))
    },
    cell: |row| ratio_or_none(row),
    legend: "each after 3 ms without the kernel and 1 ms of it; ~: cannot tell it from 1",
    ..Grid::PLAIN
};

/// The costs, then one table per operation.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let saving: Vec<&Row> =
        rows.iter().filter(|row| row.cell.axes.contains_key(COMPONENTS)).collect();
    let costs = (!saving.is_empty()).then(|| costs(&saving));
    let tables = BREAK_EVEN.tables(rows).into_iter().chain(AFTER.tables(rows));
    costs.into_iter().chain(tables).collect()
}

fn costs(rows: &[&Row]) -> Table {
    let mut table = Table::of(
        "Saving and restoring registers, ns",
        "components | >bytes | instructions | >dirty | >unmodified | >clean | held when clean",
    );
    let key = |row: &Row| (axis(row, COMPONENTS) as u64, row.cell.size, row.candidate.clone());
    for ((components, size, candidate), of_one) in groups(rows.iter().copied(), key) {
        let figure = |held: Held, name: &str| {
            let state = format!("{REGISTERS}{}", held.name());
            of_one.iter().find(|row| row.cell.state == state.as_str())?.figure(name)
        };
        let net = |held| or_dash(figure(held, NET_NS), significant);
        let mut line = vec![component_names(components), size.to_string(), candidate];
        line.extend(Held::ALL.map(net));
        line.push(or_dash(figure(Held::Clean, HELD), |held| component_names(held as u64)));
        table.push(line);
    }
    table.remark(
        "dirty: every register modified before each save, which is subtracted; unmodified: as the \
         last restore left them; clean: in their initial state",
    );
    table.remark("bytes: written at most; held: what the CPU still counted as in use (XSTATE_BV)");
    table
}
