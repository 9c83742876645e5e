//! `vector-state`: nanoseconds of saving and restoring by component and state; then kernels against
//! sizes, with the faster integer kernel as 1; then integer work after a kernel.

use super::grids;
use super::support::*;

/// The costs, then one table per operation.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    let saving: Vec<&Row> =
        rows.iter().filter(|row| row.cell.axes.contains_key(COMPONENTS)).collect();
    let costs = (!saving.is_empty()).then(|| costs(&saving));
    let tables = grids::BREAK_EVEN.tables(rows).into_iter().chain(grids::AFTER.tables(rows));
    costs.into_iter().chain(tables).collect()
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
        let net = |state| or_dash(figure(state, NET_NS), significant);
        let mut line = vec![component_names(components), size.to_string(), candidate];
        line.extend(states.map(net));
        line.push(or_dash(figure("clean", HELD), |held| component_names(held as u64)));
        table.push(line);
    }
    table.remark(
        "dirty: every register modified before each save, which is subtracted; unmodified: as the \
         last restore left them; clean: in their initial state",
    );
    table.remark("bytes: written at most; held: what the CPU still counted as in use (XSTATE_BV)");
    table
}
