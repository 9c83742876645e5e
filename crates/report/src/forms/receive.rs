//! `receive` (001.7, .8): a table per cell, policies down; speed, and what of a core it takes at
//! 10 Gb/s.

use super::*;

/// One table per cell, in the order they were measured.
pub fn tables(rows: &[Row]) -> Vec<Table> {
    by_cell(rows).into_iter().map(|(key, rows)| table(key, &rows)).collect()
}

fn caption(key: &CellKey) -> String {
    let set = |name| key.axis(name).is_some_and(|value| value > 0.0);
    if key.state == "send" {
        return format!(
            "send: copyin of {} from a warm buffer to a ring that the CPU never reads",
            bytes(key.size)
        );
    }
    format!(
        "receive: copyout of {} from a ring {} to a user's buffer that is {} and {}",
        bytes(key.size),
        if set("ring_by_other_core") { "written by another core" } else { "in memory" },
        if set("user_reused") { "reused" } else { "streamed through" },
        if set("read") { "read" } else { "not read" },
    )
}

fn table(key: &CellKey, rows: &[&Row]) -> Table {
    let mut table = Table::of(
        caption(key),
        "policy | >Gb/s | >core at 10 Gb/s | >of it operation | >copy | >reader | >bystander | \
         >sum | >ratio | >95 % interval | verdict",
    );
    for row in rows {
        let share = |name: &str| {
            row.figure(name).map_or("-".to_owned(), |part| format!("{:.1} %", part * 100.0))
        };
        let mut cells = vec![
            row.candidate.clone(),
            row.figure("gbit_per_s").map_or("-".to_owned(), significant),
            share("cpu_share_10g"),
            share("cpu_share_copy_10g"),
            cost::part(row, &row.operation_ns),
            cost::part(row, &row.reader_ns),
            cost::part(row, &row.bystander_ns),
            cost::total(row),
        ];
        cells.extend(comparison(row));
        table.push(cells);
    }
    table.remark(
        "policies that make the same choice in a cell differ by noise alone; Gb/s and ratio are of \
         the sum",
    );
    if rows.iter().any(|row| row.candidate == "tcp loopback") {
        table.remark(
            "tcp loopback: times are by the clock and include waiting for the sender, shares are \
             the receiver's own CPU time",
        );
    }
    table.remarks.extend(residency(rows.iter().copied()));
    table
}
