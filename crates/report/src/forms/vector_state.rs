//! `vector-state`: nanoseconds of saving and restoring by component and state; then kernels against
//! sizes, with the faster integer kernel as 1.

use super::*;

/// The costs, then one table per operation.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let mut tables = Vec::new();
    let saving: Vec<&Row> =
        rows.iter().filter(|row| row.cell.axes.contains_key(COMPONENTS)).collect();
    if !saving.is_empty() {
        tables.push(costs(&saving));
    }
    let beside = rows.iter().filter(|row| row.cell.state == "break-even");
    for (operation, of_it) in groups(beside, |row: &Row| row.cell.operation.clone()) {
        let caption = format!("{operation}: time over the faster integer kernel's, by size");
        let cell = |row: &Row| match row.median_ns() {
            ns if row.candidate == row.reference => format!("1 ({} ns)", significant(ns)),
            _ => ratio(row).unwrap_or("-".to_owned()),
        };
        let size = |row: &Row| row.cell.size as f64;
        let mut table = pivot(caption, "kernel", &of_it, size, size_text, cell);
        table.remark(
            "+: between saving and restoring the registers the kernel uses, which hold something \
             (dirty) or nothing (clean); ~: cannot tell it from 1",
        );
        tables.push(table);
    }
    tables
}

fn costs(rows: &[&Row]) -> Table {
    let states = ["dirty", "unmodified", "clean"];
    let mut table = Table::of(
        "Saving and restoring registers, ns",
        "components | >bytes | instructions | >dirty | >unmodified | >clean | held when clean",
    );
    let key = |row: &Row| (axis(row, COMPONENTS) as u64, row.cell.size, row.candidate.clone());
    for ((components, size, candidate), of_one) in groups(rows.iter().copied(), key) {
        let figure = |state: &str, name: &str| {
            let state = format!(" {state}");
            of_one.iter().find(|row| row.cell.state.ends_with(&state))?.figure(name)
        };
        let net = |state| figure(state, NET_NS).map_or("-".to_owned(), significant);
        let mut line = vec![component_names(components), size.to_string(), candidate];
        line.extend(states.map(net));
        let held = figure("clean", HELD).map(|held| component_names(held as u64));
        line.push(held.unwrap_or("-".to_owned()));
        table.push(line);
    }
    table.remark(
        "dirty: every register modified before each save, which is subtracted; unmodified: as the \
         last restore left them; clean: in their initial state",
    );
    table.remark("bytes: written at most; held: what the CPU still counted as in use (XSTATE_BV)");
    table
}
