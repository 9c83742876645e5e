//! `receive` (001.7, .8): a table per cell, policies down; speed, and what of a core it takes at
//! 10 Gb/s.

use super::pivot::residency;
use crate::Table;
use crate::cost::{comparison, part, total};
use crate::rows::by_cell;
use crate::units::{bytes, significant};
use cachewise_measure::{CellKey, Row};

/// One table per cell, in the order they were measured.
#[must_use]
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
    let mut table = Table::new(
        caption(key),
        &[
            "policy",
            ">Gb/s",
            ">core at 10 Gb/s",
            ">of it operation",
            ">copy",
            ">reader",
            ">bystander",
            ">sum",
            ">ratio",
            ">95 % interval",
            "verdict",
        ],
    );
    for row in rows {
        let figure = |name: &str| row.extra.get(name).copied();
        let share =
            |name| figure(name).map_or("-".to_owned(), |part| format!("{:.1} %", part * 100.0));
        let mut cells = vec![
            row.candidate.clone(),
            figure("gbit_per_s").map_or("-".to_owned(), significant),
            share("cpu_share_10g"),
            share("cpu_share_copy_10g"),
            part(row, &row.operation_ns),
            part(row, &row.reader_ns),
            part(row, &row.bystander_ns),
            total(row),
        ];
        cells.extend(comparison(row));
        table.push(cells);
    }
    table.remarks.push(
        "policies that make the same choice in a cell differ by noise alone; Gb/s and ratio are of the sum"
            .to_owned(),
    );
    if rows.iter().any(|row| row.candidate == "tcp loopback") {
        table.remarks.push(
            "tcp loopback: times are by the clock and include waiting for the sender, shares are \
             the receiver's own CPU time"
                .to_owned(),
        );
    }
    table.remarks.extend(residency(rows.iter().copied()));
    table
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{cell, row};
    use super::*;

    #[test]
    fn a_cell_lists_its_policies() {
        let line = |key: &CellKey, name: &str, nanoseconds: f64| {
            let mut row = row(key, name, "libc", nanoseconds);
            row.reader_ns = vec![500.0; row.operation_ns.len()];
            row.bystander_ns = vec![-10.0; row.operation_ns.len()];
            row.extra.extend([
                ("gbit_per_s".to_owned(), 16384.0 * 8.0 / (nanoseconds + 490.0)),
                ("cpu_share_10g".to_owned(), 0.114),
                ("cpu_share_copy_10g".to_owned(), 0.0763),
            ]);
            row
        };
        let mut key = cell("copy", 16384, "receive");
        key.reader = Some(1.0);
        key.axes.extend([("user_reused".to_owned(), 1.0), ("read".to_owned(), 1.0)]);
        let sent = cell("copy", 16384, "send");
        let rows = [
            line(&key, "libc", 1000.0),
            line(&key, "never NT", 1010.0),
            line(&key, "always NT", 1900.0),
            line(&key, "tcp loopback", 5000.0),
            line(&sent, "libc", 1000.0),
        ];
        let text: Vec<String> = tables(&rows).iter().map(|table| table.terminal(None)).collect();
        insta::assert_snapshot!(text.join("\n"));
    }
}
